"""Sums of kernels against the definition, in every regime."""

from __future__ import annotations

import numpy as np
import pytest

from parallel_mix.kernels.density.kernel_sums import LEFT_OUT, add_sums, kernel_sums, nearby_kernels, scale_kernels
from tests.conftest import blobs


def by_definition(starts: np.ndarray, X: np.ndarray, log_w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log f, mean step and mean squared distance, from plain differences in extended precision."""
    differences = X[None].astype(np.longdouble) - starts[:, None].astype(np.longdouble)
    squares = (differences**2).sum(axis=2)
    e = log_w - squares / 2
    top = e.max(axis=1, keepdims=True)
    p = np.exp(e - top)
    total = p.sum(axis=1)
    step = (p[:, :, None] * differences).sum(axis=1) / total[:, None]
    return top[:, 0] + np.log(total), step, (p * squares).sum(axis=1) / total


def statistics(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    total = sums[:, -3]
    return np.log(total) + sums[:, -1], sums[:, :-3] / total[:, None], sums[:, -2] / total


@pytest.mark.parametrize("d", [1, 2, 17, 64, 200])
@pytest.mark.parametrize("n", [1, 3, 300, 3000])
def test_sums_against_the_definition(n: int, d: int) -> None:
    X, starts = blobs(n, d), blobs(70, d, seed=2)
    sigma = np.sqrt(d)
    log_w = np.log(np.random.default_rng(0).dirichlet(np.ones(n)))
    kernels = scale_kernels(X, log_w, sigma)
    expected = by_definition(starts / sigma, X / sigma, log_w)
    for offset in (expected[0].astype(float), np.full(70, np.nan), np.full(70, 1e4), np.full(70, -1e4)):
        for got, want in zip(statistics(kernel_sums(starts / sigma, offset, kernels)), expected, strict=True):
            np.testing.assert_allclose(got, want.astype(float), rtol=1e-9, atol=1e-9)


def test_far_from_everything_and_in_many_dimensions_nothing_underflows() -> None:
    X = blobs(50, 300)
    kernels = scale_kernels(X, np.full(50, -np.log(50)), 0.01)
    starts = X[:5] / 0.01 + 1e4
    log_density, step, _ = statistics(kernel_sums(starts, np.full(5, np.nan), kernels))
    assert np.isfinite(log_density).all()
    assert (log_density < -1e6).all()
    expected = by_definition(starts, X / 0.01, np.full(50, -np.log(50)))[1].astype(float)
    np.testing.assert_allclose(step, expected, rtol=1e-6)


def test_clusters_a_hundred_million_bandwidths_apart() -> None:
    near = blobs(40, 2)
    X = np.vstack([near, near + 1e8])
    log_w = np.full(80, -np.log(80))
    kernels = scale_kernels(X, log_w, 1.0)
    assert kernels.direct
    got = statistics(kernel_sums(X, np.full(80, -3.0), kernels))
    for one, want in zip(got, by_definition(X, X, log_w), strict=True):
        np.testing.assert_allclose(one, want.astype(float), rtol=1e-6, atol=1e-7)


def test_sums_of_parts_add_to_the_whole() -> None:
    X, starts = blobs(900, 5), blobs(30, 5, seed=3)
    log_w = np.full(900, -np.log(900))
    whole = kernel_sums(starts, np.full(30, np.nan), scale_kernels(X, log_w, 1.0))
    cuts = [slice(0, 7), slice(7, 500), slice(500, 900)]
    parts = [kernel_sums(starts, np.full(30, np.nan), scale_kernels(X[c], log_w[c], 1.0)) for c in cuts]
    added = add_sums(add_sums(parts[0], parts[1]), parts[2])
    for one, other in zip(statistics(added), statistics(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_kernel_of_no_weight_adds_nothing() -> None:
    X = blobs(20, 3)
    with np.errstate(divide="ignore"):
        log_w = np.log(np.r_[np.zeros(10), np.full(10, 0.1)])
    with_them = kernel_sums(X, np.full(20, -2.0), scale_kernels(X, log_w, 1.0))
    without = kernel_sums(X, np.full(20, -2.0), scale_kernels(X[10:], log_w[10:], 1.0))
    for one, other in zip(statistics(with_them), statistics(without), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("slack", [0.0, 1.0])
def test_kernels_left_out_are_less_than_a_tenth_of_a_billionth(slack: float) -> None:
    X = blobs(3000, 4, 12)
    log_w = np.full(3000, -np.log(3000))
    kernels = scale_kernels(X, log_w, 0.3)
    starts = X[:40][X[:40, 0] > 0] / 0.3
    log_density = by_definition(starts, X / 0.3, log_w)[0].astype(float)
    near = nearby_kernels(starts, log_density, kernels, slack)
    assert len(near) < 2000, "something is left out"
    r = np.random.default_rng(0)
    direction = r.normal(size=starts.shape)
    moved = starts + slack * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    all_of_them = np.exp(by_definition(moved, X / 0.3, log_w)[0])
    those = np.exp(by_definition(moved, near.x, near.log_weights)[0])
    lower_bound = np.minimum(all_of_them, np.exp(log_density.astype(np.longdouble)))
    assert ((all_of_them - those) <= np.exp(-LEFT_OUT) * lower_bound).all()


@pytest.mark.parametrize("d", [1, 3, 40])
def test_coarse_sums_have_three_digits(d: int) -> None:
    X = blobs(700, d, 4)
    kernels = scale_kernels(X, np.full(700, -np.log(700)), np.sqrt(d))
    at, offset = X[:90] / np.sqrt(d), np.full(90, -3.0)
    exact = kernel_sums(at, offset, kernels)
    coarse = kernel_sums(at, offset, kernels, coarse=True)
    assert 0 < np.abs((coarse - exact) / exact[:, d, None]).max() < 1e-3


def test_kernels_too_far_for_single_precision_have_no_single_table() -> None:
    X = np.array([[0.0], [1000.0]])
    assert scale_kernels(X, np.zeros(2), 1.0).single is None
    assert scale_kernels(X, np.zeros(2), 100.0).single is not None
