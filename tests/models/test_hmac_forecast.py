"""The work that a run says it has ahead: counted as it is measured, and near the truth early on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.run import HowFar, QuietRun
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacSettings
from tests.conftest import blobs


class Noted(QuietRun):
    """Keeps what every report says."""

    def __init__(self) -> None:
        self.notes: list[tuple[float, float]] = []
        self.levels: list[int] = []

    def report(self, how_far: Callable[[], HowFar]) -> None:
        done, total, text = how_far()
        self.notes.append((done, total))
        self.levels.append(int(text.removeprefix("level ").split("/")[0]))


@pytest.mark.parametrize(("approach", "density", "most"), [(1, "exact", 2.0), (2, "exact", 2.0), (2, "tree", 2.5)])
@pytest.mark.parametrize(("n", "d"), [(3_000, 2), (2_000, 6), (900, 30)])
def test_after_a_tenth_of_the_work_all_of_it_is_known_roughly(
    n: int, d: int, approach: int, density: str, most: float
) -> None:
    run = Noted()
    with SerialBackend(threads=1) as backend:
        fit_hmac(HeldRows(blobs(n, d, 9)), HmacSettings(approach=approach, density=density), backend, run)
    done, total = np.array(run.notes).T
    assert (np.diff(done) >= 0).all()
    assert (total >= done).all()
    early = np.flatnonzero(done >= 0.1 * done[-1])[0]
    assert 2 / 5 < total[early] / done[-1] < most  # on the workloads, by the clock: benchmarks/hmac_forecast.py
    assert total[-1] < 1.1 * done[-1]


def test_work_is_what_ascents_take_and_not_how_many_they_are() -> None:
    """At the first level each row is a mode and stays; at the second it climbs for some dozen steps."""
    run = Noted()
    with SerialBackend(threads=1) as backend:
        fit_hmac(HeldRows(blobs(2_000, 3, 9)), HmacSettings(bandwidths=(1e-3, 0.8), density="exact"), backend, run)
    done = np.array(run.notes)[:, 0]
    first = done[np.array(run.levels) == 1].max()
    assert first < 0.2 * done[-1]
