"""What `info` says of a matrix of distances."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.models.distances.checks import examine
from parallel_mix.store.results import read_attribute
from parallel_mix.store.stored_matrix import StoredMatrix, read_sides


def describe(path: Path) -> list[str]:
    """Whether they are symmetric, metric and Euclidean, and their range."""
    matrix, metric = StoredMatrix.of(path, "distances"), read_attribute(path, "metric")
    return [f"{path}: distances ({metric})", *examine(matrix, own=read_sides(path)[1] is None).lines()]
