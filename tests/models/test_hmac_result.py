"""What a result says of itself: levels, tree, numbering, default level, prediction, estimator."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from parallel_mix import HMAC
from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.families.hmac import file
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.mode_tree import distinct_rows, most_persistent, plateaus
from parallel_mix.models.hmac.prediction import predict_hmac
from parallel_mix.models.hmac.result import HmacSettings
from parallel_mix.store.results import write_tree
from tests.conftest import blobs

X = blobs(500, 3, 5, 2)


@pytest.fixture(scope="module")
def fitted() -> HMAC:
    return HMAC(levels=12, backend=None).fit(X)


@parametrize_with_checks([HMAC(levels=6)])
def test_scikit_learns_own_checks(estimator: HMAC, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def test_modes_are_numbered_by_size_density_and_row(fitted: HMAC) -> None:
    for level in fitted.levels_:
        keys = [
            (-size, -round(float(density), 9), int(np.flatnonzero(level.labels == k)[0]))
            for k, (size, density) in enumerate(zip(level.sizes, level.log_density, strict=True))
        ]
        assert keys == sorted(keys)
        assert (np.bincount(level.labels) == level.sizes).all()


def test_the_tree_leads_from_level_to_level(fitted: HMAC) -> None:
    for below, above in zip(fitted.levels_, fitted.levels_[1:], strict=False):
        assert (below.parent[below.labels] == above.labels).all()
        assert above.unchanged == (below.labels == above.labels).all()
    assert (fitted.levels_[-1].parent == -1).all()


def test_densities_are_densities(fitted: HMAC) -> None:
    level = fitted.result_.levels[5]
    sigma, shown = level.bandwidth, level.outward(fitted.result_.frame)
    squares = ((shown.modes[:, None] - X[None]) ** 2).sum(axis=2)
    f = np.exp(-squares / (2 * sigma**2)).mean(axis=1) / (2 * np.pi * sigma**2) ** 1.5
    np.testing.assert_allclose(np.exp(shown.log_density), f, rtol=1e-6)


def test_standardized_modes_and_densities_are_in_data_units() -> None:
    scale = np.array([1.0, 100.0, 0.01])
    plain = HMAC(standardize=True, levels=5).fit(X)
    scaled = HMAC(standardize=True, levels=5).fit(X * scale)
    one, other = (m.levels_[2] for m in (plain, scaled))
    np.testing.assert_allclose(one.modes * scale, other.modes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.exp(one.log_density), np.exp(other.log_density) * scale.prod(), rtol=1e-6)


def test_the_range_is_in_largest_standard_deviations() -> None:
    model = HMAC(levels=20).fit(X)
    s = X.std(axis=0, ddof=1).max()
    np.testing.assert_allclose(model.bandwidths_, np.linspace(0.1 * s, 2 * s, 20))


def test_training_points_get_their_own_labels_again(fitted: HMAC) -> None:
    for level in range(12):
        assert (fitted.predict(X, level) == fitted.levels_[level].labels).all()
    flat = HMAC(levels=5, nested=False).fit(X)
    for level in range(5):
        assert (flat.predict(X, level) == flat.levels_[level].labels).all()


def test_a_new_point_belongs_to_the_mode_it_climbs_to_not_to_the_nearest() -> None:
    r = np.random.default_rng(0)
    wide, narrow = r.normal(0, 3, (400, 1)), r.normal(7.5, 0.15, (100, 1))
    model = HMAC(bandwidths=[0.9]).fit(np.vstack([wide, narrow]))
    modes = model.modes_[:2, 0]
    point = np.array([[5.2]])
    climbed = model.predict(point, 0)[0]
    assert climbed >= 0
    assert climbed == model.levels_[0].labels[np.abs(np.vstack([wide, narrow]) - point).argmin()]
    assert modes.size == 2


def test_a_mode_to_which_no_training_point_climbs_has_the_label_minus_one() -> None:
    """The corners of a regular simplex are a mode each, and their centre is one more, with no point of its own."""
    corners, sigma = np.eye(10), 0.4
    centre = corners.mean(axis=0)
    squares = ((corners - centre) ** 2).sum(axis=1)
    curvature = (corners - centre).T @ (corners - centre) / 10 / sigma**2 - np.eye(10)
    assert np.ptp(squares) < 1e-12, "all kernels pull alike: modal EM stays there"
    assert np.linalg.eigvalsh(curvature).max() < 0, "the density falls on all sides: it is a mode"
    model = HMAC(bandwidths=[sigma, 3.0]).fit(corners)
    assert sorted(model.levels_[0].labels) == list(range(10))
    near = np.vstack([centre, 0.9 * centre + 0.1 * corners])
    assert list(model.predict(near, 0)) == [-1] * 11
    assert (model.predict(corners, 0) == model.levels_[0].labels).all()
    assert list(model.predict(near, 1)) == [0] * 11, "at a level where all is one cluster they belong to it"


def test_far_points_climb_in_log_space() -> None:
    model = HMAC(bandwidths=[1.0]).fit(X)
    far = X[:3] * 1e6
    assert (model.predict(far, 0) >= 0).all()
    high = blobs(60, 200, 2, 1)
    assert HMAC(bandwidths=[0.3]).fit(high).predict(high, 0).max() == 59


def test_prediction_is_the_same_on_every_backend(backend: Backend) -> None:
    with SerialBackend(1) as alone:
        result = fit_hmac(HeldRows(X), HmacSettings(levels=6), alone)
        expected = predict_hmac(result, HeldRows(X), X + 0.3, 3, alone)
    assert (predict_hmac(result, HeldRows(X), X + 0.3, 3, backend) == expected).all()


def test_a_level_that_is_not_there(fitted: HMAC) -> None:
    with pytest.raises(InputError, match="There is no level 12: the result has levels 0 to 11"):
        fitted.predict(X, 12)


def test_the_default_level_is_the_last_of_the_longest_plateau() -> None:
    labels = np.array([[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [0] * 6])
    ranges = plateaus([int((np.bincount(row) > 1).sum()) for row in labels])
    assert ranges == [(0, 0, 0), (1, 2, 3), (3, 3, 2), (4, 4, 1)]
    assert most_persistent(ranges, np.array([1.0, 2.0, 4.0, 8.0, 16.0])) == 2
    assert most_persistent([(0, 1, 1)], np.array([1.0, 2.0])) == 1


def test_fit_finds_the_clusters_of_an_easy_table() -> None:
    r = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 100)
    easy = np.array([[0, 0], [10, 0], [0, 10]])[truth] + r.normal(size=(300, 2))
    model = HMAC().fit(easy)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    np.testing.assert_allclose(np.sort(model.modes_.sum(axis=1)), [0, 10, 10], atol=3.0)


def test_a_thousandth_of_all_iterations_is_reported_when_the_limit_is_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parallel_mix.kernels.density.ascents.MAX_ITERATIONS", 5)
    model = HMAC(bandwidths=[1.0, 2.0]).fit(X)
    assert model.levels_[0].capped > 0
    assert any("hit the limit" in line for line in model.result_.summary())


@pytest.mark.parametrize("distance", [1e6, 1e10, 1e12])
def test_however_far_a_point_is_it_climbs_to_the_cluster_it_sees(distance: float) -> None:
    near = np.random.default_rng(0).normal(size=(50, 2))
    model = HMAC(bandwidths=[1.0]).fit(np.vstack([near, near + 30]))
    labels = model.predict(np.array([[-distance, -distance], [distance, distance]]), 0)
    assert list(labels) == [model.labels_[0], model.labels_[-1]]


def test_beyond_all_measure_is_a_sentence(fitted: HMAC) -> None:
    with pytest.raises(InputError, match="Row 2 of the new points is more than"):
        fitted.predict(np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0]]))


def test_an_unknown_approach_is_refused() -> None:
    with pytest.raises(ValueError, match="approaches 1, 2 and 3, not 7"):
        HMAC(approach=7).fit(X)


def test_an_estimator_with_a_backend_can_be_cloned() -> None:
    from sklearn.base import clone

    with SerialBackend(1) as backend:
        assert clone(HMAC(levels=3, backend=backend)).backend is backend


def test_what_the_caller_does_to_x_later_changes_nothing() -> None:
    mine = X.copy()
    model = HMAC(levels=4).fit(mine)
    expected = model.predict(X)
    mine += 100.0
    assert (model.predict(X) == expected).all()


def test_equal_rows_count_once_wherever_clusters_are_counted() -> None:
    result = HMAC(levels=8).fit(np.repeat(blobs(60, 2, 3), 3, axis=0)).result_
    assert len(result.several) == len(result.levels)
    assert [result.several[first] for first, _, _ in result.plateaus] == [count for _, _, count in result.plateaus]
    shown = [line.split() for line in result.summary()[3:11]]
    assert [int(words[3]) for words in shown] == result.several


def test_nothing_is_called_persistent_that_is_there_at_one_level_only() -> None:
    lines = HMAC(bandwidths=[0.3]).fit(X).result_.summary()
    assert "none stays from one level to the next" in lines[-1]


@pytest.mark.parametrize("standardize", [False, True])
def test_modes_of_levels_are_in_the_units_of_the_data(standardize: bool) -> None:
    X = np.random.default_rng(4).normal([500.0, -3.0], [20.0, 0.1], (80, 2))
    model = HMAC(levels=4, standardize=standardize).fit(X)
    chosen = model.levels_[model.default_level_]
    np.testing.assert_array_equal(chosen.modes, model.modes_)
    for level in model.levels_:
        assert (level.modes >= X.min(axis=0)).all()
        assert (level.modes <= X.max(axis=0)).all()
        sigma = level.bandwidth * (X.std(axis=0, ddof=1) if standardize else np.ones(2))
        gaps = (X - level.modes[0]) / sigma
        density = np.exp(-(gaps**2).sum(axis=1) / 2).mean() / (2 * np.pi * sigma.prod())
        assert np.exp(level.log_density[0]) == pytest.approx(density, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_of_several_rows_are_those_of_more_than_one_distinct_row(weighted: bool) -> None:
    r = np.random.default_rng(1)
    rows = r.integers(0, 3, (200, 2)).astype(float)
    rows[rows == 0] *= r.choice([-1.0, 1.0], (rows == 0).sum())  # a zero is a zero
    w = r.integers(0, 2, 200).astype(float) if weighted else None
    labels = [r.integers(0, k, 200).astype(np.int32) for k in (1, 40, 90)]
    counts = distinct_rows(HeldRows(rows, w), labels)
    heavy = np.ones(200, bool) if w is None else w > 0
    for some, count in zip(labels, counts, strict=True):
        distinct = [len({tuple(row + 0.0) for row in rows[heavy & (some == k)]}) for k in range(some.max() + 1)]
        assert list(count) == [min(number, 2) for number in distinct]


def test_of_many_labels_a_file_keeps_those_of_the_lowest_level(
    fitted: HMAC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "MOST_LABELS", 0)
    write_tree(tmp_path / "run.h5", "hmac", file.tree_of(fitted.result_))
    with h5py.File(tmp_path / "run.h5") as written:
        assert written["hmac/labels"].shape == (500,)
    result = file.read_clustering(tmp_path / "run.h5")
    np.testing.assert_array_equal(result.labels, fitted.result_.labels)
    assert result.summary() == fitted.result_.summary()
    monkeypatch.undo()
    write_tree(tmp_path / "all.h5", "hmac", file.tree_of(result))
    np.testing.assert_array_equal(file.read_clustering(tmp_path / "all.h5").labels, result.labels)
