"""Forked processes that die, in every state: a sentence, the right task, and never a wait without end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from parallel_mix.backends.processes import ComputeProcesses
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import TaskError
from tests.backends.test_contract import Constant, plus_context
from tests.conftest import UNDER_MPI

pytestmark = pytest.mark.skipif(UNDER_MPI, reason="processes of one machine")


class Unreadable:
    """A task that cannot be unpickled, as one too large for the memory that is left."""

    def __reduce__(self) -> Any:
        return (_no_memory, ())


def _no_memory() -> None:
    raise MemoryError


def die_on(context: Any, task: int) -> int:
    if task == context:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return task


@pytest.fixture
def backend() -> Iterator[SerialBackend]:
    with SerialBackend(threads=2) as made:
        yield made


def workers(backend: SerialBackend) -> list[Any]:
    pool = backend._pool
    assert isinstance(pool, ComputeProcesses)
    return pool._workers


@pytest.mark.parametrize("fatal", [0, 1, 5, 19])
def test_the_task_that_was_being_computed_is_named(backend: SerialBackend, fatal: int) -> None:
    backend.share(Constant(fatal))
    with pytest.raises(TaskError, match=r"died \(signal 9\), perhaps for want of memory") as caught:
        list(backend.map(die_on, list(range(20))))
    assert caught.value.failure.task == fatal


def test_a_task_that_cannot_be_read_ends_the_call(backend: SerialBackend) -> None:
    backend.share(Constant(0))
    with pytest.raises(TaskError, match="exit code 1"):
        list(backend.map(plus_context, [1, 2, Unreadable(), 3]))


@pytest.mark.parametrize("count", [1, 2])
def test_processes_that_died_idle(backend: SerialBackend, count: int) -> None:
    backend.share(Constant(0))
    assert dict(backend.map(plus_context, [1, 2, 3])) == {0: 1, 1: 2, 2: 3}
    for worker in workers(backend)[:count]:
        os.kill(worker.pid, signal.SIGKILL)
    time.sleep(0.1)
    with pytest.raises(TaskError, match="died"):
        list(backend.map(plus_context, list(range(9))))


def test_where_none_is_left_the_next_call_says_so(backend: SerialBackend) -> None:
    backend.share(Constant(0))
    for worker in workers(backend):
        os.kill(worker.pid, signal.SIGKILL)
    for text in ("died", "died|no process is left", "no process is left"):
        with pytest.raises(TaskError, match=text):
            list(backend.map(plus_context, list(range(9))))


def test_a_death_in_an_abandoned_call_is_none_of_the_next(backend: SerialBackend) -> None:
    backend.share(Constant(1))
    for _ in backend.map(die_on, [7] * 9):
        break
    victim = workers(backend)[0]
    assert victim.tasks
    os.kill(victim.pid, signal.SIGKILL)
    time.sleep(0.1)
    try:
        assert dict(backend.map(plus_context, list(range(4)))) == {k: k + 1 for k in range(4)}
    except TaskError as error:
        assert error.failure.task in range(4)
