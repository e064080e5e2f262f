"""Workers of a Dask cluster: one that is running already, or a local one that is started and stopped.

The recipe travels as a worker plugin: the scheduler gives it to every worker that joins, also to a late one or one
that replaces a dead one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Lock
from typing import Any

from dask import config as dask_config
from distributed import Client, Future, LocalCluster, WorkerPlugin, get_worker
from distributed.security import Security

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.dask_slurm import slurm_cluster
from parallel_mix.backends.stop import StopFlag
from parallel_mix.backends.threads import QUEUED_AHEAD, available_cores, one_blas_thread, run_task
from parallel_mix.backends.usage import Meter, Usage, in_all
from parallel_mix.errors import Failure, InputError, ParallelMixError, Stopped

ANSWERS_WITHIN = 15
"""Seconds that a scheduler has to answer."""
OFTEN_ENOUGH = 10
"""How often a task is handed out again after its worker died with it."""
_numbers = itertools.count()


class DeafToInterrupts(WorkerPlugin):  # type: ignore[misc]
    """Makes workers ignore Ctrl-C, which a terminal sends to all its processes: rank 0 acts on it."""

    def setup(self, worker: Any) -> None:
        """Ignore the signal in a worker that is a process of its own."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class ContextPlugin(WorkerPlugin):  # type: ignore[misc]
    """The shared context of one backend on a worker, loaded when the first task asks for it."""

    def __init__(self, name: str, recipe: Recipe) -> None:
        self.name = name
        self.recipe = recipe

    def setup(self, worker: Any) -> None:
        """Give the worker the context, to be loaded when it is needed."""
        worker.parallel_mix_contexts = {
            **getattr(worker, "parallel_mix_contexts", {}),
            self.name: LazyContext(self.recipe),
        }

    def teardown(self, worker: Any) -> None:
        """Take the context, and the usage that belongs to it, from the worker."""
        worker.parallel_mix_contexts.pop(self.name, None)
        getattr(worker, "parallel_mix_meters", {}).pop(self.name, None)


class LazyContext:
    """A recipe that is loaded once."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._lock = Lock()
        self._loaded: list[Any] = []

    def get(self) -> Any:
        """The context; the first call loads it."""
        with self._lock:
            if not self._loaded:
                one_blas_thread()
                self._loaded.append(self._recipe.load())
            return self._loaded[0]


def run_on_worker(name: str, kernel: Kernel, index: int, task: Any) -> Any:
    """The result of one task on a Dask worker, and the worker's usage."""
    worker = get_worker()
    label = f"Dask worker {worker.address}"
    if not hasattr(worker, "parallel_mix_meters"):
        worker.parallel_mix_meters = {}
    meter = worker.parallel_mix_meters.setdefault(name, Meter(str(worker.address), worker.state.nthreads))
    with meter.computing():
        result = run_task(lambda _, t: kernel(worker.parallel_mix_contexts[name].get(), t), None, index, task, label)
    return result, meter.read()


def _failure(index: int, error: Any) -> Failure:
    return Failure(index, "unknown", "the Dask cluster", str(error), "")


class DaskBackend(Backend):
    """Tasks as Dask futures. Give `client`, or `scheduler`/`scheduler_file`, or neither for a local cluster."""

    name = "dask"
    shares_memory = False
    shares_files = False
    limits_memory = True

    def __init__(
        self,
        workers: int | None = None,
        threads: int | None = None,
        scheduler: str | None = None,
        scheduler_file: str | None = None,
        client: Any = None,
        stop: StopFlag | None = None,
        slurm_workers: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(stop)
        self._cluster: Any = None
        self._slurm_workers = slurm_workers
        self._own_client = client is None
        self.client = client or self._connect(workers, threads, scheduler, scheduler_file)
        self._await_workers(3600.0 if slurm_workers else 60.0)
        self._blas = one_blas_thread()  # what is computed here is to have the bits that workers give
        self._context_name = ""
        self._kernel: Kernel | None = None
        self._futures: dict[int, Future] = {}
        # Of those in flight: how often they were lost, and they themselves.
        self._tasks: dict[int, tuple[int, Any]] = {}
        self._wants: dict[int, Any] = {}  # of those in flight
        self._near: dict[int, str] = {}  # the worker that those in flight prefer
        self._threads_of: dict[str, int] = {}
        self._finished: Queue[tuple[int, int]] = Queue()  # no SimpleQueue: see ComputeThreads
        self._call = 0
        self._usage: dict[str, Usage] = {}
        self._before: list[Usage] = []

    def _connect(
        self, workers: int | None, threads: int | None, scheduler: str | None, scheduler_file: str | None
    ) -> Client:
        for name in [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]:
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by us, in words
        if scheduler_file:  # Dask itself would wait for the file for ever
            try:
                scheduler = str(json.loads(Path(scheduler_file).read_text(encoding="utf-8"))["address"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(f"{scheduler_file} is no scheduler file of Dask that can be read: {error}.") from error
        if scheduler:
            try:
                return Client(address=scheduler, timeout=ANSWERS_WITHIN)
            except ValueError as error:
                raise InputError(f"{scheduler} is no address of a Dask scheduler, such as tcp://host:8786.") from error
            except (OSError, TimeoutError) as error:
                raise ParallelMixError(
                    f"No Dask scheduler has answered at {scheduler} for {ANSWERS_WITHIN} s ({error})."
                ) from error
            except ParallelMixError:  # a signal
                raise
            except Exception as error:  # whatever comes of reading what is no message of Dask's
                raise ParallelMixError(f"What answers at {scheduler} is no Dask scheduler.") from error
        if self._slurm_workers:
            self._cluster = slurm_cluster(*self._slurm_workers)
            return Client(self._cluster)
        with dask_config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
            self._cluster = LocalCluster(
                n_workers=workers or available_cores(),
                threads_per_worker=threads or 1,
                host="127.0.0.1",
                protocol="tls://",  # others on this machine can reach the port, too
                security=Security.temporary(),
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                silence_logs="ERROR",
            )
        client = Client(self._cluster)
        client.register_plugin(DeafToInterrupts())
        return client

    def _await_workers(self, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while not self.client.nthreads():
            if self.stop.signum:
                raise Stopped(self.stop.signum)
            if time.monotonic() > until:
                raise ParallelMixError(
                    f"The Dask scheduler has had no worker for {seconds:g} s: start some and run again."
                )
            time.sleep(0.1)
        self.size = sum(self.client.nthreads().values())

    @contextlib.contextmanager
    def _asking_the_scheduler(self) -> Iterator[None]:
        """Whatever Dask says of a scheduler that is gone, which it has tried to reach for a while, is a sentence."""
        try:
            yield
        except Exception as error:
            self._check_scheduler(error)
            raise

    def _check_scheduler(self, error: Exception | None = None) -> None:
        if self.client.status in ("closing", "closed"):
            raise ParallelMixError(
                "The Dask scheduler is gone. What was finished is kept: the same command goes on from there."
            ) from error

    def share(self, recipe: Recipe) -> None:
        """Give the recipe to all workers, those included that join later."""
        self.stop.deferred = True
        with self._asking_the_scheduler():
            if self._context_name:
                self.client.unregister_worker_plugin(self._context_name)  # and with it what counts on the workers
            self._before, self._usage = self.usage(), {}
            self._context_name = f"parallel-mix-{os.getpid()}-{next(_numbers)}"
            self.client.register_plugin(ContextPlugin(self._context_name, recipe), name=self._context_name)

    def _begin(self, kernel: Kernel) -> None:
        with self._asking_the_scheduler():
            self._cancel()
            self._threads_of = dict(self.client.nthreads())
        self.size = max(1, sum(self._threads_of.values()))
        self._call += 1
        self._kernel = kernel
        self._finished = Queue()

    def _submit(self, index: int, task: Any) -> bool:
        if len(self._futures) >= self.size * (1 + QUEUED_AHEAD):
            return False
        self._tasks[index] = (0, task)
        if self._want is not None:
            self._wants[index] = self._want
        self._send(index)
        return True

    def _send(self, index: int) -> None:
        words = (self._context_name, self._kernel, index, self._tasks[index][1])
        near = {}
        if (holder := self._free_holder(index)) is not None:
            self._near[index] = holder
            near = {"workers": [holder], "allow_other_workers": True}
        with self._asking_the_scheduler():
            future = self.client.submit(run_on_worker, *words, pure=False, retries=3, **near)
        self._watch(index, future)

    def _free_holder(self, index: int) -> str | None:
        """The worker that has what a task wants, unless it has enough to do already."""
        holder = self._holders.get(self._wants.get(index))
        busy = sum(other == holder for other in self._near.values())
        return holder if holder is not None and busy < self._threads_of.get(holder, 0) else None

    def _wait(self) -> list[tuple[int, Any]]:
        results: list[tuple[int, Any]] = []
        self._check_scheduler()
        try:
            item = self._finished.get(timeout=0.1)
            while True:
                if item[0] == self._call:
                    self._fetch(item[1], results)
                item = self._finished.get_nowait()
        except Empty:
            return results

    def _fetch(self, index: int, results: list[tuple[int, Any]]) -> None:
        """Append a task's outcome to the results, unless its worker died with it: then it is computed again."""
        future = self._futures.pop(index, None)
        self._near.pop(index, None)
        if future is None:
            return
        if future.status == "error":
            results.append((index, _failure(index, future.exception())))
            return
        lost: Any = "the scheduler lost or cancelled the task"
        if future.status == "finished":
            try:
                result, usage = future.result(timeout=10)
            except TimeoutError:
                self._watch(index, future)
                return
            except Exception as error:
                lost = f"{type(error).__name__}: {error}"
            else:
                self._usage[usage.worker] = usage
                if (want := self._wants.pop(index, None)) is not None:
                    self._holders[want] = usage.worker
                del self._tasks[index]
                results.append((index, result))
                return
        times, task = self._tasks[index]
        if times == OFTEN_ENOUGH:
            results.append((index, _failure(index, lost)))
            return
        self._tasks[index] = (times + 1, task)
        self._send(index)

    def _watch(self, index: int, future: Future) -> None:
        self._futures[index] = future
        finished, call = self._finished, self._call
        future.add_done_callback(lambda _: finished.put((call, index)))

    def _cancel(self) -> None:
        futures, self._futures, self._tasks, self._wants = list(self._futures.values()), {}, {}, {}
        self._near = {}
        if futures and self.client.status != "closed":
            self.client.cancel(futures, force=True)

    def usage(self) -> list[Usage]:
        """The usage of each worker until now."""
        return in_all(self._before, [self._usage[worker] for worker in sorted(self._usage)])

    def close(self) -> None:
        """Cancel what is under way, and end the client and the cluster that were started here."""
        self._blas.restore_original_limits()
        with contextlib.suppress(Exception):
            self._cancel()
        with contextlib.suppress(Exception):  # how a cluster ends says nothing of how the run ended
            if self._context_name:
                self.client.unregister_worker_plugin(self._context_name)
                self._context_name = ""
        with contextlib.suppress(Exception):
            if self._own_client:
                self.client.close()
        with contextlib.suppress(Exception):
            if self._cluster is not None:
                self._cluster.close()
