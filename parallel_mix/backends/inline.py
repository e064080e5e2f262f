"""A backend that is this thread, without workers: for work that is done sooner than handed out."""

from __future__ import annotations

from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.threads import failure_of


class InlineBackend(Backend):
    """Runs each task when it is handed out."""

    name = "inline"
    size = 1

    def share(self, recipe: Recipe) -> None:
        """Load the context here."""
        self.stop.deferred = True
        self._context = recipe.load()

    def _begin(self, kernel: Kernel) -> None:
        self._kernel: Kernel = kernel
        self._results: list[tuple[int, Any]] = []

    def _submit(self, index: int, task: Any) -> bool:
        if self._results:
            return False
        try:
            result = self._kernel(self._context, task)
        except Exception as error:
            result = failure_of(error, index, "this process")
        self._results.append((index, result))
        return True

    def _wait(self) -> list[tuple[int, Any]]:
        results, self._results = self._results, []
        return results
