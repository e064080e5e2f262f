"""The errors of a comparison, as `table` prints them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.families.crossval.file import read_comparison


def errors_of(path: Path) -> tuple[str, list[tuple[str, str]], np.ndarray]:
    """The name of the data, titles and names of the classifiers, and their errors (classifiers, partitions)."""
    comparison = read_comparison(path)
    return comparison.name, comparison.names, comparison.errors
