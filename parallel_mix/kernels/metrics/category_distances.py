"""Value difference metric (Stanfill & Waltz 1986): categories are close where rows of both have the same classes.

d(x, y) = sum_a sum_c (P(c | x_a) - P(c | y_a))^2, no root; a missing value is a category of its own. It is the squared
Euclidean distance of rows of probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.density.kernel_sums import Array


class ClassProbabilities:
    """P(c | category) for each attribute, from rows of known class; for a category never seen, the classes' shares."""

    def __init__(self, X: Array, y: NDArray[Any]) -> None:
        classes, codes = np.unique(y, return_inverse=True)
        self.prior = np.bincount(codes, minlength=len(classes)) / len(codes)
        self.known: list[tuple[Array, Array]] = []
        for column in X.T:
            values, which = np.unique(column, return_inverse=True)
            counts = np.zeros((len(values), len(classes)))
            np.add.at(counts, (which, codes), 1.0)
            self.known.append((values, counts / counts.sum(axis=1, keepdims=True)))

    def rows(self, X: Array) -> Array:
        """The probabilities of each row, attribute after attribute."""
        probabilities = []
        for column, (values, table) in zip(X.T, self.known, strict=True):
            place = np.minimum(np.searchsorted(values, column), len(values) - 1)
            probabilities.append(np.where((values[place] == column)[:, None], table[place], self.prior))
        return np.concatenate(probabilities, axis=1)
