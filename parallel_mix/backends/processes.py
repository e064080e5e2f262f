"""Compute processes: forked copies of this one, each with a core of its own.

Compute threads share one interpreter lock, and a step of modal EM takes and releases it some ten times in a few hundred
microseconds: two threads gained 1.0 to 1.4 times where two processes gain 1.6 to 1.9 (benchmarks/RESULTS.md). A
forked process starts with what its parent has, in no time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import socket
import threading
import traceback
import warnings
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from parallel_mix.backends.base import Kernel
from parallel_mix.backends.stop import STOP_SIGNALS
from parallel_mix.backends.threads import run_task
from parallel_mix.backends.usage import Meter, Usage
from parallel_mix.errors import Failure


@dataclass
class Worker:
    """One forked process as its parent sees it."""

    number: int
    pid: int
    pipe: Connection
    call: int = 0  # the call whose kernel it has
    tasks: deque[tuple[int, int]] = field(default_factory=deque)  # call and index of what it has to do


class ComputeProcesses:
    """A few forked processes, each with the task it computes and at most one more; see `_receive`."""

    def __init__(self, count: int, context: Any) -> None:
        self.count = count
        self._call = 0
        self._kernel: Kernel | None = None
        self._obituaries: list[tuple[int, Any]] = []
        self._workers: list[Worker] = []
        self._poll = select.poll()
        self._usage: dict[int, Usage] = {}
        for number in range(count):
            self._workers.append(self._fork(number, context))

    def begin(self, kernel: Kernel) -> None:
        """Start a call; results of an abandoned one are dropped when they come."""
        self._call += 1
        self._kernel = kernel
        self._obituaries = []

    def submit(self, index: int, task: Any, ahead: bool) -> bool:
        """Hand a task to an idle process, or with `ahead` to one that has none waiting; False where all are busy."""
        worker = min(self._workers, key=lambda worker: len(worker.tasks), default=None)
        if worker is None:  # all have died
            self._fail(index, "this machine", "no process is left")
            return True
        if len(worker.tasks) > ahead:
            return False
        kernel = self._kernel if worker.call != self._call else None
        worker.tasks.append((self._call, index))
        try:
            worker.pipe.send((self._call, index, kernel, task))
        except OSError:
            self._bury(worker)
        worker.call = self._call
        return True

    def results(self, timeout: float) -> list[tuple[int, Any]]:
        """The finished tasks, by number; the first of them is awaited `timeout` seconds at most."""
        finished: list[tuple[int, Any]] = []
        timeout = 0.0 if self._obituaries else timeout
        by_pipe = {worker.pipe.fileno(): worker for worker in self._workers}
        for pipe, _ in self._poll.poll(timeout * 1000.0):
            worker = by_pipe[pipe]
            if not worker.tasks:  # it died idle: whoever sends it a task will find out
                self._poll.unregister(pipe)
                continue
            try:
                call, index, result, self._usage[worker.number] = worker.pipe.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            worker.tasks.popleft()
            if call == self._call:
                finished.append((index, result))
        finished += self._obituaries
        self._obituaries = []
        return finished

    def usage(self) -> list[Usage]:
        """The usage of each process until its last task was done."""
        host = socket.gethostname()
        return [self._usage.get(number, Usage(f"process {number}", host)) for number in range(self.count)]

    def close(self) -> None:
        """End the processes at once: they hold nothing that anyone needs."""
        for worker in self._workers:
            os.kill(worker.pid, signal.SIGKILL)
            worker.pipe.close()
        for worker in self._workers:
            os.waitpid(worker.pid, 0)
        self._workers = []

    def _fork(self, number: int, context: Any) -> Worker:
        ours, theirs = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the child runs kernels and nothing else
            pid = os.fork()
        if pid:
            theirs.close()
            self._poll.register(ours, select.POLLIN)
            return Worker(number, pid, ours)
        code = 1
        try:
            ours.close()
            for worker in self._workers:  # so that a dead parent is noticed by the end of the pipe
                worker.pipe.close()
            for signum in STOP_SIGNALS:
                signal.signal(signum, signal.SIG_IGN)
            _serve(theirs, context, f"process {number}")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _bury(self, worker: Worker) -> None:
        """Note the end of a process (out of memory, killed by hand) as a failure of a task, and forget the process.

        The task is the first of the present call that the process had, as it was at that one. No new process takes its
        place.
        """
        _, status = os.waitpid(worker.pid, 0)
        self._workers.remove(worker)
        with contextlib.suppress(KeyError):
            self._poll.unregister(worker.pipe)
        worker.pipe.close()
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
        cut_short = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS
        why = "as a file that it reads was cut short" if cut_short else "perhaps for want of memory"
        text = f"the process {worker.pid} died ({how}), {why}"
        own = [index for call, index in worker.tasks if call == self._call]
        if own:
            self._fail(own[0], f"process {worker.number}", text)

    def _fail(self, index: int, name: str, text: str) -> None:
        self._obituaries.append((index, Failure(index, socket.gethostname(), name, text, "")))


def _serve(pipe: Connection, context: Any, name: str) -> None:
    inbox: SimpleQueue[tuple[int, int, Kernel | None, Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, inbox), daemon=True).start()
    kernel: Kernel | None = None
    meter = Meter(name)
    while True:
        call, index, new_kernel, task = inbox.get()
        kernel = new_kernel or kernel
        assert kernel is not None  # noqa: S101 (a call's first task brings it)
        with meter.computing():
            result = run_task(kernel, context, index, task, name)
        try:
            pipe.send((call, index, result, meter.read()))
        except OSError:
            return


def _receive(pipe: Connection, inbox: SimpleQueue[tuple[int, int, Kernel | None, Any]]) -> None:
    """Take tasks from the pipe at once, whatever is computed, so that it never fills up; go when the parent is gone."""
    try:
        while True:
            inbox.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # a task that cannot be read: the parent sees this process end
        traceback.print_exc()
        os._exit(1)
