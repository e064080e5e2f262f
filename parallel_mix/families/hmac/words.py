"""What `info` says of a clustering by mode association."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.models.hmac.result import HmacResult
from parallel_mix.store.results import read_classes, read_result


def describe(path: Path) -> list[str]:
    """Its levels and stable ranges, and how well it agrees with known classes."""
    result = HmacResult.from_tree(read_result(path, "hmac"))
    lines = [f"{path}: clustering by mode association (hmac)", *result.summary()]
    known = np.array(read_classes(path) or [])
    some = is_known(known)
    return [*lines, result.agreement(known, some)] if len(set(known[some])) > 1 else lines
