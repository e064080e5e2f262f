"""What `info` says of a clustering by distances alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.families.clusters.file import read_clusterings
from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.progress import plural
from parallel_mix.store.results import read_classes, read_result

MOST_SIZES = 16


def describe(path: Path) -> list[str]:
    """Sizes and loss of each clustering, and how well it agrees with known classes."""
    tree, known = read_result(path, "clusters"), read_classes(path)
    lines = [f"{path}: clustering by distances alone ({tree['@method']})"]
    for clustering in read_clusterings(path):
        sizes = ", ".join(f"{size:,}" for size in clustering.sizes[:MOST_SIZES])
        more = ", ..." if len(clustering.sizes) > MOST_SIZES else ""
        lines.append(f"{plural(clustering.count, 'cluster')}: total distance {clustering.loss:.9g}; rows {sizes}{more}")
        if known and clustering.classes is None and len({name for name in known if is_known([name])[0]}) > 1:
            from sklearn.metrics import adjusted_rand_score

            some = is_known(known)
            score = adjusted_rand_score(np.array(known)[some], clustering.labels[some])
            lines[-1] += f"; agreement with known classes (ARI) {score:.3f}"
        if clustering.classes is not None:
            classes = np.array(clustering.classes)
            of = {name: np.flatnonzero(classes == name) for name in sorted(set(clustering.classes))}
            lines += [f"  {name}: clusters {', '.join(map(str, here))}" for name, here in of.items()]
    return lines
