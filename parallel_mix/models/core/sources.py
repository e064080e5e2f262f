"""The data that models read: rows of numbers, or a square matrix, in memory or in a file that every worker opens.

The readers of files are in `store`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Block = tuple[int, int]
"""The number of the first row of some, and the number after that of the last one."""
ROWS_A_BLOCK = 65_536
"""Rows that are read at a time, where all are needed but not at once."""


class RowSource(Protocol):
    """Where rows come from: an array in memory, or a file that every worker opens for itself."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop as float64."""

    def weights(self, start: int = 0, stop: int | None = None) -> Array | None:
        """Weights of rows start..stop (of all by default), or None where all count alike."""


Measures = Callable[[Callable[[RowSource, Block], Any]], Iterable[Any]]
"""What gives a measure of each block of the rows (`blocks_of`), in their order."""


@dataclass(frozen=True)
class HeldRows:
    """A source of rows that are an array in memory; they travel to the workers by value."""

    X: Array
    w: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        n, d = self.X.shape
        return n, d

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop as float64."""
        return np.asarray(self.X[start:stop], dtype=np.float64)

    def weights(self, start: int = 0, stop: int | None = None) -> Array | None:
        """Weights of rows start..stop (of all by default), or None where all count alike."""
        return None if self.w is None else np.asarray(self.w[start:stop], dtype=np.float64)


def blocks_of(rows: int, at_once: int | None = None) -> list[Block]:
    """So many rows in blocks of `at_once` (by default `ROWS_A_BLOCK`); the last block may have fewer.

    Blocks depend on the number of rows alone, so that sums over them have one shape everywhere.
    """
    step = at_once or ROWS_A_BLOCK
    return [(a, min(a + step, rows)) for a in range(0, rows, step)]


@dataclass(frozen=True)
class HeldHere:
    """A source of rows in the memory of this process; other processes read them from where they are stored."""

    held: HeldRows
    stored: RowSource

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return self.held.shape

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop as float64."""
        return self.held.rows(start, stop)

    def weights(self, start: int = 0, stop: int | None = None) -> Array | None:
        """Weights of rows start..stop (of all by default), or None where all count alike."""
        return self.held.weights(start, stop)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send to another process where the rows are stored, instead of the rows."""
        return as_it_is, (self.stored,)


def as_it_is(source: RowSource) -> RowSource:
    """The source itself: what is called where a `HeldHere` arrives in another process."""
    return source


class MatrixSource(Protocol):
    """A square matrix of distances, of which some rows are read at a time: entry (i, j) is the distance of i to j."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""

    def __getitem__(self, key: Any) -> Array:
        """The entries of a slice of rows, or of a slice of rows and one of columns."""

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """The entries of some rows at some columns; both are numbers in rising order."""


@dataclass(frozen=True)
class HeldMatrix:
    """A matrix in memory."""

    D: Array

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        n, m = self.D.shape
        return n, m

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self.D[key])

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """The entries of some rows at some columns; both are numbers in rising order."""
        if len(rows) == len(columns) == len(self.D):
            return self.D
        return np.asarray(self.D[rows[:, None], columns])


@dataclass(frozen=True)
class MeanOfBoth:
    """The mean of a matrix and its transpose, which is symmetric."""

    matrix: MatrixSource

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return self.matrix.shape

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        return np.asarray((self.matrix[rows, columns] + self.matrix[columns, rows].T) / 2.0)

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """The entries of some rows at some columns; both are numbers in rising order."""
        return (self.matrix.among(rows, columns) + self.matrix.among(columns, rows).T) / 2.0
