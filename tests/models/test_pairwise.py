"""`pairwise` in memory, and what is found out about a matrix of distances."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

from parallel_mix import pairwise
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError, TaskError
from parallel_mix.kernels.metrics.signatures import Signatures
from parallel_mix.models.distances import checks
from parallel_mix.models.distances.checks import properties_of
from parallel_mix.models.distances.tile_layout import Layout, Tiles
from tests.conftest import blobs, signatures


class InMemory:
    """A matrix that `properties_of` can read."""

    rounding = 1e-15

    def __init__(self, D: np.ndarray, at_once: int = 256) -> None:
        self.D, self.shape, self.at_once = D, D.shape, at_once

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
        for a in range(start, stop, self.at_once):
            yield a, self.D[a : min(a + self.at_once, stop)]


@pytest.mark.parametrize("layout", [Layout(16, 16, True), Layout(16, 16), Layout(16, 48), Layout(100, 7)])
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (100, 100), (33, 33)])
def test_tiles_cover_all_pairs_once(shape: tuple[int, int], layout: Layout) -> None:
    seen = np.zeros(shape, dtype=int)
    for a, b, c, d in Tiles(layout, shape):
        seen[a:b, c:d] += 1
        if layout.halved and a != c:
            seen[c:d, a:b] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("n", [2, 600, 20_000])
@pytest.mark.parametrize("seconds", [1e-9, 1e-7, 1e-5, 1e-2, 10.0])
def test_tiles_are_as_large_as_their_cost_allows(n: int, symmetric: bool, seconds: float) -> None:
    layout = Layout.of_matrix((n, n), symmetric, 1, seconds)
    assert layout.halved == (symmetric and seconds > 2e-8)
    if layout.height == layout.width:
        assert layout.height == 1 or layout.height**2 * seconds <= 0.5
        assert layout.height == 1024 or (2 * layout.height) ** 2 * seconds >= 0.005
    assert Layout.of_matrix((n, n), symmetric, 256, seconds).height % 256 == 0
    stripes = Layout.of_neighbours((n, n), 256, seconds)
    assert stripes.height % 256 == 0
    assert Layout.of_neighbours((n, n), 1, seconds).height <= 1024


def test_in_memory_on_all_cores_and_on_one() -> None:
    X, Y = blobs(1500, 6), blobs(200, 6, seed=8)
    D = pairwise(X)
    np.testing.assert_allclose(D, cdist(X, X), rtol=1e-10)
    with SerialBackend(1) as one:
        assert np.array_equal(pairwise(X, backend=one), D)
    np.testing.assert_allclose(pairwise(X, Y, metric="cityblock"), cdist(X, Y, "cityblock"), rtol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "edit", "function"])
def test_into_what_one_has(metric: str, tmp_path: Path) -> None:
    X: Any = blobs(300, 4)
    if metric == "edit":
        X = ["".join(sorted(str(value)))[:9] for value in X[:, 0]]
    chosen: Any = (lambda x, y: abs(x - y).max()) if metric == "function" else metric
    D = pairwise(X, metric=chosen, symmetric=True)
    assert np.array_equal(D, D.T)
    kept = np.lib.format.open_memmap(tmp_path / "D.npy", "w+", np.float32, (300, 300))
    assert pairwise(X, metric=chosen, symmetric=True, out=kept) is kept
    assert np.array_equal(kept, D.astype(np.float32))
    with h5py.File(tmp_path / "D.h5", "w") as file:
        pairwise(X, metric=chosen, symmetric=True, out=file.create_dataset("D", (300, 300), "f4"))
        assert np.array_equal(file["D"], D.astype(np.float32))
    with pytest.raises(InputError, match=r"out has shape \(2, 2\)"):
        pairwise(X, metric=chosen, out=np.empty((2, 2)))


def test_categories_and_signatures() -> None:
    r = np.random.default_rng(0)
    votes, y = r.choice(["y", "n", "?"], (40, 5)), r.choice(["d", "r"], 40)
    D = pairwise(votes, metric="vdm", y=y)
    a, b = votes[0], votes[1]
    parts = [
        sum((np.mean(y[votes[:, k] == a[k]] == c) - np.mean(y[votes[:, k] == b[k]] == c)) ** 2 for c in ("d", "r"))
        for k in range(5)
    ]
    assert D[0, 1] == pytest.approx(sum(parts))
    np.testing.assert_allclose(pairwise(votes[:7], votes.astype(object), metric="vdm", y=y), D[:7], atol=1e-14)
    with pytest.raises(InputError, match="vdm needs the known classes"):
        pairwise(votes, metric="vdm")
    some = y.astype(object)
    some[[3, 5]] = None, ""
    known = [k for k in range(40) if k not in (3, 5)]
    np.testing.assert_allclose(
        pairwise(votes, metric="vdm", y=some), pairwise(votes, votes, metric="vdm", y=some), atol=1e-14
    )
    np.testing.assert_allclose(
        pairwise(votes, votes[known], metric="vdm", y=y[known])[known],
        pairwise(votes[known], metric="vdm", y=y[known]),
        atol=1e-14,
    )
    S = signatures(30, 2, 3)
    assert np.array_equal(pairwise(S, metric="mallows"), pairwise(S, metric="mallows").T)
    with pytest.raises(InputError, match=r"mallows compares Signatures.*, not ndarray"):
        pairwise(blobs(5), metric="mallows")
    with pytest.raises(InputError, match="X must be a list of texts"):
        pairwise(["a", 1], metric="edit")


BAD_SIGNATURES = {
    "no points": ({"offsets": [0, 2, 2, 3]}, "by one or more for each"),
    "past the end": ({"offsets": [0, 2, 9]}, "must rise from 0 to the number of points, 3"),
    "few weights": ({"weights": [1.0]}, "one a point"),
    "heavy": ({"weights": [2.0, 5.0, 1.0]}, "add to 7, off by"),
    "negative": ({"weights": [1.5, -0.5, 1.0]}, "not above 0"),
    "NaN": ({"values": [[0.0], [np.nan], [1.0]]}, "NaN or infinite, the first in point 2"),
}


@pytest.mark.parametrize("case", BAD_SIGNATURES)
def test_signatures_that_do_not_fit(case: str) -> None:
    change, sentence = BAD_SIGNATURES[case]
    good = {"values": [0.0, 1.0, 2.0], "weights": [0.5, 0.5, 1.0], "offsets": [0, 2, 3]}
    with pytest.raises(InputError, match=sentence):
        pairwise(Signatures(**{**good, **change}), metric="mallows")  # type: ignore[arg-type]
    assert pairwise(Signatures(**good), metric="mallows").shape == (2, 2)  # type: ignore[arg-type]


def test_a_function_must_not_change_the_rows_and_is_called_once_a_pair() -> None:
    def spoils(x: Any, y: Any) -> float:
        x /= 2.0
        return float(abs(x - y).sum())

    X = blobs(20, 2)
    with pytest.raises(TaskError, match="read-only"):
        pairwise(X, metric=spoils)
    calls = []

    def counted(x: Any, y: Any) -> float:
        calls.append(1)
        time.sleep(0.0005)
        return float(abs(x - y).sum())

    with SerialBackend(1) as one:
        pairwise(X, metric=counted, symmetric=True, backend=one)
    assert len(calls) < 0.75 * 400, "half of them, some asked for both ways, some to measure"


def test_what_no_distance_is_made_of() -> None:
    X, S = blobs(20, 2), signatures(20, 2, 1)
    large = Signatures(S.values * 1e200, S.weights, S.offsets)
    for odd, sentence in (
        ({"X": X + 1j}, "other things than numbers"),
        ({"X": coo_array(X)}, "sparse matrices are none"),
        ({"X": X * 1e200}, "too large for a number"),
        ({"X": large, "metric": "mallows"}, "too large for a number"),
        ({"X": large, "metric": "irm"}, "too large for a number"),
        ({"X": X, "out": np.empty((20, 20), dtype=int)}, "are float64 or float32"),
        ({"X": X, "backend": "dask"}, "backend must be one that runs"),
        ({"X": X, "metric": "euclidan"}, r"Perhaps euclidean\?"),
    ):
        with pytest.raises(InputError, match=sentence):
            pairwise(**odd)  # type: ignore[arg-type]


def test_an_unknown_metric_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="There is no metric 'cosin': use one of euclidean"):
        pairwise(blobs(5), metric="cosin")
    with pytest.raises(InputError, match="4 and 3 columns"):
        pairwise(blobs(5, 3), blobs(5, 4))


def test_what_a_matrix_is_like() -> None:
    X = blobs(200, 3)
    plain = properties_of(InMemory(cdist(X, X)))
    assert (plain.diagonal, plain.asymmetry, plain.violations, plain.negative) == (0.0, 0.0, 0.0, 0)
    assert plain.negative_eigenfraction is not None
    assert plain.negative_eigenfraction < 1e-6
    squared = properties_of(InMemory(cdist(X, X, "sqeuclidean")))
    assert squared.violations is not None
    assert squared.violations > 0.05, "squares break the triangle inequality"
    assert squared.negative_eigenfraction is not None
    assert squared.negative_eigenfraction > 0.01
    skew = cdist(X, X)
    skew[3, 4] += 1.0
    skew[5, 5] = -2.0
    properties = properties_of(InMemory(skew))
    assert properties.asymmetry is not None
    assert properties.asymmetry > 0.0
    assert (properties.diagonal, properties.negative) == (2.0, 1)
    assert any("not symmetric" in line for line in properties.lines())


@pytest.mark.parametrize("at_once", [1, 7, 15, 60, 256])
def test_findings_are_the_same_however_many_rows_are_read_at_once(at_once: int) -> None:
    X = blobs(60, 3)
    zero = cdist(X, X)
    odd = zero.copy()
    odd[41, 41], odd[52, 52], odd[3, 50], odd[58, 2] = -0.25, 0.125, -1.0, 1e3
    for D in (zero, odd):
        properties, others = properties_of(InMemory(D, at_once)), D[~np.eye(60, dtype=bool)]
        assert properties.diagonal == np.abs(np.diagonal(D)).max()
        assert (properties.lowest, properties.highest) == (others.min(), others.max())
        assert properties.mean == pytest.approx(others.mean())
        assert properties.negative == (D < 0).sum()


def test_the_sample_of_a_large_matrix_is_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "SAMPLE", 20)
    D = cdist(X := blobs(60, 3), X + 0.01)
    which = checks.sample_of(60, np.random.default_rng(0))
    part, whole = D[np.ix_(which, which)], properties_of(InMemory(D, 7))
    assert whole.sampled == 20
    assert whole.asymmetry == np.abs(part - part.T).max() / whole.highest
    assert whole.negative_eigenfraction == checks.negative_eigenfraction(part)


def test_a_zero_diagonal_is_zero_in_every_row() -> None:
    X = blobs(600, 2)
    lines = properties_of(InMemory(cdist(X, X))).lines()
    assert any("diagonal zero" in line for line in lines)
