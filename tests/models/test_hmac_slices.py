"""Approach 3 of HMAC: nobody holds all rows, and the answer is that of the other approaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.models.core import sources
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac import climb_map, field_climbing
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacResult, HmacSettings
from tests.conftest import blobs

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
    fit(source, 3, nested=nested)
    assert max(source.asked) <= 900


def test_ascents_that_the_field_cannot_tell_go_on_by_sums_over_all_rows() -> None:
    """A few rows far out, beside a cluster that weighs a thousand million times as much."""
    X = np.concatenate([blobs(1500, 2, 3, 1), blobs(30, 2, 2, 5) + 60.0])
    w = np.concatenate([np.full(1500, 1e9), np.ones(30)])
    r = np.random.default_rng(0).permutation(1530)
    one, other = (fit(HeldRows(X[r], w[r]), approach, bandwidths=(0.4, 0.8, 1.6)) for approach in (2, 3))
    assert_same_labels(one, other)
    for a, b in zip(one.levels, other.levels, strict=True):
        near = a.modes[:, 0] > 30.0
        assert near.any()
        np.testing.assert_allclose(b.modes[near], a.modes[near], atol=1e-5)


def test_what_approach_3_cannot_do_is_a_sentence() -> None:
    with pytest.raises(InputError, match=r"one to three columns, not 4\. Leave out --approach 3"):
        fit(HeldRows(blobs(50, 4)), 3)
    with pytest.raises(InputError, match=r"takes the density from a field\. Leave out --density tree"):
        HmacSettings(approach=3, density="tree")
