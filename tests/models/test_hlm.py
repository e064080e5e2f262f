"""Fitting HLM: against a plain one, selection, odd classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.special import digamma

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm.fit import HlmData, HlmFit, HlmRecipe, Part, fit_hlm, fit_part, fit_task, stratified_folds
from parallel_mix.models.hlm.model import KERNEL, HlmSettings
from tests.conftest import blobs

X = blobs(240, 4, 6, seed=3)
Y = np.repeat([0, 1, 2], 80)
X[Y == 1] += 1.5
D = cdist(X, X)


def fit(D: np.ndarray, y: np.ndarray, *counts: int, w: np.ndarray | None = None, **more: object) -> HlmFit:
    with SerialBackend(1) as backend:
        return fit_hlm(HeldMatrix(D), y, HlmSettings(counts, **more), backend, w=w)  # type: ignore[arg-type]


def plain_kernel_hlm(D: np.ndarray, y: np.ndarray, new: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Section 3.2, line by line, with equation (4)'s weights."""
    u, v = [], []
    for i in range(len(y)):
        near = min(D[i, j] for j in range(len(y)) if j != i and y[j] == y[i]) ** 2
        if near > 0:
            u.append(near)
            v.append(w[i])
    c = np.log(np.average(u, weights=v)) - np.average(np.log(u), weights=v)
    s = brentq(lambda s: np.log(s) - digamma(s) - c, 1e-6, 1e6)
    b = np.average(u, weights=v) / s
    whole = max(np.floor(2 * s + 0.5) / 2, 0.5)
    posteriors = []
    for row in new:
        kernel = (np.pi * b) ** -whole * np.exp(-(row**2) / b)
        densities = [(w * kernel)[y == k].sum() / w.sum() for k in range(y.max() + 1)]
        posteriors.append(np.array(densities) / sum(densities))
    return np.array(posteriors)


@pytest.mark.parametrize("w", [np.ones(240), np.random.default_rng(5).uniform(0.2, 5.0, 240)])
def test_kernel_hlm_is_the_plain_one(w: np.ndarray) -> None:
    train, test = np.arange(240) % 5 != 0, np.arange(240) % 5 == 0
    model = fit(D[np.ix_(train, train)], Y[train], KERNEL, w=w[train]).model
    new = D[np.ix_(test, train)]
    expected = plain_kernel_hlm(D[np.ix_(train, train)], Y[train], new, w[train])
    np.testing.assert_allclose(model.posteriors(new[:, model.centroids]), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("shape", ["common", "class", "grouped"])
@pytest.mark.parametrize("counts", [(KERNEL,), (4,), (1, 3, KERNEL)])
def test_the_unit_of_the_weights_has_no_say(shape: str, counts: tuple[int, ...]) -> None:
    w = np.random.default_rng(6).uniform(0.2, 5.0, 240)
    models = [fit(D, Y, *counts, w=w * unit, shape=shape).model for unit in (1.0, 1e-3, 777.0)]
    models += [fit(D, Y, *counts, shape=shape).model, fit(D, Y, *counts, w=np.full(240, 0.3), shape=shape).model]
    for one, other in ((models[0], models[1]), (models[0], models[2]), (models[3], models[4])):
        np.testing.assert_array_equal(one.centroids, other.centroids)
        for name in ("b", "s", "estimated", "weights", "prior"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)


def test_mixture_hlm_is_the_plain_one() -> None:
    """Section 3.1 from the medoids that were found."""
    model = fit(D, Y, 3).model
    u, cluster = np.zeros(240), np.zeros(240, dtype=int)
    for k in range(3):
        here, parts = np.flatnonzero(k == Y), np.flatnonzero(model.classes == k)
        cluster[here] = parts[D[np.ix_(here, model.centroids[parts])].argmin(axis=1)]
    u = D[np.arange(240), model.centroids[cluster]] ** 2
    kept = np.array([np.sum(cluster == j) >= 3 for j in range(9)])
    used = (u > 0) & kept[cluster]
    means = np.array([u[used & (cluster == j)].mean() if kept[j] else 0.0 for j in range(9)])
    counts = np.array([(used & (cluster == j)).sum() for j in range(9)])
    c = np.sum(counts[kept] * np.log(means[kept])) / counts.sum() - np.mean(np.log(u[used]))
    s = brentq(lambda s: np.log(s) - digamma(s) - c, 1e-6, 1e6)
    part = counts / (counts + 1)
    np.testing.assert_allclose(model.b, (part * means + (1 - part) * u[used].mean()) / s, rtol=1e-9)
    np.testing.assert_allclose(model.estimated, s, rtol=1e-9)
    sizes = np.bincount(cluster)
    np.testing.assert_allclose(model.weights, sizes / 80)
    each = model.weights * (np.pi * model.b) ** -model.s * np.exp(-(D[:, model.centroids] ** 2) / model.b)
    densities = np.stack([each[:, model.classes == k].sum(axis=1) for k in range(3)], axis=1)
    expected = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.posteriors(D[:, model.centroids]), expected, rtol=1e-8, atol=1e-12)


def test_selection_takes_the_smallest_error_and_then_the_smallest_model() -> None:
    selection = fit(D, Y, 1, 2, 4, KERNEL, folds=5, restarts=3)
    assert selection.errors is not None
    assert selection.errors.shape == (4, 5)
    means = selection.errors.mean(axis=1)
    candidates = (1, 2, 4, KERNEL)
    best = min(range(4), key=lambda k: (round(means[k], 12), candidates[k] or np.inf))
    assert selection.model.count == candidates[best]
    one = fit(D, Y, 4, folds=5, restarts=3).model
    if selection.model.count == 4:
        np.testing.assert_array_equal(selection.model.centroids, one.centroids)
    far = D + 100.0 * (Y[:, None] != Y)
    assert fit(far, Y, 1, 2, KERNEL, restarts=2).model.count == 1, "all are without error: the smallest"


def test_folds_are_alike() -> None:
    y = np.concatenate([np.zeros(37, int), np.ones(3, int), np.full(60, 2), np.full(5, -1)])
    folds = stratified_folds(y, 10, 0)
    assert (folds[y == -1] == -2).all()
    sizes = np.bincount(folds[y >= 0])
    assert sizes.max() - sizes.min() <= 1
    for k in (0, 2):
        of_class = np.bincount(folds[y == k], minlength=10)
        assert of_class.max() - of_class.min() <= 1


def test_odd_classes() -> None:
    """One member, fewer members than components, no class, duplicates only."""
    y = Y.copy()
    y[:5] = -1
    y[100] = 3
    y[101:103] = 4
    same = D.copy()
    same[np.ix_(range(160, 170), range(160, 170))] = 0.0
    y[160:170] = 5
    for counts in ((4,), (KERNEL,), (1, 4, KERNEL)):
        model = fit(same, y, *counts, restarts=2).model
        p = model.posteriors(same[:, model.centroids])
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.isfinite(model.b).all()
        assert (model.b > 0).all()
    with pytest.raises(InputError, match="All rows are of one class"):
        fit(D, np.zeros(240, dtype=int), 2)


def test_weights_of_two_are_rows_given_twice() -> None:
    twice = np.repeat(np.arange(240), 2)
    weighted, plain = fit(D, Y, 1, w=np.full(240, 2.0)).model, fit(D, Y, 1).model
    np.testing.assert_allclose(weighted.estimated, plain.estimated, rtol=1e-12)
    np.testing.assert_array_equal(weighted.centroids, plain.centroids)
    doubled = fit(D[np.ix_(twice, twice)], Y[twice], 1).model
    np.testing.assert_allclose(doubled.estimated, weighted.estimated, rtol=1e-9)


def test_a_paper_figure_on_the_papers_data(shared_data: Callable[[str], dict[str, np.ndarray]]) -> None:
    """Kernel HLM on voting: 6.09 (1.86) there, of 20 partitions."""
    data = shared_data("voting")
    distances, y = 1.0 - data["S"], np.unique(data["y"], return_inverse=True)[1]
    np.fill_diagonal(distances, 0.0)
    wrong = []
    for partition in range(20):
        order = np.random.default_rng(partition).permutation(len(y))
        test, train = order[: len(y) // 5], order[len(y) // 5 :]
        model = fit(distances[np.ix_(train, train)], y[train], KERNEL).model
        guess = model.posteriors(distances[np.ix_(test, train[model.centroids])]).argmax(axis=1)
        wrong.append(100.0 * np.mean(guess != y[test]))
    assert abs(np.mean(wrong) - 6.09) < 1.86


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_classes_in_one_call_are_the_classes_one_by_one(kind: type) -> None:
    """To the last bit: of one row and of none, with ties, weights of zero, folds, more components than rows."""
    r, settings = np.random.default_rng(0), HlmSettings((1, 2, 5, 9), restarts=7)
    points = r.integers(0, 4, (150, 2))
    D = (cdist(points, points) + np.triu(r.random((150, 150)) < 0.1)).astype(kind)
    y = np.concatenate([np.zeros(90), np.full(40, 1), np.full(15, 3), np.full(4, 4), [5]]).astype(int)
    for w in (None, r.integers(0, 3, 150) * r.random(150)):
        data = HlmData(HlmRecipe(HeldMatrix(D), y, 7, w, r.integers(0, 3, 150)))
        parts = [Part(fold, number, settings.components) for fold in (0, 2, -1) for number in range(7)]
        for one, part in zip(fit_task(data, parts, settings), parts, strict=True):
            expected = fit_part(data, part, settings)
            assert one.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(one[name], value)


def test_a_number_of_components_is_fitted_alike_alone_and_among_others() -> None:
    r = np.random.default_rng(0)
    even = cdist(*2 * [r.random((120, 2))])
    data = HlmData(HlmRecipe(HeldMatrix(even), np.arange(120) % 2, 2, None, np.full(120, -2)))

    def medoids(counts: tuple[int, ...], seed: int = 0) -> np.ndarray:
        table = fit_part(data, Part(-1, 1, counts), HlmSettings(counts, restarts=1, seed=seed))["clusters"]
        return np.asarray(table[1, table[0] == 12])

    for counts in ((12, 15), (2, 12), (KERNEL, 12, 30)):
        np.testing.assert_array_equal(medoids(counts), medoids((12,)))
    assert not np.array_equal(medoids((12,), seed=1), medoids((12,))), "otherwise this would say nothing"


@pytest.mark.parametrize("n, k", [(1, 1), (5, 1), (5, 5), (40, 7)])
def test_starts_are_drawn_alike_often(n: int, k: int) -> None:
    starts = draw_starts(np.random.default_rng(0).random((k + 3, 20_000)), n, k)
    assert (np.diff(starts, axis=1) > 0).all()
    np.testing.assert_allclose(np.bincount(starts.ravel(), minlength=n) / 20_000, k / n, atol=0.02)
    first = np.bincount(starts[:, 0], minlength=n) / 20_000
    assert first[0] == pytest.approx(k / n, abs=0.02)


@pytest.mark.parametrize("n, k", [(1, 1), (5, 5), (9, 4), (40, 7)])
def test_a_start_is_a_shuffle_by_its_own_numbers_whatever_is_drawn_beside_it(n: int, k: int) -> None:
    numbers = np.random.default_rng(n).random((k + 1, 30))
    for start, own in zip(draw_starts(numbers, n, k), numbers.T, strict=True):
        places = list(range(n))
        for j in range(k):
            other = j + int(own[j] * (n - j))
            places[j], places[other] = places[other], places[j]
        assert list(start) == sorted(places[:k])
    order = np.random.default_rng(0).permutation(30)
    np.testing.assert_array_equal(
        draw_starts(numbers, n, k)[order], draw_starts(np.ascontiguousarray(numbers[:, order]), n, k)
    )


@pytest.mark.parametrize("candidate", [1, KERNEL])
def test_no_model_has_seen_the_rows_it_is_tested_on(candidate: int) -> None:
    """What cross-validation says of a fold is what a model says that is fitted on the other folds' rows alone."""
    y = np.where(np.arange(60) % 13 == 0, -1, Y[::4])
    points = X[::4]
    distances = cdist(points, points)
    validation = fit(distances, y, candidate, folds=4, validate=True)
    folds = stratified_folds(y, 4, 0)
    assert validation.errors is not None
    assert validation.held_out is not None
    for fold in range(4):
        train, test = np.flatnonzero((folds != fold) & (y >= 0)), np.flatnonzero(folds == fold)
        alone = fit(distances[np.ix_(train, train)], y[train], candidate).model
        expected = alone.posteriors(distances[np.ix_(test, train[alone.centroids])])
        np.testing.assert_allclose(validation.held_out[test], expected, rtol=1e-9, atol=1e-12)
        assert validation.errors[0, fold] == pytest.approx(np.mean(expected.argmax(axis=1) != y[test]))
    assert np.isnan(validation.held_out[y < 0]).all()
