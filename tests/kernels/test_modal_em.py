"""Ascents: they climb, and they end where they should."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from parallel_mix.kernels.density import modal_em
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import Array, ScaledKernels, kernel_sums, scale_kernels, unpack_moments
from parallel_mix.kernels.density.known_modes import MISS, REACH, keep_mode, least_eigenvalue, mode_ahead, no_modes
from parallel_mix.kernels.density.locality import groups_of_nearby
from parallel_mix.kernels.density.modal_em import ascend
from parallel_mix.kernels.density.mode_merging import merge_ends
from parallel_mix.kernels.density.near_sums import all_near, covariance_of, exponentials, find_near, room_for, weigh
from parallel_mix.kernels.density.newton_finish import curvature, eigen, factored
from tests.conftest import blobs


def kernels_of(X: Array, sigma: float) -> ScaledKernels:
    return scale_kernels(X, np.full(len(X), -np.log(len(X))), sigma)


def log_density(points: Array, kernels: ScaledKernels) -> Array:
    sums = kernel_sums(points, np.full(len(points), -3.0), kernels)
    logs: Array = np.log(sums[:, -3]) + sums[:, -1]
    return logs


@pytest.mark.parametrize("d", [1, 2, 8, 40])
def test_the_density_never_falls_along_an_ascent(d: int) -> None:
    X = blobs(400, d)
    sigma = 0.5 * np.sqrt(d)
    kernels = kernels_of(X, sigma)
    ascents = Ascents.begin(X / sigma, np.full(400, -np.log(400)))
    before = np.full(400, -np.inf)
    while turns := ascents.turns():
        for which, _, curved in turns:
            sums = kernel_sums(ascents.points[which], ascents.log_density[which], kernels, curved=curved)
            ascents.advance(which, sums)
        assert (ascents.log_density >= before - 1e-12).all()
        before = ascents.log_density.copy()
    assert not ascents.capped.any()


def test_an_end_is_no_end_where_a_slow_direction_is_left() -> None:
    """The ratio of two steps says nothing of a slow direction while fast ones die out: an end 2.7 bandwidths short."""
    X = np.random.default_rng(180).normal(size=(30, 2)) / 0.34
    ends = ascend(Ascents.begin(X, np.full(30, -np.log(30))), kernels_of(X, 1.0)).points
    assert merge_ends(ends)[0] == 6


def test_a_newton_finish_that_leads_astray_is_taken_back() -> None:
    ascents = Ascents.begin(np.zeros((1, 2)), np.zeros(1))
    ascents.points[0], ascents.plain[0] = [5.0, 0.0], [1.0, 0.0]
    ascents.curved[0] = ascents.finishing[0] = True
    ascents.last_step[0], ascents.log_density[0] = 0.01, -1.0
    curved_sums = np.array([[0.02, 0.0, 1.0, 0.1, 0.05, 0.0, 0.05, -2.0]])  # twice the step it had before
    ascents.advance(np.array([0]), curved_sums)
    assert list(ascents.points[0]) == [1.0, 0.0]
    assert ascents.log_density[0] == -1.0
    assert ascents.moving[0]
    assert not ascents.curved[0]


@pytest.mark.parametrize("d", [2, 8, 40])
def test_near_kernels_and_single_precision_change_no_end(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs(1500, d, 9)
    sigma = 0.35 * np.sqrt(d)
    kernels = kernels_of(X, sigma)
    begin = np.full(1500, -np.log(1500))
    fast = ascend(Ascents.begin(X / sigma, begin), kernels)
    monkeypatch.setattr(modal_em, "nearby_kernels", lambda points, log_density, kernels, slack: kernels)
    plain = ascend(Ascents.begin(X / sigma, begin), replace(kernels, single=None))
    np.testing.assert_allclose(fast.points, plain.points, atol=5e-4)
    assert (merge_ends(fast.points)[1] == merge_ends(plain.points)[1]).all()


@pytest.mark.parametrize("d", [2, 8])
def test_modes_stay_where_they_are(d: int) -> None:
    X = blobs(600, d, 6)
    sigma = 0.4 * np.sqrt(d)
    kernels = kernels_of(X, sigma)
    ends = ascend(Ascents.begin(X / sigma, np.full(600, -np.log(600))), kernels).points
    points = ends
    for _ in range(200):
        sums = kernel_sums(points, np.full(600, -3.0), kernels)
        points = points + sums[:, :-3] / sums[:, [-3]]
    assert np.abs(points - ends).max() < 2e-4


def test_an_ascent_can_be_left_and_taken_up_again() -> None:
    X = blobs(300, 3)
    kernels = kernels_of(X, 0.7)
    whole = ascend(Ascents.begin(X / 0.7, np.full(300, -np.log(300))), kernels)
    part = ascend(Ascents.begin(X / 0.7, np.full(300, -np.log(300))), kernels, leave=100)
    assert 0 < part.moving.sum() <= 100
    again = Ascents.from_state(part.state())
    np.testing.assert_allclose(ascend(again, kernels).points, whole.points, atol=2e-4)


def test_the_limit_of_iterations_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallel_mix.kernels.density.ascents.MAX_ITERATIONS", 3)
    X = blobs(100, 2)
    ascents = ascend(Ascents.begin(X, np.full(100, -np.log(100))), kernels_of(X, 1.0))
    assert ascents.iterations.max() == 3
    assert ascents.capped.any()


@dataclass
class Here:
    """What is known of some points."""

    newton: Array
    rising: Array
    curves_down: list[bool]


def look_at(steps: Array, covariances: Array) -> Here:
    here = Here(np.empty_like(steps), np.empty_like(steps), [])
    for k, (step, covariance) in enumerate(zip(steps, covariances, strict=True)):
        here.curves_down.append(curvature(covariance, step, here.newton[k], here.rising[k])[0])
    return here


def curvature_at(points: Array, kernels: ScaledKernels) -> tuple[Array, Here]:
    sums = kernel_sums(points, log_density(points, kernels), kernels, curved=True)
    d = points.shape[1]
    step = sums[:, :d] / sums[:, [d]]
    covariance = unpack_moments(sums, d) / sums[:, d, None, None] - step[:, :, None] * step[:, None, :]
    return covariance, look_at(step, covariance)


def test_a_saddle_is_known_and_left_along_the_rise() -> None:
    kernels = kernels_of(np.array([[-1.5, 0.0], [1.5, 0.0]]), 1.0)
    covariance, here = curvature_at(np.array([[0.0, 0.0], [-1.4, 0.0]]), kernels)
    np.testing.assert_allclose(covariance[0], [[2.25, 0], [0, 0]], atol=1e-12)
    assert here.curves_down == [False, True]
    np.testing.assert_allclose(here.rising, [[1, 0], [0, 0]], atol=1e-12)


def defined(X: Array, w: Array, y: Array) -> tuple[Array, Array, float]:
    """Mean from y, covariance and log of the sum of p, by their definitions."""
    gaps = X - y
    exponents = np.log(w) - (gaps**2).sum(axis=1) / 2
    p = np.exp(exponents - exponents.max())
    mean = p @ gaps / p.sum()
    return mean, (gaps - mean).T * p @ (gaps - mean) / p.sum(), float(np.log(p.sum()) + exponents.max())


@pytest.mark.parametrize(("rows", "d"), [(1, 1), (20, 1), (20, 5), (3, 30), (20, 30), (300, 3)])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_second_moments_are_those_of_the_definition(rows: int, d: int, offset: float) -> None:
    X = blobs(800, d, 3) + offset
    sigma = 0.5 * np.sqrt(d)
    kernels = kernels_of(X, sigma)
    at = X[:rows] / sigma
    covariance, _ = curvature_at(at, kernels)
    for k in range(rows):
        np.testing.assert_allclose(covariance[k], defined(X / sigma, np.ones(800), at[k])[1], atol=2e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 17, 40])
@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("reach", [np.inf, 12.0])
def test_sums_of_near_kernels_are_those_of_the_definition(d: int, offset: float, reach: float) -> None:
    r = np.random.default_rng(d)
    X, w = blobs(1300, d, 3) / (0.5 * np.sqrt(d)) + offset, r.random(1300)
    w[::7] = 1e-300
    centre = X[3] + 0.1
    near, room, sums, covariance = (
        all_near(X, np.log(w), X.mean(axis=0)),
        room_for(1300, d),
        np.empty(d + 1),
        np.empty((d, d)),
    )
    count, copied = find_near(near, centre, reach, room)
    used = room if copied else near
    for y in (centre, centre + r.normal(size=d) * 0.2 / np.sqrt(d)):
        mean, expected, log_sum = defined(X, w, y)
        total, log_density = weigh(used, count, y - used.centre, log_sum + 3.0, sums)
        assert log_density == pytest.approx(log_sum, abs=1e-9)
        covariance_of(used, count, sums, total, covariance)
        assert np.log(total) == pytest.approx(-3.0, abs=1e-9)
        np.testing.assert_allclose(sums[:d] - (y - used.centre), mean, atol=1e-9)
        np.testing.assert_allclose(covariance, expected, atol=1e-9)
        assert sums[d] == pytest.approx(np.trace(expected), abs=1e-9)


def test_kernels_far_from_the_centre_are_copied_about_a_nearer_one() -> None:
    X = blobs(300, 2)
    near, room = all_near(X, np.zeros(300), np.array([1e7, 0.0])), room_for(300, 2)
    assert find_near(near, X[0], np.inf, room) == (300, True)
    np.testing.assert_allclose(room.x.T + room.centre, X, atol=1e-8)
    assert find_near(all_near(X, np.zeros(300), X[1]), X[0], np.inf, room) == (300, False)


@pytest.mark.parametrize("d", [1, 2, 3, 17, 64])
@pytest.mark.parametrize("kind", ["any", "few", "equal", "none"])
def test_eigenvalues_and_directions_are_the_librarys(d: int, kind: str) -> None:
    r = np.random.default_rng(d)
    points = r.normal(size=({"any": 2 * d, "few": max(d // 2, 1), "equal": 0, "none": 0}[kind], d))
    J = points.T @ points / d + (1.25 * np.eye(d) if kind == "equal" else 0.0)
    values, directions = eigen(J)
    np.testing.assert_allclose(np.sort(values), np.maximum(np.linalg.eigvalsh(J), 0.0), atol=1e-12)
    np.testing.assert_allclose(directions @ directions.T, np.eye(d), atol=1e-12)
    np.testing.assert_allclose(directions @ J, values[:, None] * directions, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 17, 64])
def test_the_smallest_eigenvalue_is_the_librarys(d: int) -> None:
    points = np.random.default_rng(d).normal(size=(3 * d, d))
    J = points.T @ points
    J *= 0.9 / np.linalg.norm(J, 2)
    lower = np.empty((d, d))
    assert factored(J, lower)
    assert least_eigenvalue(lower) == pytest.approx(0.1, rel=0.1)


def test_a_known_mode_is_an_end_only_where_newtons_step_leads_there() -> None:
    J = np.diag([0.2, 0.9])
    modes, mode = no_modes(5, 2), np.array([1.0, 2.0])
    keep_mode(modes, mode, -3.0, J)
    for way, leads in (([0.03, 0.0], True), ([0.0, 0.06], True), ([0.0, 0.3], False), ([0.2, 0.3], False)):
        modes.led[:] = -1
        assert mode_ahead(modes, 0, mode - way, (np.eye(2) - J) @ way) == (0 if leads else -1), way
    # A slow direction in which the density falls towards the mode, hidden in the step by a fast one:
    assert mode_ahead(modes, 0, mode - [0.03, 0.03], np.array([0.024, -0.003])) == -1
    assert mode_ahead(modes, 0, mode - [0.03, 0.03], np.array([0.024, 0.003])) == 0
    assert mode_ahead(modes, 0, mode - [0.03, 0.03], np.array([0.024, 0.002])) == -1
    for _ in range(9):
        keep_mode(modes, mode + 5.0, -3.0, J)
    assert modes.number[0] == 5


def test_from_farther_away_two_steps_in_a_row_must_lead_to_a_known_mode() -> None:
    J = np.diag([0.2, 0.9])
    modes, near, far = no_modes(5, 2), np.zeros(2), np.array([0.0, 1.0])
    keep_mode(modes, far, -3.0, J)
    keep_mode(modes, near, -3.0, J)
    way, step = np.array([0.1, 0.2]), np.array([0.08, 0.02])
    assert [mode_ahead(modes, i, -way, step) for i in (3, 3, 2, 3)] == [-1, 1, -1, 1]
    assert mode_ahead(modes, 3, -way, -step) == -1, "not on the way any more"
    assert mode_ahead(modes, 3, -way, step) == -1


def misled(centres: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How far from a mode, in roots of 1 - J there, a step on a line leads to it that in truth goes to another."""

    def step(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = weights * np.exp(-((x[:, None] - centres) ** 2) / 2.0)
        p /= p.sum(axis=1, keepdims=True)
        return p @ centres - x, (p * (centres - (p @ centres)[:, None]) ** 2).sum(axis=1)

    x = np.linspace(centres.min() - 1.0, centres.max() + 1.0, 1_501)
    s = step(x)[0]
    modes, saddles = x[np.flatnonzero((s[:-1] > 0) & (s[1:] <= 0))], x[np.flatnonzero((s[:-1] < 0) & (s[1:] >= 0))]
    for _ in range(20):
        s, J = step(modes)
        modes = modes + s / (1.0 - J)
    edges, places = np.r_[-np.inf, saddles, np.inf], []
    for k, (mode, one_J) in enumerate(zip(modes, step(modes)[1], strict=True)):
        root = np.sqrt(max(1.0 - one_J, 1e-7))
        at = mode + np.linspace(-4.0, 4.0, 401) * root
        at = at[np.abs(at - mode) < 1.5]
        leads = np.abs(step(at)[0] / root**2 - (mode - at)) <= MISS * np.abs(mode - at)
        places.append(np.abs(at - mode)[leads & ~((at > edges[k] - 2e-2) & (at < edges[k + 1] + 2e-2))] / root)
    return np.concatenate(places)


def test_no_step_misleads_as_near_as_a_known_mode_is_looked_for() -> None:
    r, nearest = np.random.default_rng(1), np.inf
    for number in range(2_000):
        k = int(r.integers(2, 6))
        centres, weights = r.normal(0.0, r.uniform(0.8, 2.5), k), np.exp(r.uniform(-6.0, 0.0, k))
        if number % 2:
            centres, weights = (
                np.array([-1.0, 1.0]) * (1.0 + 10.0 ** r.uniform(-3, -0.3)),
                np.array([1.0, r.uniform(0.9, 1)]),
            )
        nearest = min(nearest, misled(centres, weights).min(initial=np.inf))
    assert 3.0 * REACH < nearest < np.inf


@pytest.mark.parametrize("off", [-5_000.0, -650.0, 650.0, 5_000.0])
def test_an_offset_far_off_costs_no_sum(off: float) -> None:
    X = blobs(200, 3)
    near, sums = all_near(X, np.zeros(200), X.mean(axis=0)), np.empty(4)
    mean, _, log_sum = defined(X, np.ones(200), X[7])
    _, log_density = weigh(near, 200, X[7] - near.centre, log_sum + off, sums)
    assert log_density == pytest.approx(log_sum, abs=1e-9)
    np.testing.assert_allclose(sums[:3] - (X[7] - near.centre), mean, atol=1e-9)


@pytest.mark.parametrize("height", [80.0, 86.0, 400.0, 1_000.0, 1e5])
def test_an_ascent_out_of_nowhere_arrives_and_its_neighbours_with_it(height: float) -> None:
    """Between two far clusters the density rises by e^height, or more, in the first step."""
    gap = np.sqrt(8.0 * height)
    X = np.concatenate([blobs(30, 3) * 0.1, blobs(30, 3) * 0.1 + [gap, 0.0, 0.0]])
    starts = np.concatenate([X[:5], [[gap / 2 + shift, 0.0, 0.0] for shift in (-1e-3, 1e-6, 1e-3, 0.3)]])
    ascents = ascend(Ascents.begin(starts, np.full(9, -np.log(60))), kernels_of(X, 1.0))
    assert np.isfinite(ascents.points).all()
    assert np.isfinite(ascents.log_density).all()
    assert not ascents.capped.any()
    assert merge_ends(ascents.points)[0] == 2


def test_a_point_infinitely_far_from_all_kernels_ends_where_it_is() -> None:
    X = blobs(50, 2)
    kernels = kernels_of(np.vstack([X, [[1e160, 0.0]]]), 1.0)
    kernels.log_weights[-1] = kernels.table[-1, 0] = -np.inf
    ascents = ascend(Ascents.begin(np.vstack([X, [[1e160, 0.0]]]), np.full(51, -np.log(51))), kernels)
    assert ascents.points[-1, 0] == 1e160
    assert np.isfinite(ascents.points).all()
    assert ascents.iterations.max() < 1_000


def test_exponentials_are_those_of_the_library() -> None:
    values = np.concatenate([np.linspace(-699.0, 690.0, 10_007), [0.0, -0.0, 1e-300, -1e4, -np.inf]])
    made = values.copy()
    exponentials(made, np.empty(len(values), np.int64))
    np.testing.assert_allclose(made[:-2], np.exp(values[:-2]), rtol=2e-15)
    assert (made[-2:] <= 1e-303).all()


def test_a_drift_decides_which_way_a_saddle_is_left() -> None:
    kernels = kernels_of(np.array([[-1.5, 0.0], [1.5, 0.0]]), 1.0)
    _, here = curvature_at(np.array([[-1e-6, 0.0], [1e-6, 0.0]]), kernels)
    np.testing.assert_allclose(here.rising, [[-1, 0], [1, 0]], atol=1e-9)


def test_newtons_step_leads_to_the_mode_where_the_density_is_a_parabola() -> None:
    r = np.random.default_rng(3)
    mixing = r.normal(size=(6, 4, 4))
    covariance = np.array([a @ a.T / (1.0 + np.linalg.norm(a @ a.T, 2)) for a in mixing])
    way = r.normal(size=(6, 4)) * 1e-3
    step = np.array([(np.eye(4) - c) @ w for c, w in zip(covariance, way, strict=True)])
    here = look_at(step, covariance)
    assert all(here.curves_down)
    np.testing.assert_allclose(here.newton, way, rtol=1e-4, atol=1e-7)  # curvatures are told to 1e-6


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_merging_is_single_linkage_by_the_definition(d: int) -> None:
    r = np.random.default_rng(d)
    corner = r.normal(size=(30, d)) * 5
    ends = corner[r.integers(0, 30, 300)] + r.normal(size=(300, d)) * 4e-3 / np.sqrt(d)
    ends = np.vstack([ends, corner[0] + np.linspace(0, 0.06, 8)[:, None] * np.eye(d)[0]])  # a chain
    count, labels = merge_ends(ends)
    near = np.sqrt(((ends[:, None] - ends[None]) ** 2).sum(axis=2)) <= 1e-2
    from scipy.sparse.csgraph import connected_components

    expected_count, expected = connected_components(near, directed=False)
    assert count == expected_count
    assert len(set(zip(labels, expected, strict=True))) == count
    order = r.permutation(len(ends))
    again = merge_ends(ends[order][:, ::-1])[1]
    assert len(set(zip(again, labels[order], strict=True))) == count


@pytest.mark.parametrize("n", [1, 5, 64, 1000])
def test_neighbours_are_a_partition_into_small_groups(n: int) -> None:
    groups = groups_of_nearby(blobs(n, 3), 64)
    assert max(map(len, groups)) <= 64
    assert sorted(np.concatenate(groups)) == list(range(n))
    assert len(groups) <= max(1, 2 * n // 64 + 1)


@pytest.mark.parametrize("far", [1e7, 1e12])
def test_an_ascent_from_far_away_ends_as_exactly(far: float) -> None:
    X = blobs(200, 2, 5)
    kernels = kernels_of(X, 0.5)
    directions = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0.1, 6.0, 40)])
    unknown = np.full(40, np.nan)
    near = ascend(Ascents.begin(1e5 * directions, unknown), kernels).points
    ends = ascend(Ascents.begin(far * directions, unknown), kernels).points
    assert np.abs(ends - near).max() < 5e-3


def test_groups_of_neighbours_hold_every_point_once_whatever_the_points_are() -> None:
    r = np.random.default_rng(5)
    odd = r.normal(size=(100, 3))
    odd[10:] = np.nan
    for points in (r.normal(size=(257, 4)), np.zeros((90, 2)), r.integers(0, 3, (200, 2)).astype(float), odd):
        groups = groups_of_nearby(points, 16)
        assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(len(points)))
        assert max(map(len, groups)) <= 16
