"""Distances between the rows of two blocks of vectors.

Euclidean distances (and those that are Euclidean of other rows: cosine, correlation, Mahalanobis, Gaussian kernel) come
from one matrix product,

    |a - b|^2 = [-2 a, |a|^2, 1] . [b, 1, |b|^2]        (rows centred on the data, so that the squares are small)

whose error is a few roundings of |a|^2 + |b|^2. Pairs closer than that allows are computed again from differences of
the rows as they were given. Products are computed in blocks that begin at multiples of `BLOCK`, and below the diagonal
as the transpose of those above it: so a distance is equal to the last bit in every tile, and the other way round. The
other metrics are SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array

BLOCK = 256
"""Rows and columns of a block whose distances come from one matrix product."""
CLOSE = 1e-4
"""Pairs with |a - b|^2 below this share of |a|^2 + |b|^2 are computed again: the product's error is 1e-11 of them."""
MANY = 8
"""Where more than one pair in so many is close, the distances of all are computed from differences."""

SINGULAR = 1e-13
"""Eigenvalues of a correlation matrix below this, for each of its columns, are roundings."""

BY_PRODUCT = ("euclidean", "sqeuclidean", "cosine", "correlation", "mahalanobis", "gaussian")
BY_SCIPY = ("cityblock", "chebyshev", "minkowski", "hamming", "jaccard")
METRICS = BY_PRODUCT + BY_SCIPY


@dataclass(frozen=True)
class Vectors:
    """Rows that have been made ready to be compared."""

    given: np.ndarray
    augmented: Array  # [b, 1, |b|^2], b centred; empty for metrics without a product

    def __len__(self) -> int:
        return len(self.given)


@dataclass(frozen=True)
class VectorMetric:
    """A metric on vectors with what it needs to know of all data."""

    name: str
    symmetric = True
    frees_lock = True
    centre: Array  # of the data as compared
    p: float = 2.0  # minkowski
    sigma: float = 1.0  # gaussian
    whiten: Array | None = None  # mahalanobis: L with L L^T the inverse of the covariance, of X - shift
    shift: Array | float = 0.0

    @property
    def block(self) -> int:
        """Tiles begin at rows and columns that are multiples of this number."""
        return 1 if self.name in BY_SCIPY else BLOCK

    def prepare(self, X: Array) -> Vectors:
        """The rows of X, made ready to be compared."""
        rows = self.as_compared(X)
        if self.name in BY_SCIPY:
            return Vectors(rows, np.empty((0, 0)))
        n, d = rows.shape
        augmented = np.empty((n, d + 2))
        b = np.subtract(rows, self.centre, out=augmented[:, :d])
        augmented[:, d] = 1.0
        np.einsum("ij,ij->i", b, b, out=augmented[:, d + 1])
        return Vectors(rows, augmented)

    def as_compared(self, X: Array) -> np.ndarray:
        """The rows of X in the coordinates whose differences count, such as unit vectors for cosine."""
        if self.name in ("cosine", "correlation"):
            X = X / np.abs(X).max(axis=1, keepdims=True)  # squares of very large or small ones are out of range
            X = X - X.mean(axis=1, keepdims=True) if self.name == "correlation" else X
            return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
        if self.whiten is not None:
            return np.asarray((X - self.shift) @ self.whiten)
        return X != 0 if self.name == "jaccard" else X

    def tile(self, new: Vectors, rows: slice, old: Vectors, columns: slice, own: bool) -> Array:
        """Distances between prepared rows; `own`: the new are the old."""
        if self.name in BY_SCIPY:
            from scipy.spatial.distance import cdist

            if self.name == "minkowski":
                return minkowski(new.given[rows], old.given[columns], self.p)
            return np.asarray(cdist(new.given[rows], old.given[columns], self.name))
        D = np.empty((rows.stop - rows.start, columns.stop - columns.start))
        for a in range(rows.start, rows.stop, BLOCK):
            some = slice(a, min(a + BLOCK, rows.stop))
            left = left_factor(new.augmented[some])
            for c in range(columns.start, columns.stop, BLOCK):
                others = slice(c, min(c + BLOCK, columns.stop))
                block = D[a - rows.start : some.stop - rows.start, c - columns.start : others.stop - columns.start]
                if own and c < a:
                    block[...] = self._from_squares(squared_distances(old, others, new, some)).T
                    continue
                S = self._from_squares(squared_distances(new, some, old, others, left))
                if own and c == a:
                    S = np.triu(S, 1)
                    S += S.T
                block[...] = S
        return D

    def _from_squares(self, S: Array) -> Array:
        """The distances that belong to squared Euclidean ones."""
        if self.name in ("euclidean", "mahalanobis"):
            np.sqrt(S, out=S)
        elif self.name in ("cosine", "correlation"):
            S *= 0.5
        elif self.name == "gaussian":
            S *= -0.5 / self.sigma**2
            np.expm1(S, out=S)
            S *= -2.0
            np.sqrt(S, out=S)
        return S


def minkowski(A: Array, B: Array, p: float) -> Array:
    """Minkowski distances by SciPy; where powers leave the range of numbers, differences go over the pair's largest."""
    from scipy.spatial.distance import cdist

    with np.errstate(over="ignore", under="ignore"):
        D = np.asarray(cdist(A, B, "minkowski", p=p))
        tiny = 1e-280 ** (1.0 / p)
    for i in np.flatnonzero(((tiny > D) | ~np.isfinite(D)).any(axis=1)):
        odd = np.flatnonzero((tiny > D[i]) | ~np.isfinite(D[i]))
        gaps = np.abs(A[i] - B[odd])
        largest = gaps.max(axis=1, keepdims=True)
        relative = gaps / np.where(largest > 0, largest, 1.0)
        D[i, odd] = largest[:, 0] * (relative**p).sum(axis=1) ** (1.0 / p)
    return D


def left_factor(augmented: Array) -> Array:
    """The left factor of the product, rows [-2 a, |a|^2, 1], from rows [a, 1, |a|^2]."""
    left = np.empty_like(augmented)
    np.multiply(augmented[:, :-2], -2.0, out=left[:, :-2])
    left[:, -2], left[:, -1] = augmented[:, -1], 1.0
    return left


def squared_distances(new: Vectors, rows: slice, old: Vectors, columns: slice, left: Array | None = None) -> Array:
    """Squared distances |a - b|^2 of some new rows to some old ones; `left` is the new rows' left factor, or None."""
    right = old.augmented[columns]
    S: Array = (left_factor(new.augmented[rows]) if left is None else left) @ right.T
    near = CLOSE * (new.augmented[rows, -1] + right[:, -1].max(initial=0.0))
    close = near[:, None] > S
    count = np.count_nonzero(close)
    if MANY * count > close.size:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(new.given[rows], old.given[columns], "sqeuclidean"))
    if count:
        i, j = np.nonzero(close)
        gaps = new.given[rows][i] - old.given[columns][j]
        S[i, j] = np.einsum("ij,ij->i", gaps, gaps)
    return S


def vector_metric(name: str, X: Array, p: float = 2.0, sigma: float = 1.0) -> VectorMetric:
    """The metric on data like X; refused in words where it is not defined for them."""
    d = X.shape[1]
    whiten = shift = None
    if name == "mahalanobis":
        shift = X.mean(axis=0)
        whiten = whitening(X - shift)
    if not (sigma > 0 and sigma * sigma > 0):
        raise InputError(f"The bandwidth of the gaussian distance must be above 0, not {sigma:g}.")
    if not p >= 1:
        raise InputError(f"minkowski needs p of 1 or more, not {p:g}.")
    metric = VectorMetric(name, np.zeros(d), p, sigma, whiten, 0.0 if shift is None else shift)
    if name in BY_SCIPY:
        return metric
    rows = metric.as_compared(X)
    return replace(metric, centre=rows.min(axis=0) / 2 + rows.max(axis=0) / 2)


def whitening(X: Array) -> Array:
    """The matrix L for which L L^T is the inverse of the covariance of the centred rows X."""
    n, d = X.shape
    scale = np.sqrt((X**2).sum(axis=0) / max(n - 1, 1))
    values = np.zeros(1)
    if n > d and (scale > 0).all():
        correlation = (X / scale).T @ (X / scale) / (n - 1)
        values = np.linalg.eigvalsh(correlation)
    if not values.min() > SINGULAR * d:
        raise InputError(
            "mahalanobis needs a covariance that can be inverted: there are columns that depend on each other, or too "
            f"few rows ({n} rows, {d} columns)."
        )
    return np.asarray(np.linalg.cholesky(np.linalg.inv(correlation)) / scale[:, None])


def check_directions(name: str, X: Array, what: str = "") -> None:
    """Refuse rows (of `what`) that have no direction, where the metric is of directions."""
    if name not in ("cosine", "correlation"):
        return
    largest = np.abs(X).max(axis=1)
    if name == "correlation":
        spread = np.abs(X - X.mean(axis=1, keepdims=True)).max(axis=1)
        bad = np.flatnonzero(spread <= 8.0 * np.finfo(float).eps * largest)
    else:
        bad = np.flatnonzero(largest == 0)
    if bad.size:
        fault = "is constant: it correlates with nothing" if name == "correlation" else "is zero: it has no direction"
        more = f" ({bad.size} such rows)" if bad.size > 1 else ""
        of = f" of {what}" if what else ""
        raise InputError(f"Row {bad[0] + 1}{of} {fault}{more}. Remove what is so, or choose another metric.")
