"""Sums over leaves of nearby kernels, against the definition, and ascents on them."""

from __future__ import annotations

import numpy as np
import pytest

from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import scale_kernels
from parallel_mix.kernels.density.leaves import LEAF, Leaves, leaves_of, near_kernels, room_for_sums, sums_from_leaves
from parallel_mix.kernels.density.leaves import tree_of as tree
from parallel_mix.kernels.density.modal_em import ascend
from parallel_mix.kernels.density.near_sums import room_for
from parallel_mix.kernels.density.tree_climb import TOGETHER, ascend_on_tree, find_densities
from tests.conftest import blobs


def log_terms(X: np.ndarray, log_weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The logarithms of all terms of the density at y, from plain differences."""
    terms: np.ndarray = log_weights - ((X - y) ** 2).sum(axis=1) / 2.0
    return terms


def leaves_from(X: np.ndarray, log_weights: np.ndarray | None = None) -> Leaves:
    """The kernels at X with bandwidth 1."""
    return leaves_of(tree(X, np.full(len(X), -np.log(len(X))) if log_weights is None else log_weights), 1.0)


@pytest.mark.parametrize("n", [1, 40, LEAF, LEAF + 1, 3_000])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_sums_are_those_of_the_definition(n: int, d: int, offset: float) -> None:
    r = np.random.default_rng([n, d])
    X = blobs(n, d, 5) if n > 4 else r.normal(size=(n, d))
    X = X / np.sqrt(d) + offset
    w = r.uniform(0.1, 1.0, n)
    w[1::7] = 1e-300
    leaves = leaves_from(X, np.log(w))
    for count in (1, 3, TOGETHER):
        y = X[r.integers(0, n, count)] + 0.1 * r.normal(size=(count, d))
        terms = np.array([log_terms(X, np.log(w), one) for one in y])
        log_density = np.log(np.exp(terms).sum(axis=1))
        sums = sums_from_leaves(leaves, y, np.arange(count), log_density - 0.5, 1e-6, room_for_sums(leaves, TOGETHER))
        p = np.exp(terms - log_density[:, None])
        step = np.array([p[k] @ (X - y[k]) for k in range(count)])
        spread = np.array([p[k] @ ((X - y[k]) ** 2).sum(axis=1) for k in range(count)])
        np.testing.assert_allclose(np.log(sums[:, d]), 0.5, atol=5e-6)
        np.testing.assert_allclose(sums[:, :d] / sums[:, [d]], step, atol=2e-5)
        np.testing.assert_allclose(sums[:, d + 1] / sums[:, d], spread, atol=2e-4)


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
def test_what_is_left_out_is_under_the_share(share: float) -> None:
    X = blobs(20_000, 3, 9) * 1.5
    leaves, room = leaves_from(X), room_for_sums(leaves_from(X), TOGETHER)
    which = np.arange(0, 20_000, 997)[:TOGETHER]
    terms = [log_terms(X, np.full(20_000, -np.log(20_000)), X[i]) for i in which]
    exact = np.log([np.exp(one).sum() for one in terms])
    for log_sum, i in zip(exact, which, strict=True):
        sums = sums_from_leaves(leaves, X, np.array([i]), np.full(20_000, log_sum), share, room)
        assert 1.0 - share - 1e-6 < sums[0, 3] < 1.0 + 1e-6
    assert room.pairs[0] < 10_000, "far leaves are left out"


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_kernels_near_a_point_are_all_within_reach_and_few_others(offset: float) -> None:
    X = blobs(2_000, 4, 6) + offset
    leaves, order = leaves_from(X), tree(X, np.zeros(2_000)).order
    for i in (0, 700, 1_999):
        near = near_kernels(leaves, X[i], 4.0, room_for(2_000, 4))
        squares = ((X - X[i]) ** 2).sum(axis=1)
        here = order[near.which[: near.number]]
        np.testing.assert_allclose(near.squares[: near.number], squares[here], atol=1e-7)
        assert set(np.flatnonzero(squares < 16.0)) <= set(here)
        assert near.number <= (squares < 16.1).sum() < 2_000


def test_a_density_that_nobody_knows_is_bounded_from_below() -> None:
    X, w = blobs(500, 3, 4), np.random.default_rng(0).random(500)
    leaves, new = leaves_from(X, np.log(w)), np.random.default_rng(1).uniform(-30, 30, (40, 3))
    bounds = np.full(40, np.nan)
    find_densities(leaves, new, np.arange(40), bounds)
    for k, y in enumerate(new):
        terms = log_terms(X, np.log(w), y)
        assert terms.max() - 200.0 < bounds[k] <= terms.max() + 1e-9


@pytest.mark.parametrize("height", [80.0, 86.0, 400.0, 1_000.0, 1e5])
def test_ascents_out_of_nowhere_arrive(height: float) -> None:
    """Between two far clusters the density rises by e^height, or more, in the first step."""
    gap = np.sqrt(8.0 * height)
    X = np.concatenate([blobs(30, 3) * 0.1, blobs(30, 3) * 0.1 + [gap, 0.0, 0.0]])
    starts = np.concatenate([X[:5], [[gap / 2 + shift, 0.0, 0.0] for shift in (-1e-3, 1e-6, 1e-3, 0.3)]])
    log_density = np.r_[np.full(5, -np.log(60)), np.full(4, np.nan)]
    ascents = ascend_on_tree(starts, log_density, leaves_from(X))
    assert np.isfinite(ascents.log_density).all()
    assert not ascents.capped.any()
    plain = ascend(
        Ascents.begin(starts, np.full(9, np.nan), stepwise=False), scale_kernels(X, np.full(60, -np.log(60)), 1.0)
    )
    np.testing.assert_allclose(ascents.points, plain.points, atol=2e-4)


@pytest.mark.parametrize("d", [2, 6, 12])
def test_ascents_end_where_those_by_exact_sums_do(d: int) -> None:
    X = blobs(1_500, d, 7) / np.sqrt(d) * 1.5
    w = np.random.default_rng(d).uniform(0.2, 2.0, len(X))
    weights = np.log(w / w.sum())
    leaves = leaves_from(X, weights)
    one = ascend_on_tree(X, weights, leaves)
    other = ascend(Ascents.begin(X, weights, stepwise=False), scale_kernels(X, weights, 1.0))
    np.testing.assert_allclose(one.points, other.points, atol=3e-4)
    np.testing.assert_allclose(one.log_density, other.log_density, atol=1e-5)


@pytest.mark.parametrize("apart", [1e2, 1e3, 3e3, 1e4, 1e5, 1e7])
def test_leaves_too_wide_for_single_precision_change_no_end(apart: float) -> None:
    r = np.random.default_rng(0)
    X = (apart * r.normal(size=(12, 2)))[np.repeat(np.arange(12), 24)] + 2.0 * r.normal(size=(288, 2))
    weights = np.full(288, -np.log(288))
    one = ascend_on_tree(X, weights, leaves_from(X))
    other = ascend(Ascents.begin(X, weights, stepwise=False), scale_kernels(X, weights, 1.0))
    assert not one.capped.any()
    np.testing.assert_allclose(one.points, other.points, atol=3e-4)


def test_heavy_tails_change_no_end() -> None:
    X = np.random.default_rng(5).standard_cauchy(size=(1_500, 4)) / 0.6
    weights = np.full(1_500, -np.log(1_500))
    one = ascend_on_tree(X, weights, leaves_from(X))
    other = ascend(Ascents.begin(X, weights, stepwise=False), scale_kernels(X, weights, 1.0))
    assert not one.capped.any()
    np.testing.assert_allclose(one.points, other.points, atol=3e-4)
