"""Tasks whose results are arrays with names, kept as they come; small ones are handed out several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.models.core.run import HowFar, Run, State
from parallel_mix.models.distances.tiles import work_off

Arrays = dict[str, Any]
PartKernel = Callable[[Any, Any], Arrays]
TaskKernel = Callable[[Any, Sequence[Any]], list[Arrays]]
WORTH = 1e6
"""Looks at distances that make a task worth being handed out, some milliseconds."""


def workers_for(backend: Backend, works: Sequence[float]) -> Backend:
    """The workers; or this thread alone, where it is done before they have heard of it."""
    return backend if sum(works) >= WORTH else backend.alone()


def work_off_parts(
    backend: Backend,
    run: Run,
    kernel: TaskKernel,
    parts: Sequence[Any],
    works: Sequence[float],
    what: str,
) -> list[Arrays]:
    """The results of all parts, those of an earlier attempt among them; `works` are looks at distances."""
    found, tasks = parts_of_state(run.restored()), handfuls(works, WORTH)
    done = np.array([task[-1] in found for task in tasks])

    def ledger() -> State:
        return state_of_parts(found)

    def how_far() -> HowFar:
        return float(len(found)), float(len(parts)), f"{what} {len(found)}/{len(parts)}"

    def keep(number: int, results: list[Arrays]) -> None:
        found.update(zip(tasks[number], results, strict=True))

    handed_out = [parts[task.start : task.stop] for task in tasks]
    work_off(backend, run, kernel, handed_out, done, keep, ledger, how_far)
    return [found[k] for k in range(len(parts))]


def each_of(context: Any, parts: Sequence[Any], kernel: PartKernel) -> list[Arrays]:
    """A task's parts, one after the other."""
    return [kernel(context, part) for part in parts]


def handfuls(works: Sequence[float], worth: float) -> list[range]:
    """Small things in a row, as many to a task as make it worth being handed out."""
    found, first, work = [], 0, 0.0
    for number, one in enumerate(works, start=1):
        work += one
        if work >= worth or number == len(works):
            found.append(range(first, number))
            first, work = number, 0.0
    return found


def state_of_parts(found: dict[int, Arrays]) -> State:
    """Results as arrays with names."""
    named = {f"part/{number}/{name}": value for number, part in found.items() for name, value in part.items()}
    return {"done": len(found)} | named


def parts_of_state(state: State | None) -> dict[int, Arrays]:
    """The same back."""
    found: dict[int, Arrays] = {}
    for name, value in (state or {}).items():
        if name.startswith("part/"):
            _, number, rest = name.split("/", 2)
            found.setdefault(int(number), {})[rest] = value
    return found
