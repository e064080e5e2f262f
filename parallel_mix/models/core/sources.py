"""What a model asks of data: rows of numbers, or a square matrix, in memory or in a file that every worker opens.

The readers of files are in `store`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROWS_A_PASS = 65_536


class RowSource(Protocol):
    """Where rows come from: an array in memory, or a file that every worker opens for itself."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop as float64."""

    def weights(self) -> Array | None:
        """Weights of all rows, or None where all count alike."""


@dataclass(frozen=True)
class HeldRows:
    """Rows of an array in memory; it travels to the workers by value."""

    X: Array
    w: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return n, d

    def rows(self, start: int, stop: int) -> Array:
        return np.asarray(self.X[start:stop], dtype=np.float64)

    def weights(self) -> Array | None:
        return None if self.w is None else np.asarray(self.w, dtype=np.float64)


def passes(source: RowSource) -> Iterator[Array]:
    """The rows in pieces, so that nobody needs them all at once."""
    n = source.shape[0]
    for start in range(0, n, ROWS_A_PASS):
        yield source.rows(start, min(start + ROWS_A_PASS, n))


@dataclass(frozen=True)
class HeldHere:
    """Rows in the memory of this process, which other processes read for themselves from where they are stored."""

    held: HeldRows
    stored: RowSource

    @property
    def shape(self) -> tuple[int, int]:
        return self.held.shape

    def rows(self, start: int, stop: int) -> Array:
        return self.held.rows(start, stop)

    def weights(self) -> Array | None:
        return self.held.weights()

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to another process is where the rows are."""
        return as_it_is, (self.stored,)


def as_it_is(source: RowSource) -> RowSource:
    """What arrives at another process."""
    return source


class MatrixSource(Protocol):
    """A square matrix of distances, read in parts: entry (i, j) is the distance of i to j."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def __getitem__(self, key: Any) -> Array:
        """A slice of rows, or two slices."""

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns, in rising order."""


@dataclass(frozen=True)
class HeldMatrix:
    """A matrix in memory."""

    D: Array

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.D.shape
        return n, m

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self.D[key])

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns."""
        if len(rows) == len(columns) == len(self.D):
            return self.D
        return np.asarray(self.D[rows[:, None], columns])


@dataclass(frozen=True)
class MeanOfBoth:
    """A matrix and its transpose, halves of each."""

    matrix: MatrixSource

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        return np.asarray((self.matrix[rows, columns] + self.matrix[columns, rows].T) / 2.0)

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns."""
        return (self.matrix.among(rows, columns) + self.matrix.among(columns, rows).T) / 2.0
