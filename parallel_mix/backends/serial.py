"""All cores of this machine, no scheduler."""

from __future__ import annotations

from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.stop import StopFlag
from parallel_mix.backends.threads import ComputeThreads, available_cores


class SerialBackend(Backend):
    """Compute threads of this process; one thread for each core it may use unless told otherwise."""

    name = "serial"

    def __init__(self, threads: int | None = None, stop: StopFlag | None = None) -> None:
        super().__init__(stop)
        self.size = threads or available_cores()
        self._threads = ComputeThreads(self.size, "this process")

    def share(self, recipe: Recipe) -> None:
        self._threads.context = recipe.load()

    def _begin(self, kernel: Kernel) -> None:
        self._threads.begin(kernel)

    def _submit(self, index: int, task: Any) -> bool:
        if self._threads.room <= 0:
            return False
        self._threads.submit(index, task)
        return True

    def _wait(self) -> list[tuple[int, Any]]:
        return self._threads.results(timeout=0.1)

    def close(self) -> None:
        self._threads.close()
