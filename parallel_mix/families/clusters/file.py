"""Results of `parallel-mix cluster`: one clustering, or several by their numbers of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parallel_mix.store.results import Tree, read_result


@dataclass(frozen=True)
class StoredClustering:
    """One clustering as it was written."""

    count: int
    labels: np.ndarray
    centroids: np.ndarray
    sizes: np.ndarray
    loss: float
    classes: list[str] | None

    @classmethod
    def from_tree(cls, tree: Tree) -> StoredClustering:
        """From its group in the file."""
        classes = [str(name, "utf-8") for name in tree["classes"]] if "classes" in tree else None
        labels, centroids, sizes = (tree[name] for name in ("labels", "centroids", "sizes"))
        return cls(len(centroids), labels, centroids, sizes, float(tree["@loss"]), classes)


def read_clusterings(path: Path) -> list[StoredClustering]:
    """All clusterings of a result, by rising number of clusters."""
    tree = read_result(path, "clusters")
    groups = [tree] if "labels" in tree else [value for value in tree.values() if isinstance(value, dict)]
    return sorted(map(StoredClustering.from_tree, groups), key=lambda clustering: clustering.count)
