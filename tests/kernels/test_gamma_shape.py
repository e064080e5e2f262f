"""The shape equation against SciPy's fits and its own properties."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import gamma

from parallel_mix.kernels.mixtures.gamma_shape import LARGEST_SHAPE, solve_shape, spread_of_logs, whole_dimension


@pytest.mark.parametrize("s", [1e-3, 0.2, 0.5, 1.0, 3.0, 50.0, 9_999.0])
def test_the_root_comes_back(s: float) -> None:
    assert solve_shape(float(np.log(s) - digamma(s))) == pytest.approx(s, rel=1e-8)


@pytest.mark.parametrize("s", [1e4 + 1, 1e5, 4.9e5])
def test_where_the_difference_cancels(s: float) -> None:
    assert solve_shape(0.5 / s + 1.0 / (12.0 * s * s)) == pytest.approx(s, rel=1e-9)


def test_it_falls_and_is_capped() -> None:
    shapes = [solve_shape(c) for c in np.logspace(-8, 3, 200)]
    assert shapes == sorted(shapes, reverse=True)
    assert shapes[0] == solve_shape(0.0) == LARGEST_SHAPE


@pytest.mark.parametrize("s", [0.4, 2.5, 20.0])
def test_one_cluster_is_scipys_fit(s: float) -> None:
    u = gamma.rvs(s, scale=3.0, size=3_000, random_state=1)
    shape, _, scale = gamma.fit(u, floc=0)
    own_shape = solve_shape(spread_of_logs(u) / len(u))
    assert own_shape == pytest.approx(shape, rel=1e-6)
    assert u.mean() / own_shape == pytest.approx(scale, rel=1e-6)


def test_squared_distances_give_dimension_and_variance_back() -> None:
    r = np.random.default_rng(0)
    for d, sigma in ((1, 0.5), (4, 2.0), (15, 1.0)):
        u = ((r.normal(size=(20_000, d)) * sigma) ** 2).sum(axis=1)
        s = solve_shape(spread_of_logs(u) / len(u))
        assert 2.0 * whole_dimension(s) == d
        assert u.mean() / s / 2.0 == pytest.approx(sigma**2, rel=0.05)


def test_weights_of_two_are_numbers_given_twice_and_sizes_do_not_matter() -> None:
    u = np.random.default_rng(1).gamma(2.0, size=40)
    assert spread_of_logs(u, np.full(40, 2.0)) == pytest.approx(spread_of_logs(np.repeat(u, 2)))
    assert spread_of_logs(u * 1e250) == pytest.approx(spread_of_logs(u))
    assert spread_of_logs(np.full(7, 3.3)) == pytest.approx(0.0, abs=1e-14)
    assert spread_of_logs(np.empty(0)) == 0.0


@pytest.mark.parametrize(("s", "whole"), [(0.1, 0.5), (0.3, 0.5), (0.74, 0.5), (0.76, 1.0), (2.5, 2.5), (2.6, 2.5)])
def test_dimensions_are_whole(s: float, whole: float) -> None:
    assert whole_dimension(s) == whole
