"""A backend without a scheduler, on all cores of this machine."""

from __future__ import annotations

from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.processes import ComputeProcesses
from parallel_mix.backends.stop import StopFlag
from parallel_mix.backends.threads import ComputeThreads, available_cores, one_blas_thread
from parallel_mix.backends.usage import Usage, in_all


class SerialBackend(Backend):
    """One compute thread in this process, or a forked process for each core where there are more.

    `forked=False`: compute threads for all cores, for kernels that leave the interpreter lock to each other.
    """

    name = "serial"

    def __init__(self, threads: int | None = None, stop: StopFlag | None = None, forked: bool = True) -> None:
        super().__init__(stop)
        self.forked = forked
        self.size = threads or available_cores()
        self._blas = one_blas_thread()
        self._pool: ComputeThreads | ComputeProcesses | None = None
        self._before: list[Usage] = []  # of pools that have ended

    def share(self, recipe: Recipe) -> None:
        """Load the context here; processes are forked anew, so that they have it, too."""
        self.stop.deferred = True
        if isinstance(self._pool, ComputeThreads) and not self._pool.pending:
            self._pool.context = None
            self._pool.context = recipe.load()
            return
        self._end_pool()
        context = recipe.load()
        self._pool = (
            ComputeProcesses(self.size, context)
            if self.forked and self.size > 1
            else ComputeThreads(self.size, "this process", context)
        )

    def _begin(self, kernel: Kernel) -> None:
        self._running().begin(kernel)

    def _submit(self, index: int, task: Any) -> bool:
        return self._running().submit(index, task, ahead=self._left > self.size)

    def _wait(self) -> list[tuple[int, Any]]:
        return self._running().results(timeout=0.1)

    def usage(self) -> list[Usage]:
        """The usage of each thread or process until now, that of earlier pools included."""
        return in_all(self._before, self._pool.usage() if self._pool else [])

    def close(self) -> None:
        """End the threads or processes."""
        self._end_pool()
        self._blas.restore_original_limits()

    def _running(self) -> ComputeThreads | ComputeProcesses:
        if self._pool is None:
            raise RuntimeError("share() comes before map().")
        return self._pool

    def _end_pool(self) -> None:
        if self._pool is not None:
            self._before = self.usage()
            self._pool.close()
            self._pool = None
