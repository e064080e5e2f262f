"""Distances that are converted from similarities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array

LEAST_SIMILARITY = 1e-3
"""Smaller similarities count as this before they are inverted."""


@dataclass(frozen=True)
class FromSimilarity:
    """The distances bound - S or 1/S, of the entries of a square matrix S of similarities; 0 on the diagonal.

    The matrix may be anything that is sliced as an array is.
    """

    name: str  # bound or inverse
    bound: float
    symmetrize: bool
    symmetric = False  # nothing is gained by a half: reading is all the work
    block = 1
    frees_lock = True

    def prepare(self, S: Any) -> Any:
        """The matrix itself: its entries are read as they are needed."""
        return S

    def tile(self, S: Any, rows: slice, _: Any, columns: slice, own: bool) -> Array:
        """The entries of some rows and columns as distances."""
        D = self._distance(np.asarray(S[rows, columns], dtype=np.float64))
        if self.symmetrize:
            D = (D + self._distance(np.asarray(S[columns, rows], dtype=np.float64)).T) / 2.0
        on_it = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
        D[on_it - rows.start, on_it - columns.start] = 0.0
        return D

    def _distance(self, S: Array) -> Array:
        return self.bound - S if self.name == "bound" else 1.0 / np.maximum(S, LEAST_SIMILARITY)


class Known(Protocol):
    """The survey of a matrix: what one pass over its entries tells."""

    @property
    def lowest(self) -> float:
        """The least entry."""

    @property
    def lowest_at(self) -> tuple[int, int]:
        """Row and column of the least entry."""

    @property
    def highest(self) -> float:
        """The largest entry."""


def from_similarity(name: str, known: Known, symmetrize: bool) -> FromSimilarity:
    """The conversion of a matrix, by its survey `known`; the bound is its largest entry."""
    if name == "inverse" and known.lowest < 0:
        i, j = known.lowest_at
        raise InputError(f"The similarity of rows {i + 1} and {j + 1} is {known.lowest:g}: below 0 it has no inverse.")
    return FromSimilarity(name, known.highest, symmetrize)
