"""Approach 3 of HMAC: nobody holds all rows, and the answer is that of the other approaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.models.core import sources
from parallel_mix.models.core.run import QuietRun, State
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac import climb_map, climbing, field_climbing, levels, prediction
from parallel_mix.models.hmac.density_choice import left_where_they_are
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.points import measure_frame
from parallel_mix.models.hmac.prediction import predict_hmac
from parallel_mix.models.hmac.result import HmacResult, HmacSettings
from parallel_mix.progress import Progress
from parallel_mix.runs import reader
from parallel_mix.store import tables
from tests.conftest import blobs, parallel_mix

LADDER = {"levels": 6, "range": (0.1, 1.5)}


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slices and several sums also of few rows."""
    monkeypatch.setattr(climb_map, "ROWS_A_SLICE", 700)
    monkeypatch.setattr(field_climbing, "ROWS_A_SUM", 900)


def fit(source: Any, approach: int, backend: Backend | None = None, **options: Any) -> HmacResult:
    settings = HmacSettings(approach=approach, density="field", **{**LADDER, **options})
    if backend is not None:
        return fit_hmac(source, settings, backend)
    with SerialBackend(1) as alone:
        return fit_hmac(source, settings, alone)


def assert_same_labels(one: HmacResult, other: HmacResult) -> None:
    """Equal labels but for listed rows; a nested level keeps what was decided below it."""
    listed = np.zeros(one.levels[0].rows, dtype=bool)
    for a, b in zip(one.levels, other.levels, strict=True):
        listed[a.boundary] = listed[b.boundary] = True
        assert len(a.sizes) == len(b.sizes)
        assert adjusted_rand_score(a.labels[~listed], b.labels[~listed]) == 1.0
    assert listed.sum() < 0.02 * len(listed)


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_labels_are_those_of_approach_2(d: int, weighted: bool, nested: bool) -> None:
    X = blobs(3000, d, 5, 3)
    w = np.random.default_rng(d).uniform(0.0, 2.0, 3000) if weighted else None
    assert_same_labels(*(fit(HeldRows(X, w), approach, nested=nested) for approach in (2, 3)))


def test_the_bits_are_the_same_everywhere(backend: Backend) -> None:
    X = blobs(3000, 2, 5, 3)
    expected, got = fit(HeldRows(X), 3), fit(HeldRows(X), 3, backend)
    for a, b in zip(expected.levels, got.levels, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.modes, b.modes)
        np.testing.assert_array_equal(a.boundary, b.boundary)


@dataclass(frozen=True)
class Watched:
    """Rows of which it is kept how many were asked for at a time."""

    held: HeldRows
    asked: list[int] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, int]:
        return self.held.shape

    def rows(self, start: int, stop: int) -> np.ndarray:
        self.asked.append(stop - start)
        return self.held.rows(start, stop)

    def weights(self, start: int = 0, stop: int | None = None) -> np.ndarray | None:
        return self.held.weights(start, stop)


@pytest.mark.parametrize("nested", [True, False])
def test_nobody_asks_for_all_rows(nested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ROWS_A_BLOCK", 500)
    source = Watched(HeldRows(blobs(3000, 2, 5, 3)))
    result = fit(source, 3, nested=nested)
    with SerialBackend(1) as alone:
        labels = predict_hmac(result, source, source.held.X, 2, alone)
    assert max(source.asked) <= 900
    assert (labels == result.levels[2].labels).mean() > 0.99


def test_ascents_that_the_field_cannot_tell_go_on_by_sums_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows far out, beside a cluster that weighs a thousand million times as much."""
    X = np.concatenate([blobs(1500, 2, 3, 1), blobs(30, 2, 2, 5) + 60.0])
    w = np.concatenate([np.full(1500, 1e9), np.ones(30)])
    r = np.random.default_rng(0).permutation(1530)
    climbed: list[int] = []
    by_steps = climbing.climb_by_steps

    def counted(backend: Backend, n: int, sigma: float, ascents: Ascents) -> Iterator[None]:
        climbed.append(len(ascents.points))
        yield from by_steps(backend, n, sigma, ascents)

    monkeypatch.setattr(levels, "climb_by_steps", counted)
    monkeypatch.setattr(prediction, "climb_by_steps", counted)
    one, other = (fit(HeldRows(X[r], w[r]), approach, bandwidths=(0.4, 0.8, 1.6)) for approach in (2, 3))
    assert len(climbed) == 3
    assert min(climbed) > 0
    assert_same_labels(one, other)
    for a, b in zip(one.levels, other.levels, strict=True):
        near = a.modes[:, 0] > 30.0
        assert near.any()
        np.testing.assert_allclose(b.modes[near], a.modes[near], atol=1e-5)
    with SerialBackend(1) as alone:
        new = X + 0.01
        of_one, of_other = (predict_hmac(result, HeldRows(X[r], w[r]), new, 0, alone) for result in (one, other))
    assert len(climbed) == 4
    assert adjusted_rand_score(of_one, of_other) > 0.99
    far = X[:, 0] > 30.0
    assert (of_other[far] >= 0).all()
    assert adjusted_rand_score(of_one[far], of_other[far]) == 1.0


class Killed(Exception):
    pass


class KilledIn(QuietRun):
    """Ends a run at the first offer of a state with a name in it, or keeps what was offered last."""

    def __init__(self, name: str = "", state: State | None = None) -> None:
        self.name, self.begun, self.latest = name, state, dict

    def restored(self) -> State | None:
        return self.begun

    def offer(self, state: Callable[[], State]) -> None:
        self.latest = state
        if self.name and self.name in state():
            raise Killed


@pytest.mark.parametrize("approach", [2, 3])
def test_points_go_on_from_any_checkpoint(approach: int) -> None:
    """One that was kept among ascents that left the field, and one that is made after the ascents have ended."""
    X = np.concatenate([blobs(1500, 2, 3, 1), blobs(30, 2, 2, 5) + 60.0])
    source = HeldRows(X, np.concatenate([np.full(1500, 1e9), np.ones(30)]))
    result = fit(source, approach, bandwidths=(0.4,))
    new = X[np.random.default_rng(0).permutation(1530)] + 0.01

    def labels(run: QuietRun) -> np.ndarray:
        with SerialBackend(1) as alone:
            return predict_hmac(result, source, new, 0, alone, run)

    late = KilledIn()
    expected = labels(late).copy()
    np.testing.assert_array_equal(labels(KilledIn(state=late.latest())), expected)
    if approach == 3:
        killed = KilledIn("ascents/points")
        with pytest.raises(Killed):
            labels(killed)
        resumed = KilledIn("nothing of this name", killed.latest())
        np.testing.assert_array_equal(labels(resumed), expected)
        assert "ascents/points" in resumed.latest()


def test_what_approach_3_cannot_do_is_a_sentence() -> None:
    with pytest.raises(InputError, match=r"one to three columns, not 4\. Leave out --approach 3"):
        fit(HeldRows(blobs(50, 4)), 3)
    with pytest.raises(InputError, match=r"takes the density from a field\. Leave out --density tree"):
        HmacSettings(approach=3, density="tree")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Rows and weights in HDF5."""
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["X"] = blobs(3000, 2, 5, 3)
        file["w"] = np.random.default_rng(0).uniform(0.5, 2.0, 3000)
        file["flat"] = np.arange(3000.0)
    return tmp_path / "t.h5"


def test_rows_that_stay_in_their_file_are_the_same_table(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS_A_CHECK", 700)
    whole, left = tables.read_table(stored), tables.read_table(stored, leave_from=0)
    assert left.stored is not None
    assert (left.count, left.X.shape) == (3000, (0, 2))
    assert tables.digest(left) == tables.digest(whole)
    np.testing.assert_array_equal(left.stored.rows(5, 9), whole.X[5:9])
    for selection in (tables.Selection(columns=("1",)), tables.Selection("flat")):
        assert tables.read_table(stored, selection, leave_from=0).stored is None


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("X", (2500, 1), np.nan, "NaN or infinite, the first in row 2501, column 2"),
        ("w", 1700, -1.0, "row 1701 has -1"),
        ("w", 1700, np.inf, "first in row 1701"),
        ("w", slice(None), 0.0, "all zero"),
    ],
)
def test_bad_rows_that_stay_in_their_file_are_sentences(
    stored: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: Any, value: float, words: str
) -> None:
    monkeypatch.setattr(tables, "ROWS_A_CHECK", 700)
    with h5py.File(stored, "a") as file:
        file[name][place] = value
    with pytest.raises(InputError, match=words):
        tables.read_table(stored, leave_from=0)
    with h5py.File(stored, "a") as file:
        del file["w"]
        file["w"] = np.ones(7)
    if name == "w":
        with pytest.raises(InputError, match="one for each of the 3000 rows"):
            tables.read_table(stored, leave_from=0)


def test_the_command_leaves_rows_in_their_file_and_what_comes_of_it_can_be_used(stored: Path, tmp_path: Path) -> None:
    two, three = tmp_path / "two.h5", tmp_path / "three.h5"
    for out, more in ((two, ["--density", "field"]), (three, ["--approach", "3"])):
        done = parallel_mix("hmac", stored, "-o", out, "--levels", 5, *more)
        assert done.returncode == 0, done.stderr
    with h5py.File(two) as one, h5py.File(three) as other:
        assert (one["hmac/labels"][()] == other["hmac/labels"][()]).all()
        assert len(other["data/X"]) == 0
        assert one["data"].attrs["digest"] == other["data"].attrs["digest"]
    assert "by approach 3; density from a field" in parallel_mix("info", three).stdout
    for words in (["predict", three, stored, "-o", tmp_path / "p.csv"], ["plot", three, "-o", tmp_path / "figures"]):
        done = parallel_mix(*words)
        assert done.returncode == 0, done.stderr
    labels = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1, dtype=int)[:, 1]
    with h5py.File(three) as other:
        level = int(other["hmac"].attrs["default_level"])
        assert (labels == other["hmac/labels"][level]).mean() > 0.999


def test_rows_that_stay_in_their_file_go_by_approach_3_where_a_field_can_be() -> None:
    def chosen(d: int, **options: Any) -> int:
        frame = measure_frame(HeldRows(blobs(200, d)), False)
        return left_where_they_are(HmacSettings(bandwidths=(0.5,), **options), frame).approach

    assert [chosen(2), chosen(2, density="field"), chosen(2, density="tree"), chosen(4)] == [3, 3, 2, 2]


@pytest.mark.parametrize("weights", [None, "w"])
def test_workers_measure_the_frame_to_the_last_bit(
    stored: Path, backend: Backend, weights: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROWS_A_BLOCK", 500)
    monkeypatch.setattr(reader, "BLOCKS_A_TASK", 2)
    table = tables.read_table(stored, tables.Selection(weights=weights), leave_from=0)
    if weights is None:
        table.stored = replace(table.stored, weights_dataset=None)
    of_blocks = reader.InputReader(backend, Progress(quiet=True), tables.Selection()).of_blocks(table)
    assert of_blocks is not None
    one, other = measure_frame(table.stored, True), measure_frame(table.stored, True, of_blocks)
    for name in ("centre", "scale", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
