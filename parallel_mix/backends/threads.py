"""Compute threads of one process: they run kernels while the main thread talks to the scheduler."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import traceback
from collections import deque
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from parallel_mix.backends.base import Kernel
from parallel_mix.backends.usage import Meter, Usage
from parallel_mix.errors import Failure, InputError, UsersFaultError

QUEUED_AHEAD = 2
"""Tasks that wait at a worker behind those that it computes, so that it need not ask for the next one."""


def available_cores() -> int:
    """How many cores this process may use, by its affinity and the cgroup's CPU quota."""
    cores = len(os.sched_getaffinity(0))
    root = Path("/sys/fs/cgroup")
    try:
        own = root / Path("/proc/self/cgroup").read_text().strip().rsplit(":", 1)[1].lstrip("/")
    except (OSError, IndexError):
        return cores
    for group in (own, *own.parents):
        try:
            quota, period = (group / "cpu.max").read_text().split()
            if quota != "max":
                cores = min(cores, max(1, round(int(quota) / int(period))))
        except (OSError, ValueError):
            continue
    return cores


def one_blas_thread() -> Any:
    """Hold BLAS to one thread for each compute thread; call `restore_original_limits` on what is returned.

    NumPy is loaded first: a library that is not there yet cannot be limited, and its sums then come out otherwise.
    """
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


def run_task(kernel: Kernel, context: Any, index: int, task: Any, worker: str) -> Any:
    """Run a kernel; an exception becomes a value that says where it happened."""
    try:
        return kernel(context, task)
    except BaseException as error:  # a function of the user's may want to exit, too
        return failure_of(error, index, worker)


def failure_of(error: BaseException, index: int, worker: str) -> Failure:
    """The failure of a task that raised; to be called where the exception is caught."""
    index = getattr(error, "parallel_mix_task", index)
    if isinstance(error, UsersFaultError):
        return Failure(index, socket.gethostname(), worker, str(error), "", users_fault=True)
    text = f"{type(error).__name__}: {error}".rstrip(".")
    asked = isinstance(error, InputError)
    return Failure(index, socket.gethostname(), worker, text, traceback.format_exc(), input_error=asked)


class ComputeThreads:
    """Threads of one process; up to two tasks are queued ahead of those that run."""

    def __init__(self, count: int, worker: str, context: Any = None) -> None:
        self.count = count
        self.worker = worker
        self.context = context
        self._call = 0
        self._kernel: Kernel | None = None
        self.pending = 0
        self.meter = Meter(worker, count)
        self._tasks: SimpleQueue[tuple[int, int, Any] | None] = SimpleQueue()
        self._results: deque[tuple[int, int, Any]] = deque()
        # Held while there is no news. (SimpleQueue.get waits on if a signal comes as its timeout ends: CPython 3.11.)
        self._no_news = threading.Lock()
        # Daemons: a stop must not wait for a long task; its result would be thrown away.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def begin(self, kernel: Kernel) -> None:
        """Start a call; tasks of an abandoned one are dropped."""
        self._call += 1
        self._kernel = kernel
        self.pending = 0

    def submit(self, index: int, task: Any, ahead: bool = True) -> bool:
        """Queue a task, with `ahead` beyond those that run at once; False where enough are queued."""
        if self.pending >= self.count + ahead * QUEUED_AHEAD:
            return False
        self.pending += 1
        self._tasks.put((self._call, index, task))
        return True

    def results(self, timeout: float) -> list[tuple[int, Any]]:
        """The finished tasks, by number; the first of them is awaited `timeout` seconds at most."""
        self._no_news.acquire(timeout=timeout)
        finished: list[tuple[int, Any]] = []
        while self._results:
            call, index, result = self._results.popleft()
            if call == self._call:
                self.pending -= 1
                finished.append((index, result))
        return finished

    def usage(self) -> list[Usage]:
        """The usage of all threads together until now."""
        return [self.meter.read()]

    def close(self) -> None:
        """End the threads; one that is in a long task is awaited a second at most."""
        self._call += 1
        for _ in self._threads:
            self._tasks.put(None)
        until = time.monotonic() + 1.0
        for thread in self._threads:
            thread.join(timeout=max(until - time.monotonic(), 0.0))

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            call, index, task = item
            if call != self._call:
                continue
            kernel = self._kernel
            assert kernel is not None  # noqa: S101 (begin() comes before submit())
            with self.meter.computing():
                result = run_task(kernel, self.context, index, task, self.worker)
            self._results.append((call, index, result))
            with contextlib.suppress(RuntimeError):  # news is there already
                self._no_news.release()
