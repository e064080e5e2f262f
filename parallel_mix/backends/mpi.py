"""Ranks of an MPI job: rank 0 hands out tasks and computes like the others.

The main thread of every rank does MPI and signals, its compute threads run kernels (MPI_THREAD_FUNNELED). Nobody blocks
in MPI: every wait is a poll with pauses that grow, so a signal is seen at once and an idle rank costs no core.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.mpi_launch import end_launcher, import_mpi
from parallel_mix.backends.mpi_patience import Patience, sharpen_timers
from parallel_mix.backends.stop import StopFlag
from parallel_mix.backends.threads import QUEUED_AHEAD, ComputeThreads, one_blas_thread
from parallel_mix.backends.usage import Usage
from parallel_mix.errors import Failure, LostRanksError, Stopped

TAG_COMMAND, TAG_RESULT, TAG_ANSWER, TAG_ALIVE = 1, 2, 3, 4

SILENCE = float(os.environ.get("PARALLEL_MIX_SILENCE", "30"))
"""Seconds without a word after which a rank counts as lost; it says every few seconds that it is there."""
ALIVE_EVERY, LISTEN_EVERY = min(5.0, SILENCE / 4.0), min(0.2, SILENCE / 8.0)
"""Seconds between two words of a rank that it is alive, and between two looks for those of others."""
FIRST_SILENCE = 20.0 * SILENCE
"""Seconds without a word after which rank 0 counts as lost: it says nothing while it merges, reads or writes."""
ANSWERS_WITHIN = 2.0 * SILENCE
"""Seconds that ranks have for an answer."""


class MpiBackend(Backend):
    """Rank 0's side. On the other ranks call `serve`, which returns when rank 0 closes."""

    name = "mpi"

    def __init__(self, threads: int | None = None, stop: StopFlag | None = None, comm: Any = None) -> None:
        super().__init__(stop)
        sharpen_timers()
        self._mpi = import_mpi()
        self._status = self._mpi.Status()
        self.comm = self._mpi.COMM_WORLD if comm is None else comm
        self.rank = self.comm.Get_rank()
        self.threads = threads or 1
        self.ranks = self.comm.Get_size()
        self.size = self.ranks * self.threads
        self.shares_memory = self.ranks == 1
        self._blas = one_blas_thread()
        self._local = ComputeThreads(self.threads, f"rank {self.rank}")
        self._call = 0
        self._kernel: Kernel | None = None
        self._has_kernel: set[int] = set()
        self._order = [*range(1, self.ranks), 0]  # rank 0 sends before it computes itself
        self._pending = [0] * self.ranks
        self._sends: list[tuple[Any, Any]] = []
        self._arriving: list[tuple[int, int, int, Any]] = []  # tag, sender, bytes, request
        self.host = socket.gethostname()
        self._hosts: list[str] = [self.host]
        self._usage: dict[int, Usage] = {}
        self._heard = [time.monotonic()] * self.ranks
        self._said_alive = self._listened = time.monotonic()

    @property
    def library(self) -> str:
        """The name and version of the MPI library, in its own words."""
        return str(self._mpi.Get_library_version()).splitlines()[0].rstrip("\0")

    # rank 0

    def ask_all(self, question: Any, own: Any) -> list[Any]:
        """The answers of all ranks to a question; `own` is rank 0's answer."""
        for rank in range(1, self.ranks):
            self._send(("ask", question), rank, TAG_COMMAND)
        answers = {0: (self.host, own)}
        patience, until = Patience(), time.monotonic() + ANSWERS_WITHIN
        while len(answers) < self.ranks:
            answers.update(self._receive(TAG_ANSWER))
            self._say_alive()
            if self.stop.signum:
                raise Stopped(self.stop.signum)
            if time.monotonic() > until:
                silent = ", ".join(str(rank) for rank in range(self.ranks) if rank not in answers)
                raise LostRanksError(
                    f"Rank {silent} did not answer for {ANSWERS_WITHIN:g} s: its host is down, cut off or very slow."
                )
            time.sleep(patience.pause(computing=False))
        self._hosts = [answers[rank][0] for rank in range(self.ranks)]
        return [answers[rank][1] for rank in range(self.ranks)]

    def share(self, recipe: Recipe) -> None:
        """Send the recipe to all ranks, and load the context here."""
        self.stop.deferred = True
        for rank in range(1, self.ranks):
            self._send(("share", recipe), rank, TAG_COMMAND)
        self._local.context = recipe.load()

    def _begin(self, kernel: Kernel) -> None:
        self._call += 1
        self._kernel = kernel
        self._has_kernel = set()
        self._pending = [0] * self.ranks
        self._local.begin(kernel)

    def _submit(self, index: int, task: Any) -> bool:
        room = self.threads + min(QUEUED_AHEAD, self._left // self.size)
        rank = self._holders.get(self._want) if self._want is not None else None
        if rank is None or self._pending[rank] >= room:
            rank = min(self._order, key=self._pending.__getitem__)
        if self._pending[rank] >= room:
            return False
        if self._want is not None:
            self._holders[self._want] = rank
        self._pending[rank] += 1
        if rank == 0:
            self._local.submit(index, task)
            return True
        kernel = None if rank in self._has_kernel else self._kernel  # a call's first task brings it
        self._has_kernel.add(rank)
        self._send(("task", kernel, self._call, index, task), rank, TAG_COMMAND)
        return True

    def _wait(self) -> list[tuple[int, Any]]:
        patience = Patience()  # for messages: a result of its own threads ends a pause
        pause, until = 0.0, time.perf_counter() + 0.1
        while True:
            finished = self._local.results(timeout=pause)
            self._pending[0] -= len(finished)
            for rank, (call, index, result, usage) in self._receive(TAG_RESULT):
                self._usage[rank] = usage
                if call == self._call:
                    self._pending[rank] -= 1
                    finished.append((index, result))
            self._listen()
            if finished or self.stop.signum or time.perf_counter() > until:
                return finished
            pause = 0.1 if self.ranks == 1 else patience.pause(computing=self._pending[0] > 0)

    def _stay_in_touch(self) -> None:
        self._listen()

    def _listen(self) -> None:
        """Note which ranks are alive; raise where one has been silent for too long."""
        now = time.monotonic()
        if now - self._listened < LISTEN_EVERY:
            return
        self._say_alive()
        self._receive(TAG_ALIVE)
        if now - self._listened > ALIVE_EVERY:  # nobody was listened to meanwhile: nobody can be blamed
            self._heard = [now] * self.ranks
        self._listened = now
        lost = [rank for rank in range(1, self.ranks) if now - self._heard[rank] > SILENCE]
        if lost:
            hosts = ", ".join(sorted({self._hosts[rank] for rank in lost if rank < len(self._hosts)}))
            ranks = ", ".join(map(str, lost))
            raise LostRanksError(
                f"Rank {ranks} on {hosts or 'an unknown host'} has not been heard of for {SILENCE:g} s: the host is "
                "down or cut off. What was finished is kept: the same command goes on from there."
            )

    def usage(self) -> list[Usage]:
        """The usage of each rank until now."""
        hosts = self._hosts if len(self._hosts) == self.ranks else ["?"] * self.ranks
        idle = {rank: Usage(f"rank {rank}", hosts[rank], self.threads) for rank in range(self.ranks)}
        usages = {**idle, **self._usage, 0: self._local.meter.read()}
        return [usages[rank] for rank in sorted(usages)]

    def close(self) -> None:
        """End the other ranks and leave last."""
        for rank in range(1, self.ranks):
            self._send(("close",), rank, TAG_COMMAND)
        self.leave()
        if len(set(self._hosts)) > 1:
            end_launcher(after=20)  # if a host goes while MPI ends

    # the other ranks

    def serve(self, answer: Callable[[Any], Any] = lambda _: None) -> None:
        """Run what rank 0 sends until it closes; `answer` its questions. Signals are rank 0's affair."""
        self.stop.deferred = True
        call = 0
        patience, pause = Patience(), 0.0
        while True:
            busy = False
            if self._say_alive():
                self._mind_the_first()
            for _, message in self._receive(TAG_COMMAND, source=0):
                busy = True
                verb, *rest = message
                if verb == "close":
                    self.leave()
                    return
                if verb == "ask":
                    self._send((self.host, answer(rest[0])), 0, TAG_ANSWER)
                elif verb == "share":
                    self._local.context = self._load(rest[0])
                else:
                    kernel, call, index, task = rest
                    if kernel is not None:
                        self._local.begin(kernel)
                    if isinstance(self._local.context, Failure):
                        failure = replace(self._local.context, task=index)
                        self._send((call, index, failure, self._local.meter.read()), 0, TAG_RESULT)
                    else:
                        self._local.submit(index, task)
            for index, result in self._local.results(timeout=0.0 if busy else pause):
                busy = True
                self._send((call, index, result, self._local.meter.read()), 0, TAG_RESULT)
            if busy:
                patience = Patience()
            pause = patience.pause(computing=self._local.pending > 0)

    def _load(self, recipe: Recipe) -> Any:
        """The context, or the failure to load it, of which rank 0 hears with the first task."""
        self._local.begin(lambda _, recipe: recipe.load())
        self._local.submit(0, recipe)
        while not (finished := self._local.results(timeout=0.02)):
            self._say_alive()
        return finished[0][1]

    def _mind_the_first(self) -> None:
        """End this process where rank 0 has not been heard of for very long: nobody else would end it."""
        now = time.monotonic()
        self._receive(TAG_ALIVE, source=0)
        if now - self._listened > 4.0 * ALIVE_EVERY:  # this rank was suspended itself
            self._heard[0] = now
        self._listened = now
        if now - self._heard[0] > FIRST_SILENCE:
            sys.stderr.write(f"parallel-mix: {self.host}: rank 0 has not been heard of for {FIRST_SILENCE:g} s.\n")
            sys.stderr.flush()
            os._exit(1)

    # both sides

    def _say_alive(self) -> bool:
        """Tell the other ranks (on these, rank 0) that this rank is alive; False where they were told lately."""
        now = time.monotonic()
        if now - self._said_alive < ALIVE_EVERY:
            return False
        self._said_alive = now
        for rank in range(1, self.ranks) if self.rank == 0 else (0,):
            self._send(None, rank, TAG_ALIVE)
        return True

    def _send(self, message: Any, rank: int, tag: int) -> None:
        began = time.perf_counter()
        self._sends = [(request, kept) for request, kept in self._sends if not request.Test()]
        self._sends.append((self.comm.isend(message, dest=rank, tag=tag), message))
        self._local.meter.talked(time.perf_counter() - began)

    def _receive(self, tag: int, source: int = -1) -> list[tuple[int, Any]]:
        received: list[tuple[int, Any]] = []
        wanted = self._mpi.ANY_SOURCE if source < 0 else source
        while (message := self.comm.improbe(wanted, tag, self._status)) is not None:
            size = self._status.Get_count(self._mpi.BYTE)
            self._arriving.append((tag, self._status.Get_source(), size, message.irecv()))
        self._arriving, arriving = [], self._arriving
        for item in arriving:  # never waited for: its sender may be gone before all of it has come
            began = time.perf_counter()
            come, content = item[3].test() if item[0] == tag else (False, None)
            if not come:
                self._arriving.append(item)
                continue
            received.append((item[1], content))
            self._local.meter.talked(time.perf_counter() - began, item[2])
            self._heard[item[1]] = time.monotonic()
        if self._sends:
            self._sends = [(request, kept) for request, kept in self._sends if not request.Test()]
        return received

    def leave(self, patience: float = 30.0) -> None:
        """Pass a barrier together, so that no rank's early exit makes the launcher kill the others."""
        self._local.close()
        self._blas.restore_original_limits()
        self._until(lambda: all(request.Test() for request, _ in self._sends), patience)
        barrier = self.comm.Ibarrier()
        self._until(barrier.Test, patience)

    def _until(self, done: Callable[[], bool], seconds: float = 30.0) -> None:
        patience = Patience()
        until = time.perf_counter() + seconds
        while not done():
            for tag in (TAG_COMMAND, TAG_RESULT, TAG_ANSWER, TAG_ALIVE):
                self._receive(tag)  # late messages of a stopped run: received and dropped
            if time.perf_counter() > until:
                sys.stderr.write(f"parallel-mix: {socket.gethostname()}: other ranks did not leave in {seconds:g} s.\n")
                if self.rank == 0:
                    end_launcher()
                os._exit(1)  # Abort would wait for them, too
            time.sleep(patience.pause(computing=False))
