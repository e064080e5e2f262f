"""Small tasks that are handed out together: each counts for itself, whatever a run has done before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parallel_mix.backends.one_task import OneTask
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.run import QuietRun, Run, State
from parallel_mix.models.core.tasks import MapOfParts, part_by_part, ranges_worth, workers_for


class Recipe:
    def load(self) -> int:
        return 10


class Resumed(QuietRun):
    def __init__(self, state: State) -> None:
        self.state = state

    def restored(self) -> State:
        return self.state


def square(context: int, part: int) -> dict[str, Any]:
    if part == 3:
        raise ValueError("three again")
    return {"of": context * part, "values": np.arange(part)}


@pytest.mark.parametrize(
    "works, ranges",
    [([], []), ([1], [(0, 1)]), ([5, 5], [(0, 1), (1, 2)]), ([1, 1, 3, 1, 1], [(0, 3), (3, 5)]), ([0, 0], [(0, 2)])],
)
def test_small_parts_are_handed_out_together(works: list[float], ranges: list[tuple[int, int]]) -> None:
    assert [(task.start, task.stop) for task in ranges_worth(works, 5)] == ranges


@pytest.mark.parametrize("work", [1.0, 4e5, 1e7])
def test_parts_are_found_in_their_order_and_taken_up(work: float) -> None:
    parts = [0, 1, 2, 4, 5, 6, 7]

    def worked_off(parts: list[int], workers: int, run: Run) -> MapOfParts:
        tasks = MapOfParts(parts, [work] * 7, "part", run.restored())
        with SerialBackend(workers) as backend:
            backend.share(Recipe())
            tasks.work_off(backend, run, part_by_part(square))
        return tasks

    first = worked_off(parts, 2, QuietRun())
    assert [one["of"] for one in first.in_order()] == [10 * part for part in parts]
    assert first.state()["done"] == 7
    resumed = worked_off([3] * 7, 1, Resumed(first.state())).in_order()  # nothing is done twice: 3 would raise
    assert [one["of"] for one in resumed] == [10 * part for part in parts]
    assert all((one["values"] == np.arange(part)).all() for one, part in zip(resumed, parts, strict=True))


def test_little_work_is_done_here_and_no_other() -> None:
    with SerialBackend(2) as backend:
        assert workers_for(backend, [1e5, 1e6]) is backend
        alone = workers_for(backend, [1e5, 1e5])
        assert alone.name == "inline"
        assert alone.stop is backend.stop
    one = OneTask(0)
    assert workers_for(one, [1.0]) is one
