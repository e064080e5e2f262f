"""Small tasks that are handed out together: each counts for itself, whatever a run has done before."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from parallel_mix.backends.one_task import OneTask
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.parts import (
    each_of,
    handfuls,
    parts_of_state,
    state_of_parts,
    work_off_parts,
    workers_for,
)
from parallel_mix.models.core.run import QuietRun, State


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
    "works, found",
    [([], []), ([1], [(0, 1)]), ([5, 5], [(0, 1), (1, 2)]), ([1, 1, 3, 1, 1], [(0, 3), (3, 5)]), ([0, 0], [(0, 2)])],
)
def test_handfuls(works: list[float], found: list[tuple[int, int]]) -> None:
    assert [(task.start, task.stop) for task in handfuls(works, 5)] == found


@pytest.mark.parametrize("work", [1.0, 4e5, 1e7])
def test_parts_are_found_in_their_order_and_taken_up(work: float) -> None:
    parts, kernel = [0, 1, 2, 4, 5, 6, 7], partial(each_of, kernel=square)
    with SerialBackend(2) as backend:
        backend.share(Recipe())
        found = work_off_parts(backend, QuietRun(), kernel, parts, [work] * 7, "part")
    assert [one["of"] for one in found] == [10 * part for part in parts]
    state = state_of_parts(dict(enumerate(found)))
    assert state["done"] == 7
    again = parts_of_state(state)
    assert all((again[k]["values"] == np.arange(part)).all() for k, part in enumerate(parts))
    with SerialBackend(1) as backend:  # nothing is done twice: 3 would raise
        backend.share(Recipe())
        resumed = work_off_parts(backend, Resumed(state), kernel, [3] * 7, [work] * 7, "part")
    assert [one["of"] for one in resumed] == [10 * part for part in parts]


def test_little_work_is_done_here_and_no_other() -> None:
    with SerialBackend(2) as backend:
        assert workers_for(backend, [1e5, 1e6]) is backend
        alone = workers_for(backend, [1e5, 1e5])
        assert alone.name == "inline"
        assert alone.stop is backend.stop
    one = OneTask(0)
    assert workers_for(one, [1.0]) is one
