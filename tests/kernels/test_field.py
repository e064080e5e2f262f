"""The density as a field against the definition, and ascents on it."""

from __future__ import annotations

import numpy as np
import pytest

from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.field import Field, Grid, fast_length, field_of, spectrum, wider
from parallel_mix.kernels.density.field_climb import Groups, ascend_on_field, climb_on_field, settle
from parallel_mix.kernels.density.field_values import value_at
from tests.conftest import blobs

pytest.importorskip("finufft", reason="a field needs finufft")


def points_and_weights(d: int, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points about the middle of their range, weights that add to 1, and the extent."""
    X = blobs(n, d, 4, d)
    X -= (X.max(axis=0) + X.min(axis=0)) / 2
    return X, np.random.default_rng(d).dirichlet(np.ones(n)), np.ptp(X, axis=0)


def field_at(X: np.ndarray, w: np.ndarray, extent: np.ndarray, sigma: float) -> Field:
    grid = Grid.over(extent / sigma)
    return field_of(spectrum(X / sigma, w, grid), grid)


def by_definition(y: np.ndarray, X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The density, its slope, and the upper triangle of its second derivatives."""
    away = X - y
    p = w * np.exp(-0.5 * (away**2).sum(axis=1))
    bends = np.einsum("n,nj,nk->jk", p, away, away) - np.eye(len(y)) * p.sum()
    return np.concatenate([[p.sum()], p @ away, bends[np.triu_indices(len(y))]])


def values(field: Field, y: np.ndarray) -> np.ndarray | None:
    d = len(y)
    sums = np.empty(10)
    inside = value_at(field, y, np.empty((3, d, 8)), sums)
    return sums[: 1 + d + d * (d + 1) // 2] if inside else None


@pytest.mark.parametrize("d", [1, 2, 3])
def test_values_and_derivatives_are_those_of_the_definition(d: int) -> None:
    X, w, extent = points_and_weights(d)
    sigma = 0.5
    first = field_at(X, w, extent, sigma)
    fields = {sigma: first}
    for ratio in (1.1, 1.7, 2.0):
        fields[sigma * ratio] = wider(first, extent / (sigma * ratio), ratio)
    fields[4 * sigma] = wider(fields[2 * sigma], extent / (4 * sigma), 2.0)
    near = {1: 1e-6, 2: 1e-6, 3: 1e-4}[d]  # in three dimensions the nodes stand half as close
    for at, field in fields.items():
        for y in (X[:60] + np.random.default_rng(1).normal(size=(60, d))) / at:
            want = by_definition(y, X / at, w)
            if want[0] > 1e4 * field.least:
                got = values(field, y)
                assert got is not None
                np.testing.assert_allclose(got[: 1 + d], want[: 1 + d], atol=near * want[0])
                np.testing.assert_allclose(got[1 + d :], want[1 + d :], atol=100 * near * want[0])


def test_sums_over_blocks_of_points_add() -> None:
    X, w, extent = points_and_weights(2)
    grid = Grid.over(extent)
    parts = spectrum(X[:150], w[:150], grid) + spectrum(X[150:], w[150:], grid)
    np.testing.assert_allclose(parts, spectrum(X, w, grid), atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_beyond_the_grid_there_are_no_values(d: int) -> None:
    X, w, extent = points_and_weights(d)
    field = field_at(X, w, extent, 1.0)
    assert values(field, np.zeros(d)) is not None
    for beyond in (extent / 2 + 30.0, -extent / 2 - 30.0, np.full(d, np.inf), np.full(d, np.nan)):
        for k in range(d):
            y = np.zeros(d)
            y[k] = beyond[k]
            assert values(field, y) is None


def test_what_is_too_low_or_too_far_is_told() -> None:
    X, w, extent = points_and_weights(2)
    field = field_at(X, w, extent, 1.0)
    starts = np.array([[0.0, 0.0], [1e9, 0.0], extent / 2 + 6.0])
    lost = ascend_on_field(np.concatenate([X, starts]), np.zeros(len(X) + 3), field)[2]
    assert list(np.flatnonzero(lost[: len(X)])) == []
    assert list(lost[len(X) + 1 :]) == [True, True]


def test_those_that_joined_an_ascent_that_passed_a_saddle_climb_again() -> None:
    """Two starts on either side of the middle of two equal clusters, closer than a cell is wide."""
    X = np.array([[-1.5, 0.0], [1.5, 0.0]])
    field = field_at(X, np.full(2, 0.5), np.ptp(X, axis=0), 1.0)
    starts = np.array([[1e-4, 0.9], [2e-3, 0.9], [1e-4, 0.9], *np.tile([[2e-4, 0.9]], (20, 1))])
    starts[3:, 0] += np.linspace(0, 2e-3, 20)
    starts = np.concatenate([starts, starts * [-1.0, 1.0]])
    ascents, owner, lost = ascend_on_field(starts, np.full(len(starts), -2.0), field)
    assert not lost.any()
    ends = ascents.points[owner]
    np.testing.assert_array_equal(np.sign(ends[:, 0]), np.sign(starts[:, 0]))
    assert abs(ends[:, 0]).min() > 0.5


def test_a_joined_ascent_is_unsure_only_where_it_came_close_to_a_saddle_later() -> None:
    ascents, groups = Ascents.begin(np.zeros((3, 2)), np.zeros(3)), Groups.alone(3, 2)
    ascents.unsure[0] = True
    groups.owner[1:] = 0
    groups.before[1] = True
    assert not settle(ascents, groups).any()
    assert list(ascents.unsure) == [True, False, True]


def test_each_by_itself_or_together_they_end_at_the_same_modes() -> None:
    X, w, extent = points_and_weights(2, 30_000)
    field = field_at(X, w, extent, 0.6)
    together, owner, _ = ascend_on_field(X / 0.6, np.log(w), field)
    alone, groups = Ascents.begin(X / 0.6, np.log(w)), Groups.alone(len(X), 2)
    climb_on_field(alone, groups, field, np.arange(len(X)), alone.limit, alone.limit)
    assert len(np.unique(owner)) < len(X)
    gaps = np.linalg.norm(together.points[owner] - alone.points, axis=1)
    assert (gaps < 1e-2)[~(alone.unsure | together.unsure)].all()


def test_the_next_length_whose_transform_is_fast() -> None:
    fast = sorted(2**a * 3**b * 5**c for a in range(1, 20) for b in range(13) for c in range(9))
    for least in [*range(1, 400), *np.random.default_rng(0).uniform(400, 1e6, 300)]:
        assert fast_length(least) == next(length for length in fast if length >= least)
    assert fast_length(1e15) >= 1e15, "an outlier far away costs no time"
