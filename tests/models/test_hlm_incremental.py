"""Models that grow: scheme I is the pooled statistics, scheme II with all rows is fitting anew."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.mixtures.hlm_mixture import ClusterSums, estimate
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm import incremental as hlm_incremental
from parallel_mix.models.hlm.fit import fit_hlm
from parallel_mix.models.hlm.incremental import ClassPast, Past, chosen_places, joined_models, regrouped_model
from parallel_mix.models.hlm.model import HlmModel, HlmSettings
from tests.conftest import blobs

X = blobs(400, 4, 6, seed=3)
Y = np.arange(400) % 3
X[Y == 1] += 2.0
D = cdist(X, X)
OLD, NEW = np.arange(250), np.arange(250, 400)


def fit(rows: np.ndarray, y: np.ndarray, settings: HlmSettings, classes: int = 0) -> HlmModel:
    with SerialBackend(1) as backend:
        return fit_hlm(HeldMatrix(D[np.ix_(rows, rows)]), y, settings, backend, classes=classes).model


@pytest.mark.parametrize("shape", ["common", "class", "grouped"])
def test_scheme_1_is_the_pooled_statistics(shape: str) -> None:
    settings = HlmSettings((3,), shape=shape)
    first, second = fit(OLD, Y[OLD], settings), fit(NEW, Y[NEW], settings)
    model = joined_models(first, second, settings)
    assert first.sums is not None
    assert second.sums is not None
    pooled = ClusterSums.joined([first.sums, second.sums])
    expected = estimate(pooled, first.spare, shape)
    order = np.argsort(pooled.classes, kind="stable")
    np.testing.assert_allclose(model.b, expected.b[order], rtol=1e-12)
    np.testing.assert_allclose(model.estimated, expected.s[order], rtol=1e-12)
    np.testing.assert_array_equal(model.prior, np.bincount(Y) / 400)
    assert set(model.centroids) == {*first.centroids, *(250 + second.centroids)}
    for k in range(3):
        assert model.weights[model.classes == k].sum() == pytest.approx(1.0)


def test_scheme_1_adds_a_class_and_takes_a_batch_of_one() -> None:
    settings = HlmSettings((3,))
    first = fit(OLD, Y[OLD], settings)
    y = np.full(150, 3)
    model = joined_models(first, fit(NEW, y, settings, classes=4), settings)
    assert len(model.prior) == 4
    np.testing.assert_allclose(model.prior * 400, [*np.bincount(Y[OLD]), 150])
    assert (model.classes == 3).sum() == 3
    alone = joined_models(first, fit(NEW[:1], Y[NEW[:1]], settings, classes=3), settings)
    assert len(alone.centroids) == 10
    assert np.isfinite(alone.b).all()


def test_scheme_2_with_all_rows_is_fitting_anew() -> None:
    settings = HlmSettings((2,), restarts=60)
    first, anew = fit(OLD, Y[OLD], settings), fit(np.arange(400), Y, settings)
    past = Past.of(first, D[np.ix_(OLD, OLD)], Y[OLD])
    grown = past.extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    for k in range(3):
        np.testing.assert_array_equal(grown.D[k], D[np.ix_(*2 * [np.flatnonzero(k == Y)])])
    for workers in (1, 2):
        with SerialBackend(workers) as backend:
            model, kept, which = regrouped_model(grown, first, 2, 10_000, settings, backend)
        np.testing.assert_array_equal(np.sort(model.centroids), np.sort(anew.centroids))
        np.testing.assert_allclose(np.sort(model.b), np.sort(anew.b), rtol=1e-12)
        np.testing.assert_array_equal(which, np.arange(400))
        np.testing.assert_array_equal(kept.component, Past.of(model, D, Y).component)


def test_scheme_2_samples_and_weighs() -> None:
    settings = HlmSettings((3,))
    first = fit(OLD, Y[OLD], settings)
    past = Past.of(first, D[np.ix_(OLD, OLD)], Y[OLD])
    grown = past.extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    with SerialBackend(1) as backend:
        model, kept, which = regrouped_model(grown, first, 5, 4, settings, backend)
        fewer, small, chosen = regrouped_model(grown, first, 5, 4, settings, backend, reassign=False)
    assert len(model.centroids) == len(fewer.centroids) == 15
    assert len(which) == 400
    assert len(chosen) == 150 + 9 * 5
    assert set(chosen) >= set(NEW)
    assert sum(map(len, small.D)) == 195
    for k in range(3):
        np.testing.assert_array_equal(small.D[k], D[np.ix_(chosen[small.y == k], chosen[small.y == k])])
    np.testing.assert_array_equal(model.prior, fewer.prior)
    for one, rows in ((model, which), (fewer, chosen)):
        wrong = np.mean(one.posteriors(D[:, rows[one.centroids]]).argmax(axis=1) != Y)
        assert wrong < 0.45
    np.testing.assert_array_equal(np.unique(kept.component), np.arange(15))


def test_scheme_2_has_as_many_starts_as_fitting_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, starts = HlmSettings((3,), restarts=17), []
    cluster_few = hlm_incremental.cluster_few

    def noted(D: Array, chosen: Array, w: Array, numbers: Array, k: int) -> Any:
        starts.append(numbers.shape[1])
        return cluster_few(D, chosen, w, numbers, k)

    monkeypatch.setattr(hlm_incremental, "cluster_few", noted)
    first = fit(OLD, Y[OLD], settings)
    grown = Past.of(first, D[np.ix_(OLD, OLD)], Y[OLD]).extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    with SerialBackend(1) as backend:
        regrouped_model(grown, first, 5, 4, settings, backend)
    assert starts == [17, 17, 17]


def test_what_was_dropped_goes_on_counting() -> None:
    settings, cuts = HlmSettings((3,)), [250, 300, 350, 400]
    model = fit(OLD, Y[OLD], settings)
    past = Past.of(model, D[np.ix_(OLD, OLD)], Y[OLD])
    rows = OLD
    for a, b in pairwise(cuts):
        new = np.arange(a, b)
        grown = past.extended(D[np.ix_(new, rows)], D[np.ix_(new, new)], Y[new])
        with SerialBackend(1) as backend:
            model, past, which = regrouped_model(grown, model, 3, 4, settings, backend, reassign=False)
        rows = np.concatenate([rows, new])[which]
        assert len(rows) <= 9 * 5 + 50
        np.testing.assert_allclose(np.bincount(past.y, weights=past.mass), np.bincount(Y[:b]))


def test_a_number_of_components_counts_once_though_it_is_given_twice() -> None:
    once, twice = (fit(OLD, Y[OLD], HlmSettings(counts)) for counts in ((3,), (3, 3)))
    np.testing.assert_array_equal(once.centroids, twice.centroids)
    np.testing.assert_array_equal(once.b, twice.b)


def test_rows_without_weight_are_rows_without_a_class() -> None:
    w = np.where(np.arange(400) % 7 == 0, 0.0, 1.0)
    with SerialBackend(1) as backend:
        weighted = fit_hlm(HeldMatrix(D), Y, HlmSettings((3,)), backend, w=w).model
        without = fit_hlm(HeldMatrix(D), np.where(w > 0, Y, -1), HlmSettings((3,)), backend, w=np.ones(400)).model
    np.testing.assert_array_equal(weighted.centroids, without.centroids)
    np.testing.assert_allclose(weighted.b, without.b)
    np.testing.assert_allclose(weighted.prior, without.prior)


@pytest.mark.parametrize("reassign", [True, False])
def test_classes_in_one_call_are_the_classes_step_by_step(monkeypatch: pytest.MonkeyPatch, reassign: bool) -> None:
    settings = HlmSettings((3,), restarts=7)
    first = fit(OLD, Y[OLD], settings)
    grown = Past.of(first, D[np.ix_(OLD, OLD)], Y[OLD]).extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    with SerialBackend(1) as backend:
        model, past, _ = regrouped_model(grown, first, 5, 4, settings, backend, reassign=reassign)
        monkeypatch.setattr("parallel_mix.models.hlm.incremental.fits_table", lambda n, k: False)
        other, kept, _ = regrouped_model(grown, first, 5, 4, settings, backend, reassign=reassign)
    for name in ("centroids", "b", "estimated", "weights", "spare"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    np.testing.assert_array_equal(past.component, kept.component)


def test_a_batch_of_other_precision_is_not_rounded() -> None:
    first = fit(OLD, Y[OLD], HlmSettings((3,)))
    past = Past.of(first, D[np.ix_(OLD, OLD)].astype(np.float32), Y[OLD])
    grown = past.extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    new = np.flatnonzero(Y[NEW] == 0)
    n = int((Y[OLD] == 0).sum())
    np.testing.assert_array_equal(grown.D[0][n:, n:], D[np.ix_(NEW[new], NEW[new])])
    np.testing.assert_array_equal(grown.D[0][:n, n:], D[np.ix_(OLD[Y[OLD] == 0], NEW[new])])


def test_a_sample_weighs_the_root_of_the_rows_it_stands_for() -> None:
    """sqrt((|I_j| + 1) / (v + 1)) where a cluster has more than v rows besides its centroid; all others weigh 1."""
    r = np.random.default_rng(0)
    component = np.repeat([0, 1, 2, -1], [40, 3, 9, 8])[r.permutation(60)]
    order, v = r.permutation(60), 4
    known = ClassPast(np.arange(60), np.zeros((60, 60)), component, np.ones(60), order)
    chosen, w, stands_for = chosen_places(known, v)
    expected = [i for j in range(3) for i in [k for k in order if component[k] == j][: v + 1]]
    assert list(chosen) == sorted([*expected, *np.flatnonzero(component < 0)])
    for place, weight, rows in zip(chosen, w, stands_for, strict=True):
        size = np.sum(component == component[place])
        assert weight == pytest.approx(np.sqrt(size / (v + 1)) if component[place] >= 0 and size > v + 1 else 1.0)
        assert rows == pytest.approx(weight**2)


def test_the_new_centroid_is_that_of_the_weighted_samples() -> None:
    """One component a class: the chosen row of the least sum of weighted distances from all chosen ones."""
    settings, v, by_weights = HlmSettings((1,)), 4, []
    first = fit(OLD, Y[OLD], settings)
    grown = Past.of(first, D[np.ix_(OLD, OLD)], Y[OLD]).extended(D[np.ix_(NEW, OLD)], D[np.ix_(NEW, NEW)], Y[NEW])
    with SerialBackend(1) as backend:
        model, _, chosen = regrouped_model(grown, first, 1, v, settings, backend, reassign=False)
    for k in range(3):
        rows = chosen[Y[chosen] == k]
        size = np.sum(Y[OLD] == k)
        medoids = []
        for power in (0.5, 1.0):
            w = np.where(rows < 250, (size / (v + 1)) ** power, 1.0)
            medoids.append(rows[(w @ D[np.ix_(rows, rows)]).argmin()])
        assert chosen[model.centroids[k]] == medoids[0]
        by_weights.append(medoids[0] != medoids[1])
    assert any(by_weights), "otherwise this would say nothing of the root"
