"""Square matrices of distances as workers reach them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.kernels.density import Array


class Square(Protocol):
    """A square matrix of distances, read in parts: entry (i, j) is the distance of i to j."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def __getitem__(self, key: Any) -> Array:
        """A slice of rows, or two slices."""

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns, in rising order."""


@dataclass(frozen=True)
class HeldSquare:
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

    matrix: Square

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def __getitem__(self, key: Any) -> Array:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        return np.asarray((self.matrix[rows, columns] + self.matrix[columns, rows].T) / 2.0)

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns."""
        return (self.matrix.among(rows, columns) + self.matrix.among(columns, rows).T) / 2.0
