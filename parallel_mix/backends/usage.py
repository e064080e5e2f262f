"""The usage of workers: what each did with its time."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path


def available_memory() -> float:
    """Bytes of memory that this host can still give."""
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return 1024.0 * int(facts["MemAvailable"].split()[0])


@dataclass(frozen=True)
class Usage:
    """The work of one worker (a process, a rank, a Dask worker) until now."""

    worker: str
    host: str
    threads: int = 1
    tasks: int = 0
    busy: float = 0.0  # seconds in kernels, of all its threads
    talking: float = 0.0  # seconds spent on messages
    received: int = 0  # bytes
    memory: int = 0  # peak, bytes

    def plus(self, other: Usage | None, times: int) -> Usage:
        """The usage with another's work of this worker added (`times` 1) or subtracted (-1)."""
        if other is None:
            return self
        names = ("tasks", "busy", "talking", "received")
        sums = {name: getattr(self, name) + times * getattr(other, name) for name in names}
        return replace(self, **sums, memory=max(self.memory, other.memory))


def in_all(before: Sequence[Usage], now: Sequence[Usage]) -> list[Usage]:
    """The usage of workers in all: before they (or others in their place) began to count anew, and since then."""
    totals = {one.worker: one for one in before}
    totals |= {one.worker: one.plus(totals.get(one.worker), 1) for one in now}
    return list(totals.values())


def since(before: Sequence[Usage], now: Sequence[Usage]) -> list[Usage]:
    """The usage of workers between two readings."""
    was = {one.worker: one for one in before}
    return [one.plus(was.get(one.worker), -1) for one in now]


class Meter:
    """Adds up the usage of a worker; several threads may call it."""

    def __init__(self, worker: str, threads: int = 1) -> None:
        self._now = Usage(worker, socket.gethostname(), threads)
        self._lock = threading.Lock()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Time a task, by the clock of its thread: a wait for a core is not work."""
        began = time.thread_time()
        yield
        seconds = time.thread_time() - began
        with self._lock:
            self._now = replace(self._now, tasks=self._now.tasks + 1, busy=self._now.busy + seconds)

    def talked(self, seconds: float, received: int = 0) -> None:
        """Note the seconds that a message took, and its bytes."""
        with self._lock:
            now = self._now
            self._now = replace(now, talking=now.talking + seconds, received=now.received + received)

    def read(self) -> Usage:
        """The usage until now."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return replace(self._now, memory=peak)
