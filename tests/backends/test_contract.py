"""What every backend promises, on each of them. Under mpirun (see tests/mpi) the same tests run on ranks."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from parallel_mix.backends.base import Backend
from parallel_mix.errors import Stopped, TaskError


@dataclass(frozen=True)
class Constant:
    """A recipe that loads a value."""

    value: Any

    def load(self) -> Any:
        return self.value


def plus_context(context: Any, task: Any) -> Any:
    return context + task


def slow_double(context: Any, task: float) -> float:
    time.sleep(task)
    return 2 * task


def fail_on_three(context: Any, task: int) -> int:
    if task == 3:
        raise ValueError("three is too many")
    return task


def random_vector(context: Any, task: int) -> np.ndarray:
    return np.random.default_rng(task).normal(size=100) * 10.0 ** (task % 7)


def scaled(context: Any, task: int, by: float) -> float:
    return task * by


def size_of(context: np.ndarray, task: int) -> int:
    return context.nbytes + task


def add(a: Any, b: Any) -> Any:
    return a + b


def test_map_yields_every_index_once(backend: Backend) -> None:
    backend.share(Constant(10))
    assert dict(backend.map(plus_context, list(range(50)))) == {k: k + 10 for k in range(50)}


def test_map_yields_as_they_finish(backend_of_workers: Backend) -> None:
    backend = backend_of_workers
    backend.share(Constant(0))
    order = [index for index, _ in backend.map(slow_double, [0.5, 0.01, 0.01, 0.01])]
    assert sorted(order) == [0, 1, 2, 3]
    assert order[0] != 0, "a slow first task does not hold up the others"


@pytest.mark.parametrize("count", [0, 1])
def test_map_of_none_and_one(backend: Backend, count: int) -> None:
    backend.share(Constant(1))
    assert list(backend.map(plus_context, [5] * count)) == [(0, 6)][:count]


def test_tasks_may_grow(backend: Backend) -> None:
    backend.share(Constant(0))
    tasks = [3]
    results = []
    for _, result in backend.map(plus_context, tasks):
        results.append(result)
        if result > 0:
            tasks.extend([result - 1] * 2)
    assert sorted(results) == sorted([3] + [2] * 2 + [1] * 4 + [0] * 8)


def test_a_kernel_brings_what_its_call_needs(backend: Backend) -> None:
    backend.share(Constant(0))
    assert dict(backend.map(partial(scaled, by=0.5), [2, 4])) == {0: 1.0, 1: 2.0}


def test_a_big_context_travels_once(backend: Backend) -> None:
    backend.share(Constant(np.zeros(1_000_000)))
    assert dict(backend.map(size_of, [0, 1, 2])) == {k: 8_000_000 + k for k in range(3)}


def test_a_second_share_replaces_the_first(backend: Backend) -> None:
    for value in (1, 2):
        backend.share(Constant(value))
        assert dict(backend.map(plus_context, [0])) == {0: value}


def test_a_signal_waits_for_what_is_to_be_kept(backend: Backend) -> None:
    """From the first `share` on: a rank that left where it stood would leave others waiting, or a result unwritten."""
    backend.share(Constant(1))
    assert backend.stop.deferred


def test_what_workers_did_counts_over_all_shares(backend_of_workers: Backend) -> None:
    backend = backend_of_workers
    backend.share(Constant(0))
    before = sum(one.tasks for one in backend.usage())
    for count in (5, 3):
        backend.share(Constant(1))
        assert len(dict(backend.map(plus_context, list(range(count))))) == count
    assert sum(one.tasks for one in backend.usage()) - before >= 8, "ranks count loading, too"


def test_a_raising_task_stops_the_call_and_says_where(backend: Backend) -> None:
    backend.share(Constant(0))
    with pytest.raises(TaskError, match=r"Task 3 failed on .*three is too many") as caught:
        list(backend.map(fail_on_three, list(range(10))))
    assert "fail_on_three" in caught.value.failure.traceback
    assert dict(backend.map(fail_on_three, [1, 2])) == {0: 1, 1: 2}, "a second call works after a failed one"


def test_an_abandoned_call_leaves_nothing_behind(backend: Backend) -> None:
    backend.share(Constant(0))
    calls = backend.map(slow_double, [0.01] * 20)
    next(calls)
    calls.close()  # type: ignore[attr-defined]
    assert sorted(r for _, r in backend.map(plus_context, [7, 8, 9])) == [7, 8, 9]


def test_a_stop_signal_ends_the_call_at_once(backend_of_workers: Backend) -> None:
    backend = backend_of_workers
    backend.share(Constant(0))
    began = time.monotonic()
    with pytest.raises(Stopped) as caught:
        for _ in backend.map(slow_double, [0.01, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5]):
            backend.stop.signum = 15
    backend.stop.signum = 0
    assert caught.value.exit_code == 75
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_the_shape_of_a_sum_depends_on_the_tasks_alone(backend: Backend, count: int) -> None:
    backend.share(Constant(0))

    def tree(a: int, b: int) -> np.ndarray:
        if b - a == 1:
            return random_vector(0, a)
        return tree(a, (a + b) // 2) + tree((a + b) // 2, b)

    total = backend.map_reduce(random_vector, list(range(count)), add)
    assert total.tobytes() == tree(0, count).tobytes()


def who_and_what(context: Any, task: int) -> set[tuple[int, str]]:
    return {(task, str(os.getpid()))}


def test_a_worker_is_given_its_rows_again(backend_of_workers: Backend) -> None:
    """In sum after sum a worker has its range of tasks, which stand for rows that it has read. A preference only."""
    backend_of_workers.share(Constant(None))
    rounds = [backend_of_workers.map_reduce(who_and_what, list(range(16)), set.union) for _ in range(6)]
    for one in rounds:
        assert sorted(task for task, _ in one) == list(range(16))
    if backend_of_workers.name in ("mpi", "dask"):
        assert sum(one == rounds[0] for one in rounds) >= 4
