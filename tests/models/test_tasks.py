"""Small tasks that are handed out together: each counts for itself, whatever a run has done before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parallel_mix.backends.inline import InlineBackend
from parallel_mix.backends.one_task import OneTask
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import Finished, TaskError
from parallel_mix.models.core.run import QuietRun, Run, State
from parallel_mix.models.core.tasks import MapOfParts, ResumableMap, part_by_part, ranges_worth, workers_for


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


class Growing(ResumableMap):
    """A task for each number; one that is even adds its half."""

    def __init__(self, numbers: list[int], state: State | None = None) -> None:
        super().__init__(list(numbers), "number", state)
        self.results: dict[int, int] = {}
        self.added: list[int] = []

    def keep(self, number: int, result: dict[str, Any]) -> None:
        self.results[number] = int(result["of"])
        part = self.tasks[number]
        self.added = [part // 2] if part % 2 == 0 and part else []

    def ready(self) -> range:
        first = len(self.tasks)
        self.tasks.extend(self.added)  # type: ignore[attr-defined]
        self.done = np.append(self.done, np.zeros(len(self.added), dtype=bool))
        return range(first, len(self.tasks))

    def arrays(self) -> dict[str, Any]:
        return {f"of/{number}": value for number, value in self.results.items()}


def test_tasks_may_be_added_because_of_results() -> None:
    tasks = Growing([8, 5, 20])
    with SerialBackend(2) as backend:
        backend.share(Recipe())
        tasks.work_off(backend, QuietRun(), square)
    assert sorted(tasks.tasks) == [1, 2, 4, 5, 5, 8, 10, 20]
    assert {10 * tasks.tasks[number] for number in tasks.results} == set(tasks.results.values())
    assert tasks.done.all()


def test_a_failure_has_the_number_of_its_task_whatever_was_done_before() -> None:
    state = {"tasks": np.array([True, False, True, False])}
    tasks = Growing([1, 5, 7, 3], state)
    with InlineBackend() as backend:
        backend.share(Recipe())
        with pytest.raises(TaskError, match=r"^Task 3 failed .*three again"):
            tasks.work_off(backend, QuietRun(), square)
    again = OneTask(3)
    again.share(Recipe())
    with pytest.raises(ValueError, match="three again"):
        Growing([1, 5, 7, 3], state).work_off(again, QuietRun(), square)
    other = OneTask(2)
    other.share(Recipe())
    with pytest.raises(Finished, match="Task 2 ran without an error"):
        Growing([1, 5, 7, 3], state).work_off(other, QuietRun(), square)


def test_a_task_of_a_later_step_is_run_alone_once_the_first_step_is_done() -> None:
    done = {"tasks": np.ones(3, dtype=bool)}
    one = OneTask(1)
    one.share(Recipe())
    Growing([1, 5, 7], done).work_off(one, QuietRun(), square)  # nothing of it is left
    with pytest.raises(ValueError, match="three again"):
        list(one.map(square, [1, 3]))
