"""HMAC against a plain, slow oracle in float64, and what must not change the answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacResult, HmacSettings
from tests.conftest import blobs

FEW_LEVELS = {"levels": 8, "range": (0.15, 1.5)}


def climb_slowly(start: np.ndarray, X: np.ndarray, w: np.ndarray, sigma: float) -> np.ndarray:
    """One ascent of modal EM by the definition, far beyond the tolerance."""
    x = start.copy()
    for _ in range(200_000):
        e = np.log(w) - ((X - x) ** 2).sum(axis=1) / (2 * sigma**2)
        p = np.exp(e - e.max())
        new = (p / p.sum()) @ X
        length = np.sqrt(((new - x) ** 2).sum())
        x = new
        if length < 1e-9 * sigma:
            break
    return x


def group_ends(ends: np.ndarray, sigma: float) -> np.ndarray:
    """Single linkage by the definition."""
    labels = np.arange(len(ends))
    for i in range(len(ends)):
        near = np.flatnonzero(np.sqrt(((ends - ends[i]) ** 2).sum(axis=1)) <= 1e-2 * sigma)
        for old in np.unique(labels[near]):
            labels[labels == old] = labels[i]
    return np.unique(labels, return_inverse=True)[1]


def oracle(X: np.ndarray, bandwidths: np.ndarray, nested: bool = True, w: np.ndarray | None = None) -> list[np.ndarray]:
    w = np.full(len(X), 1 / len(X)) if w is None else w / w.sum()
    starts, member, levels = X, np.arange(len(X)), []
    for sigma in bandwidths:
        ends = np.array([climb_slowly(x, X, w, sigma) for x in starts])
        groups = group_ends(ends, sigma)
        labels = groups[member]
        levels.append(labels)
        if nested:
            starts = np.array([ends[groups == k][0] for k in range(groups.max() + 1)])
            member = labels
    return levels


DATA: dict[str, Callable[[], np.ndarray]] = {
    "moons, 2": lambda: make_moons(150, noise=0.08, random_state=0)[0],
    "circles, 2": lambda: make_circles(150, noise=0.05, factor=0.5, random_state=0)[0],
    "blobs, 2": lambda: blobs(160, 2, 5, 3),
    "blobs, 3": lambda: blobs(150, 3, 4, 4),
    "iris, 4": lambda: load_iris().data,
    "blobs, 8": lambda: blobs(150, 8, 6, 5),
    "wine, 13": lambda: (lambda X: (X - X.mean(0)) / X.std(0))(load_wine().data),
    "cancer, 30": lambda: (lambda X: (X - X.mean(0)) / X.std(0))(load_breast_cancer().data[:150]),
    "digits, 64": lambda: load_digits().data[:150] / 16.0,
    "blobs, 200": lambda: blobs(100, 200, 3, 6),
}


def fit(X: np.ndarray, backend: Backend | None = None, w: np.ndarray | None = None, **settings: object) -> HmacResult:
    with backend or SerialBackend(threads=1) as running:
        return fit_hmac(HeldRows(np.asarray(X, dtype=float), w), HmacSettings(**settings), running)  # type: ignore[arg-type]


def beyond_boundary(result: HmacResult, level: int) -> np.ndarray:
    """Rows not listed as boundary rows at this level or, where labels come from below, one before."""
    listed = [one.boundary for one in result.levels[: level + 1]]
    mask = np.ones(len(result.levels[0].labels), dtype=bool)
    mask[np.concatenate(listed).astype(int)] = False
    return mask


@pytest.mark.parametrize("approach", [1, 2])
@pytest.mark.parametrize("name", DATA)
def test_the_same_clusters_as_the_oracle(name: str, approach: int) -> None:
    X = DATA[name]()
    result = fit(X, approach=approach, **FEW_LEVELS)
    for level, labels in enumerate(oracle(X, result.bandwidths)):
        rows = beyond_boundary(result, level)
        assert rows.mean() > 0.95
        assert adjusted_rand_score(labels[rows], result.levels[level].labels[rows]) == 1.0, f"level {level}"


@pytest.mark.parametrize("name", ["moons, 2", "iris, 4", "blobs, 8"])
def test_flat_levels_against_the_oracle(name: str) -> None:
    X = DATA[name]()
    result = fit(X, nested=False, **FEW_LEVELS)
    for level, labels in enumerate(oracle(X, result.bandwidths, nested=False)):
        rows = beyond_boundary(result, level)
        assert adjusted_rand_score(labels[rows], result.levels[level].labels[rows]) == 1.0, f"level {level}"
        assert (result.levels[level].parent == -1).all()


def test_weights_against_the_oracle() -> None:
    X, w = blobs(120, 3, 4, 7), np.random.default_rng(0).uniform(0.1, 3.0, 120)
    for approach in (1, 2):
        result = fit(X, w=w, approach=approach, **FEW_LEVELS)
        for level, labels in enumerate(oracle(X, result.bandwidths, w=w)):
            assert adjusted_rand_score(labels, result.levels[level].labels) == 1.0


def test_weights_are_counts_of_rows() -> None:
    X, w = blobs(60, 2, 3, 8), np.random.default_rng(1).integers(0, 4, 60)
    weighted = fit(X, w=w.astype(float), **FEW_LEVELS)
    repeated = fit(np.repeat(X, w, axis=0), **FEW_LEVELS)
    np.testing.assert_allclose(weighted.bandwidths, repeated.bandwidths, rtol=1e-12)
    for one, other in zip(weighted.levels, repeated.levels, strict=True):
        assert adjusted_rand_score(np.repeat(one.labels, w), other.labels) == 1.0


SAME_PARTITION = {
    "rows shuffled": lambda X, order: (X[order], order),
    "columns permuted": lambda X, order: (X[:, ::-1], np.arange(len(X))),
    "an offset of 1e7": lambda X, order: (X + 1e7, np.arange(len(X))),
    "times 1e200": lambda X, order: (X * 1e200, np.arange(len(X))),
    "times 1e-200": lambda X, order: (X * 1e-200, np.arange(len(X))),
    "rotated": lambda X, order: (X @ np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0], np.arange(len(X))),
}


@pytest.mark.parametrize("change", SAME_PARTITION)
@pytest.mark.parametrize("approach", [1, 2])
def test_what_must_not_change_the_answer(change: str, approach: int) -> None:
    X = np.round(blobs(400, 3, 5, 9), 6)
    spread = X.std(axis=0, ddof=1).max()
    bandwidths = np.linspace(0.15, 1.5, 8) * spread
    changed, order = SAME_PARTITION[change](X, np.random.default_rng(3).permutation(len(X)))
    scale = {"times 1e200": 1e200, "times 1e-200": 1e-200}.get(change, 1.0)
    one = fit(X, bandwidths=tuple(bandwidths), approach=approach)
    other = fit(changed, bandwidths=tuple(bandwidths * scale), approach=approach)
    for level in range(8):
        assert adjusted_rand_score(one.levels[level].labels[order], other.levels[level].labels) == 1.0
        assert list(one.levels[level].sizes) == list(other.levels[level].sizes)


def test_modes_are_told_apart_by_every_coordinate() -> None:
    """Two clusters ten apart in the third coordinate only: an old program that compares two finds one."""
    r = np.random.default_rng(0)
    half = np.column_stack([r.normal(size=(30, 2)), np.zeros(30)])
    X = np.vstack([half, half + np.array([0, 0, 30])])
    for columns in ([0, 1, 2], [2, 0, 1]):
        assert len(fit(X[:, columns], bandwidths=(3.0,)).levels[0].sizes) == 2


def test_a_point_between_two_equal_modes_falls_to_one_and_is_listed() -> None:
    X = np.array([[-2.0, 0.0], [-2.1, 0.1], [-2.1, -0.1], [2.0, 0.0], [2.1, 0.1], [2.1, -0.1], [0.0, 0.0]])
    sigma = 1.45
    for approach in (1, 2):
        result = fit(X, bandwidths=(sigma,), approach=approach)
        level = result.levels[0]
        assert len(level.sizes) == 2
        assert list(level.boundary) == [6]
        moved = fit(X[:, ::-1], bandwidths=(sigma,), approach=approach)
        assert adjusted_rand_score(level.labels, moved.levels[0].labels) == 1.0


def test_both_approaches_agree_but_for_listed_rows() -> None:
    for seed in range(6):
        X = blobs(600, 2 + seed, 6, seed)
        one, two = (fit(X, approach=a, levels=10, range=(0.1, 1.2)) for a in (1, 2))
        for level in range(10):
            rows = beyond_boundary(one, level) & beyond_boundary(two, level)
            assert adjusted_rand_score(one.levels[level].labels[rows], two.levels[level].labels[rows]) == 1.0


def test_a_real_table_of_the_papers(shared_data: Callable[[str], dict[str, np.ndarray]]) -> None:
    X = shared_data("parkinsons")["X"][:, :22].astype(float)
    X = (X - X.mean(0)) / X.std(0)
    result = fit(X, **FEW_LEVELS)
    for level, labels in enumerate(oracle(X, result.bandwidths)):
        rows = beyond_boundary(result, level)
        assert adjusted_rand_score(labels[rows], result.levels[level].labels[rows]) == 1.0


@pytest.mark.parametrize("lightest", [0.0, 1e-80])
def test_a_row_of_almost_no_weight_climbs_like_any_other(lightest: float) -> None:
    """Its own kernel is no lower bound of the density worth the name."""
    r = np.random.default_rng(0)
    X = np.vstack([r.normal(0, 0.1, (504, 1)), r.normal(20, 0.1, (503, 1)), [[9.0]]])
    w = np.ones(len(X))
    w[-1] = lightest
    one, two = (fit(X, w=w, bandwidths=(0.5,), approach=a).levels[0].labels for a in (1, 2))
    assert one[-1] == two[-1] == one[0]


def test_weights_that_add_to_one_or_a_rounding_more_mean_the_same() -> None:
    X, w = blobs(100, 2), np.random.default_rng(0).uniform(0.5, 1.5, 100)
    for factor in (1.0, 1 + 2.3e-16, 1 - 2.3e-16):
        scaled = fit(X, w=w / w.sum() * factor, levels=3)
        np.testing.assert_allclose(scaled.bandwidths, fit(X, w=w / w.sum(), levels=3).bandwidths)


@pytest.mark.parametrize("name", ["oned", "disc2d", "disc3d", "cta20", "logcta20"])
def test_what_the_old_program_ships_comes_out(name: str, shared_data: Callable[[str], dict[str, np.ndarray]]) -> None:
    """The five results that R's Modalclust brings along, all ten levels of each."""
    data = shared_data("modalclust")
    X, bandwidths = data[f"{name}_X"], data[f"{name}_sigmas"]
    for approach in (1, 2):
        result = fit(X, bandwidths=tuple(bandwidths.tolist()), approach=approach, standardize=True)
        for level, labels in enumerate(data[f"{name}_labels"]):
            assert adjusted_rand_score(labels, result.levels[level].labels) == 1.0, f"level {level}"
