"""Distances between vectors against SciPy's, and what must hold of any metric."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.errors import InputError
from parallel_mix.kernels.metrics.vector_distances import (
    BY_PRODUCT,
    METRICS,
    VectorMetric,
    check_directions,
    vector_metric,
)
from tests.conftest import blobs


def by_scipy(name: str, A: np.ndarray, B: np.ndarray, all_rows: np.ndarray) -> np.ndarray:
    if name == "gaussian":  # of kernels of bandwidth 2, in the kernel's own space
        return np.sqrt(2.0 - 2.0 * np.exp(-cdist(A, B, "sqeuclidean") / 8.0))
    if name == "mahalanobis":
        return cdist(A, B, name, VI=np.linalg.inv(np.cov(all_rows, rowvar=False)))
    if name == "minkowski":
        return cdist(A, B, name, p=3)
    if name == "jaccard":
        return cdist(A != 0, B != 0, name)
    return cdist(A, B, name)


def rows(name: str, n: int, seed: int) -> np.ndarray:
    X = blobs(n, 4, seed=seed)
    return np.round(X) if name in ("hamming", "jaccard") else X


def matrix(metric: VectorMetric, A: np.ndarray, B: np.ndarray | None = None) -> np.ndarray:
    new = metric.prepare(A)
    old = new if B is None else metric.prepare(B)
    return metric.tile(new, slice(0, len(new)), old, slice(0, len(old)), own=B is None)


@pytest.mark.parametrize("name", METRICS)
def test_against_scipy(name: str) -> None:
    A, B = rows(name, 300, 1), rows(name, 270, 2)
    both = np.concatenate([A, B])
    D = matrix(vector_metric(name, both, p=3, sigma=2.0), A, B)
    np.testing.assert_allclose(D, by_scipy(name, A, B, both), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_symmetric_with_a_zero_diagonal_and_of_no_order(name: str) -> None:
    X = rows(name, 600, 3)
    metric = vector_metric(name, X, p=3, sigma=2.0)
    D = matrix(metric, X)
    assert np.array_equal(D, D.T)
    assert not D.diagonal().any()
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(matrix(metric, X[order]), D[np.ix_(order, order)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_a_distance_is_the_same_in_every_tile(name: str) -> None:
    X = rows(name, 900, 4)
    metric = vector_metric(name, X, p=3, sigma=2.0)
    D, things = matrix(metric, X), metric.prepare(X)
    for a, b, c, d in [(0, 256, 0, 900), (256, 512, 0, 512), (512, 900, 256, 768), (768, 900, 768, 900)]:
        part = metric.tile(things, slice(a, b), things, slice(c, d), own=True)
        assert np.array_equal(part, D[a:b, c:d])


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_close_pairs_keep_their_digits(offset: float) -> None:
    """Points of norm 1e6 that are 1e-3 apart, beside others that are far."""
    r = np.random.default_rng(1)
    X = r.normal(size=(300, 8)) * 1e6 + offset
    X[100:200] = X[:100] + 1e-3 * r.normal(size=(100, 8))
    exact = np.sqrt(((X[:, None, :] - X[None, :, :]).astype(np.longdouble) ** 2).sum(axis=2)).astype(float)
    metric = vector_metric("euclidean", X)
    D = matrix(metric, X)
    off = ~np.eye(len(X), dtype=bool)
    assert np.abs(D[off] / exact[off] - 1.0).max() < 1e-10


def test_a_tight_cloud_far_from_the_rest_is_taken_as_differences() -> None:
    r = np.random.default_rng(2)
    X = np.concatenate([r.normal(size=(200, 3)), 1e7 + 1e-2 * r.normal(size=(200, 3))])
    S = matrix(vector_metric("sqeuclidean", X), X)[200:, 200:]
    np.testing.assert_allclose(S, cdist(X[200:], X[200:], "sqeuclidean"), rtol=1e-10)


@pytest.mark.parametrize(
    ("name", "X", "sentence"),
    [
        ("cosine", np.array([[1.0, 2.0], [0.0, 0.0]]), "Row 2 is zero: it has no direction"),
        ("correlation", np.array([[1.0, 2.0], [3.0, 3.0]]), "Row 2 is constant"),
        ("correlation", np.array([[1.0, 2.0, 1.0], [0.1, 0.1, 0.1]]), "Row 2 is constant"),
        ("mahalanobis", blobs(40, 3) @ np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]), "depend on each other"),
        ("mahalanobis", blobs(5, 5), "too few rows"),
        ("mahalanobis", np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), "columns that depend on each other"),
    ],
)
def test_where_a_metric_is_not_defined(name: str, X: np.ndarray, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_directions(name, X)
        vector_metric(name, X)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_directions_have_no_size(scale: float) -> None:
    X = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, 1.0]])
    for name in ("cosine", "correlation"):
        np.testing.assert_allclose(matrix(vector_metric(name, X * scale), X * scale), matrix(vector_metric(name, X), X))


@pytest.mark.parametrize("p", [1.0, 7.0, 1000.0])
@pytest.mark.parametrize("size", [1e-30, 0.1, 10.0, 1e30])
def test_powers_out_of_range(p: float, size: float) -> None:
    X = np.array([[0.0, 0.0], [size, size], [size, 0.0]])
    D = matrix(vector_metric("minkowski", X, p=p), X)
    np.testing.assert_allclose(D[0], [0.0, size * 2.0 ** (1.0 / p), size], rtol=1e-12)


def test_each_metric_is_in_one_list() -> None:
    assert set(BY_PRODUCT) < set(METRICS)
    assert len(set(METRICS)) == len(METRICS)
