"""What `info` says of a matrix of distances."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.families.distances.file import read_matrix_of
from parallel_mix.models.distances.checks import properties_of
from parallel_mix.store.stored_matrix import read_sides


def describe(path: Path) -> list[str]:
    """Whether they are symmetric, metric and Euclidean, and their range."""
    matrix, metric = read_matrix_of(path)
    return [f"{path}: distances ({metric})", *properties_of(matrix, own=read_sides(path)[1] is None).lines()]
