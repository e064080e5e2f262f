"""Distances between the rows of two blocks of vectors.

Euclidean distances (and those that are Euclidean of other rows: cosine, correlation, Mahalanobis, Gaussian kernel) come
from one matrix product,

    |a - b|^2 = [-2 a, |a|^2, 1] . [b, 1, |b|^2]        (rows centred on the data, so that the squares are small)

whose error is a few roundings of |a|^2 + |b|^2. Pairs closer than that allows are taken again as plain differences of
the rows as they were given. The other metrics are SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density import Array

CLOSE = 1e-4
"""Pairs with |a - b|^2 below this part of |a|^2 + |b|^2 are taken again: the product's error is then 1e-11 of them."""
MANY = 8
"""Where more than one pair in so many is close, all are taken as differences."""

BY_PRODUCT = ("euclidean", "sqeuclidean", "cosine", "correlation", "mahalanobis", "gaussian")
BY_SCIPY = ("cityblock", "chebyshev", "minkowski", "hamming", "jaccard")
METRICS = BY_PRODUCT + BY_SCIPY


@dataclass(frozen=True)
class VectorMetric:
    """A metric on vectors with what it needs to know of all data."""

    name: str
    symmetric = True
    side = 1024
    centre: Array  # of the data as compared
    p: float = 2.0  # minkowski
    sigma: float = 1.0  # gaussian
    whiten: Array | None = None  # mahalanobis: L with L L^T the inverse of the covariance, of X - shift
    shift: Array | float = 0.0

    def prepare(self, X: Array) -> np.ndarray:
        """The rows as they are compared."""
        if self.name == "correlation":
            X = X - X.mean(axis=1, keepdims=True)
        if self.name in ("cosine", "correlation"):
            return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
        if self.whiten is not None:
            return np.asarray((X - self.shift) @ self.whiten)
        return X != 0 if self.name == "jaccard" else X

    def tile(self, new: Array, rows: slice, old: Array, columns: slice, same: bool) -> Array:
        """Distances between prepared rows; `same`: of rows with themselves, symmetric to the last bit."""
        A, B = new[rows], old[columns]
        if self.name in BY_SCIPY:
            from scipy.spatial.distance import cdist

            more = {"p": self.p} if self.name == "minkowski" else {}
            return np.asarray(cdist(A, B, self.name, **more))
        S = squared_distances(A, B, self.centre)
        if self.name in ("euclidean", "mahalanobis"):
            np.sqrt(S, out=S)
        elif self.name in ("cosine", "correlation"):
            S *= 0.5
        elif self.name == "gaussian":
            S *= -0.5 / self.sigma**2
            np.expm1(S, out=S)
            S *= -2.0
            np.sqrt(S, out=S)
        if same:
            S = np.triu(S, 1)
            S += S.T
        return S


def squared_distances(A: Array, B: Array, centre: Array) -> Array:
    """|a - b|^2 for all rows."""
    a, b = A - centre, B - centre
    na, nb = np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b)
    left = np.column_stack([-2.0 * a, na, np.ones(len(a))])
    right = np.column_stack([b, np.ones(len(b)), nb])
    S: Array = left @ right.T
    close = CLOSE * (na + nb.max(initial=0.0))[:, None] > S
    count = np.count_nonzero(close)
    if MANY * count > close.size:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(A, B, "sqeuclidean"))
    if count:
        i, j = np.nonzero(close)
        gaps = A[i] - B[j]
        S[i, j] = np.einsum("ij,ij->i", gaps, gaps)
    return S


def vector_metric(name: str, X: Array, p: float = 2.0, sigma: float = 1.0) -> VectorMetric:
    """The metric on data like X; refused in words where it is not defined for them."""
    d = X.shape[1]
    whiten = shift = None
    if name in ("cosine", "correlation"):
        check_directions(name, X)
    if name == "mahalanobis":
        shift = X.mean(axis=0)
        covariance = np.atleast_2d(np.cov(X - shift, rowvar=False))
        try:
            whiten = np.linalg.cholesky(np.linalg.inv(covariance))
        except np.linalg.LinAlgError:
            raise InputError(
                "mahalanobis needs a covariance that can be inverted: there are columns that depend on each other, "
                f"or too few rows ({len(X)} rows, {d} columns)."
            ) from None
    if not sigma > 0:
        raise InputError(f"The bandwidth of the gaussian distance must be above 0, not {sigma:g}.")
    if not p >= 1:
        raise InputError(f"minkowski needs p of 1 or more, not {p:g}.")
    metric = VectorMetric(name, np.zeros(d), p, sigma, whiten, 0.0 if shift is None else shift)
    if name in BY_SCIPY:
        return metric
    rows = metric.prepare(X)
    return replace(metric, centre=rows.min(axis=0) / 2 + rows.max(axis=0) / 2)


def check_directions(name: str, X: Array) -> None:
    """Refuse rows that have no direction."""
    lengths = np.linalg.norm(X - X.mean(axis=1, keepdims=True) if name == "correlation" else X, axis=1)
    bad = np.flatnonzero(~(lengths > 0))
    if bad.size:
        what = "is constant: it correlates with nothing" if name == "correlation" else "is zero: it has no direction"
        raise InputError(f"Row {bad[0] + 1} {what} ({bad.size} such rows). Remove them, or choose another metric.")
