"""A backend for one task, such as one that failed, by itself: in the main thread, where a debugger can follow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe, Tasks
from parallel_mix.errors import Finished, InputError


class OneTask(Backend):
    """Runs task number `index` of the first call that has any, and ends there; its exception comes as it is."""

    name = "one task"
    size = 1

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
        self._context: Any = None

    def share(self, recipe: Recipe) -> None:
        """Load the context here."""
        self._context = recipe.load()

    @property
    def only_task(self) -> int:
        """The number of the only task to be done."""
        return self.index

    def inline(self) -> Backend:
        """This backend itself: its task may be one that needs no workers."""
        return self

    def map(self, kernel: Kernel, tasks: Tasks, wants: Callable[[Any], Any] | None = None) -> Iterator[tuple[int, Any]]:
        """Run the only task of these, if there are any, and end the run."""
        if len(tasks):
            self.run_only_task(kernel, tasks)
        return iter(())

    def map_reduce(self, kernel: Kernel, tasks: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
        """Run the only task of these, and end the run."""
        return self.run_only_task(kernel, tasks)

    def run_only_task(self, kernel: Kernel, tasks: Tasks) -> None:
        """Run the only task of these; end the run with a sentence, or with the exception of the task."""
        if not 0 <= self.index < len(tasks):
            raise InputError(f"There is no task {self.index}: this step of the run has tasks 0 to {len(tasks) - 1}.")
        began = time.perf_counter()
        kernel(self._context, tasks[self.index])
        raise Finished(f"Task {self.index} ran without an error in {time.perf_counter() - began:.3f} s.")

    def _begin(self, kernel: Kernel) -> None:
        raise AssertionError("OneTask has its own map")

    def _submit(self, index: int, task: Any) -> bool:
        raise AssertionError("OneTask has its own map")

    def _wait(self) -> list[tuple[int, Any]]:
        raise AssertionError("OneTask has its own map")
