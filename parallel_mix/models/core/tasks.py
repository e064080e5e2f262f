"""A map over tasks that goes on where an earlier attempt was killed.

The results of the tasks are kept in arrays with names, which go into the checkpoint together with which tasks are done.
A family says how a result is kept (`keep`) and which arrays these are (`arrays`); the loop, the failures' numbers, a
single task run by itself and the progress are here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend, Kernel, Tasks
from parallel_mix.errors import TaskError
from parallel_mix.models.core.run import HowFar, Run, State
from parallel_mix.models.core.sources import blocks_of

Arrays = dict[str, Any]
WORTH = 1e6
"""How many distances must be looked at for a task to be worth handing out: that takes some milliseconds."""


@dataclass(frozen=True)
class Chosen:
    """Some of many tasks, chosen by their numbers."""

    tasks: Tasks
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, k: int) -> Any:
        return self.tasks[self.numbers[k]]


class ResumableMap(ABC):
    """Tasks whose results are kept as they come; `state` is what an earlier run of them left, or None."""

    def __init__(self, tasks: Tasks, what: str, state: State | None) -> None:
        self.tasks, self.what = tasks, what
        self.done = np.zeros(len(tasks), dtype=bool) if state is None else np.array(state["tasks"], dtype=bool)

    @abstractmethod
    def keep(self, number: int, result: Any) -> None:
        """Keep the result of the task of this number."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """All results that were kept, as arrays with names."""

    def state(self) -> State:
        """What a checkpoint keeps: which tasks are done, and their results; enough to go on from."""
        return {"done": self.how_far()[0], "tasks": self.done, **self.arrays()}

    def how_far(self) -> HowFar:
        """How many tasks are done, of how many, and what they are."""
        count = int(self.done.sum())
        return float(count), float(len(self.tasks)), f"{self.what} {count}/{len(self.tasks)}"

    def work_off(self, backend: Backend, run: Run, kernel: Kernel) -> None:
        """Do all tasks that are left, or the one that the backend is to do alone."""
        if backend.only_task is not None and not self.done.all():  # of a later step, where all of this one is done
            backend.run_only_task(kernel, self.tasks)
        left = Chosen(self.tasks, [int(number) for number in np.flatnonzero(~self.done)])
        run.offer(self.state)
        try:
            for index, result in backend.map(kernel, left):
                self.note(left.numbers[index], result)
                left.numbers.extend(self.ready())
                run.report(self.how_far)
                run.offer(self.state)
        except TaskError as error:
            raise error.renumbered(self.number_told(left.numbers[error.failure.task])) from None

    def number_told(self, number: int) -> int:
        """The number of a task by which it can be asked for alone."""
        return number

    def ready(self) -> Sequence[int]:
        """The numbers of tasks that have been added because of a result."""
        return ()

    def note(self, number: int, result: Any) -> None:
        """Keep the result of a task, and that it is done."""
        self.keep(number, result)
        self.done[number] = True


class MapOfRows(ResumableMap):
    """Tasks that are blocks of rows (from, to); a result has an array of these rows for each of the named `outputs`."""

    def __init__(self, rows: int, at_once: int, what: str, state: State | None, **outputs: np.ndarray) -> None:
        super().__init__(blocks_of(rows, at_once), what, state)
        kept = outputs if state is None else state
        self.outputs = {name: np.array(kept[name], dtype=empty.dtype) for name, empty in outputs.items()}

    def keep(self, number: int, result: Sequence[np.ndarray]) -> None:
        """Put the rows of a block into the outputs."""
        for output, values in zip(self.outputs.values(), result, strict=True):
            output[slice(*self.tasks[number])] = values

    def arrays(self) -> Arrays:
        """The outputs, by their names."""
        return dict(self.outputs)


class MapOfParts(ResumableMap):
    """Parts whose results are arrays with names; small parts are handed out several at a time.

    `works` is the work of each part, in looks at distances.
    """

    def __init__(self, parts: Sequence[Any], works: Sequence[float], what: str, state: State | None) -> None:
        self.ranges = ranges_worth(works, WORTH)
        super().__init__([parts[some.start : some.stop] for some in self.ranges], what, state)
        self.results: dict[int, Arrays] = parts_of_state(state)
        self.count = len(parts)
        self.done = np.array([all(part in self.results for part in some) for some in self.ranges], dtype=bool)

    def keep(self, number: int, result: list[Arrays]) -> None:
        """Keep the results of a task's parts."""
        self.results.update(zip(self.ranges[number], result, strict=True))

    def arrays(self) -> Arrays:
        """The results of all parts that are done, as arrays with names such as part/3/rows."""
        return {f"part/{number}/{name}": value for number, part in self.results.items() for name, value in part.items()}

    def how_far(self) -> HowFar:
        """How many parts are done, of how many, and what they are."""
        count = len(self.results)
        return float(count), float(self.count), f"{self.what} {count}/{self.count}"

    def in_order(self) -> list[Arrays]:
        """The results of all parts, in the order of the parts."""
        return [self.results[k] for k in range(self.count)]


def workers_for(backend: Backend, works: Sequence[float]) -> Backend:
    """The workers; or this thread without them, where so little work is done before they would have heard of it."""
    return backend if sum(works) >= WORTH else backend.inline()


def each_of(context: Any, parts: Sequence[Any], kernel: Callable[[Any, Any], Arrays]) -> list[Arrays]:
    """The results of a task's parts, one after the other."""
    return [kernel(context, part) for part in parts]


def part_by_part(kernel: Callable[[Any, Any], Arrays]) -> Kernel:
    """The kernel of a task of several parts, from the kernel of a single part."""
    return partial(each_of, kernel=kernel)


def ranges_worth(works: Sequence[float], worth: float) -> list[range]:
    """The numbers 0.. of some works, cut into ranges whose works add to `worth` or more (the last may have less)."""
    ranges, first, work = [], 0, 0.0
    for number, one in enumerate(works, start=1):
        work += one
        if work >= worth or number == len(works):
            ranges.append(range(first, number))
            first, work = number, 0.0
    return ranges


def parts_of_state(state: State | None) -> dict[int, Arrays]:
    """The results of parts that a state has, by the numbers of the parts."""
    results: dict[int, Arrays] = {}
    for name, value in (state or {}).items():
        if name.startswith("part/"):
            _, number, rest = name.split("/", 2)
            results.setdefault(int(number), {})[rest] = value
    return results
