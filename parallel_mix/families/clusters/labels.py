"""Labels of a clustering by distances as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.families.clusters.file import read_clusterings


def labels_of(path: Path, level: str | None) -> dict[str, Any]:
    """Columns by name: of the clustering, or of each number of clusters."""
    if level is not None:
        raise InputError(f"{path} has no levels: leave out --level.")
    stored = read_clusterings(path)
    if len(stored) == 1 and stored[0].classes is not None:
        return {"label": stored[0].labels, "class": np.array(stored[0].classes)[stored[0].labels]}
    return {"label": stored[0].labels} if len(stored) == 1 else {f"clusters_{c.count}": c.labels for c in stored}
