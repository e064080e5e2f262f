"""What `info` says of a clustering by mode association."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.families.hmac.file import read_clustering
from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.store.results import read_classes


def describe(path: Path) -> list[str]:
    """Its levels and stable ranges, and how well it agrees with known classes."""
    result = read_clustering(path)
    lines = [f"{path}: clustering by mode association (hmac)", *result.summary()]
    known = np.array(read_classes(path) or [])
    some = is_known(known)
    return [*lines, result.agreement(known, some)] if len(set(known[some])) > 1 else lines
