"""The mixtures of HLM against direct maximisation, sums over batches, and what must hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import gamma, multivariate_normal

from parallel_mix.kernels.mixtures.hlm_mixture import (
    ClusterSums,
    estimate,
    kernel_parameters,
    log_densities,
    posteriors,
    shape_groups,
    sums_of_clusters,
)

NO = np.array([1.0, 1.0])


def sums_of(number: int, u: np.ndarray, labels: np.ndarray, medoids: Any, w: np.ndarray | None = None) -> ClusterSums:
    """Of the clusters of one class."""
    table = sums_of_clusters(u, labels, np.asarray(medoids), np.ones(len(u)) if w is None else w, np.ones(len(u)))
    return ClusterSums(np.full(len(medoids), number), table)


def clusters(seed: int, shapes: tuple[float, ...] = (1.5, 1.5, 1.5)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared distances of three clusters, the first of each its medoid."""
    r = np.random.default_rng(seed)
    u = [np.concatenate([[0.0], r.gamma(s, 2.0 + k, 60)]) for k, s in enumerate(shapes)]
    labels = np.repeat(np.arange(len(shapes)), 61)
    return np.concatenate(u), labels, 61 * np.arange(len(shapes))


def test_the_estimate_has_the_largest_likelihood() -> None:
    u, labels, medoids = clusters(0)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(u))
    for weights in (None, w):
        sums = sums_of(0, u, labels, medoids, weights)
        parameters = estimate(sums, NO)

        def minus(logs: np.ndarray, weights: np.ndarray | None = weights) -> float:
            s, b = np.exp(logs[0]), np.exp(logs[1:])
            used = u > 0
            each = gamma.logpdf(u[used], s, scale=b[labels[used]])
            return -float(each @ (np.ones(used.sum()) if weights is None else weights[used]))

        best = np.exp(
            minimize(
                minus, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-10, "maxiter": 9000}
            ).x
        )
        assert parameters.s[0] == pytest.approx(best[0], rel=1e-4)
        np.testing.assert_allclose(sums.means / parameters.s, best[1:], rtol=1e-4)


def test_scales_are_shrunk_toward_the_mean_of_all() -> None:
    u, labels, medoids = clusters(2)
    sums = sums_of(0, u, labels, medoids)
    parameters = estimate(sums, NO)
    mean = u[u > 0].mean()
    np.testing.assert_allclose(parameters.b, (60 / 61 * sums.means + 1 / 61 * mean) / parameters.s, rtol=1e-12)
    assert (2 * parameters.whole == np.floor(2 * parameters.s + 0.5)).all()


def test_what_is_left_out() -> None:
    """A pair, a singleton, a cluster of duplicates: not estimated by, but kept with the mean scale."""
    u, labels, medoids = clusters(3)
    more = np.array([0.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    u2, labels2 = np.concatenate([u, more]), np.concatenate([labels, [3, 3, 4, 5, 5, 5]])
    medoids2 = np.concatenate([medoids, [len(u), len(u) + 2, len(u) + 3]])
    alone, both = estimate(sums_of(0, u, labels, medoids), NO), sums_of(0, u2, labels2, medoids2)
    parameters = estimate(both, NO)
    assert list(both.usable) == [True] * 3 + [False] * 3
    assert list(both.zeros) == [0, 0, 0, 0, 0, 2]
    np.testing.assert_array_equal(parameters.b[:3], alone.b)
    np.testing.assert_allclose(parameters.b[3:], u[u > 0].mean() / parameters.s[0])
    assert parameters.s[0] == alone.s[0]


def test_too_few_to_estimate_by() -> None:
    sums = sums_of(1, np.array([0.0, 0.0, 0.0]), np.zeros(3, dtype=int), np.array([0]))
    parameters = estimate(sums, np.array([7.0, 9.0]))
    assert (parameters.s[0], parameters.b[0]) == (0.5, 9.0)
    assert kernel_parameters(np.array([0.0, 0.0, 3.0]), np.ones(3), 4.0) == (0.5, 4.0)
    equal = sums_of(0, np.array([0.0, 2.0, 2.0, 2.0]), np.zeros(4, dtype=int), np.array([0]))
    assert np.isfinite(estimate(equal, NO).b).all()


def test_weights_of_two_are_rows_given_twice_and_batches_add_up() -> None:
    u, labels, medoids = clusters(4)
    twice = np.repeat(np.arange(len(u)), 2)
    double = sums_of(0, u[twice], labels[twice], 2 * medoids)
    weighted = sums_of(0, u, labels, medoids, np.full(len(u), 2.0))
    for name in ("counts", "means", "spreads"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(double, name), rtol=1e-10)
    assert estimate(weighted, NO).s[0] == pytest.approx(estimate(double, NO).s[0], rel=1e-10)
    whole = sums_of(0, u, labels, medoids)
    parts = [sums_of(0, u[61 * k : 61 * k + 61], np.zeros(61, dtype=int), np.array([0])) for k in range(3)]
    pooled = ClusterSums.joined(parts)
    np.testing.assert_allclose(estimate(pooled, NO).b, estimate(whole, NO).b, rtol=1e-13)


def test_gaussians_give_dimension_and_variance_back() -> None:
    r = np.random.default_rng(5)
    X = np.concatenate([[np.zeros(6)], r.normal(size=(4000, 6)) * 1.5])
    sums = sums_of(0, (X**2).sum(axis=1), np.zeros(len(X), dtype=int), np.array([0]))
    parameters = estimate(sums, NO)
    assert parameters.whole[0] == 3.0
    assert parameters.b[0] / 2.0 == pytest.approx(1.5**2, rel=0.05)
    density = log_densities(
        (X[:5] ** 2).sum(axis=1)[:, None], np.array([4.5]), np.array([3.0]), np.zeros(1), np.zeros(1, int), 1
    )
    np.testing.assert_allclose(density[:, 0], multivariate_normal.logpdf(X[:5], np.zeros(6), 2.25), rtol=1e-12)


def test_shapes_in_groups_classes_or_common() -> None:
    u, labels, medoids = clusters(6, (0.5, 0.5, 8.0, 8.0, 8.0))
    sums = sums_of(0, u, labels, medoids)
    assert list(shape_groups(sums, 2)) == [0, 0, 1, 1, 1]
    parameters = estimate(sums, NO, "grouped", 2)
    assert parameters.s[0] == parameters.s[1] < parameters.s[2] == parameters.s[3]
    classes = ClusterSums.joined(
        [sums_of(k, u[61 * k : 61 * k + 61], np.zeros(61, int), np.array([0])) for k in (0, 1)]
    )
    assert estimate(classes, NO, "class").s[0] != estimate(classes, NO).s[0]


def test_posteriors_add_to_one_whatever_underflows() -> None:
    squares = np.array([[1.0, 2.0], [1e6, 2e6], [1e300, 1e300], [np.inf, np.inf]])
    probabilities = posteriors(
        log_densities(squares, np.ones(2), np.ones(2), np.zeros(2), np.array([0, 1]), 2), np.array([0.25, 0.75])
    )
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert probabilities[1, 0] == 1.0
    np.testing.assert_allclose(probabilities[3], [0.25, 0.75])
