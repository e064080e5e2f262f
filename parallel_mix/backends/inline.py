"""This thread alone: for what is done sooner than handed out."""

from __future__ import annotations

from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.threads import failure_of


class InlineBackend(Backend):
    """Runs each task as it comes."""

    name = "inline"
    size = 1

    def share(self, recipe: Recipe) -> None:
        self.stop.deferred = True
        self._context = recipe.load()

    def _begin(self, kernel: Kernel) -> None:
        self._kernel: Kernel = kernel
        self._found: list[tuple[int, Any]] = []

    def _submit(self, index: int, task: Any) -> bool:
        if self._found:
            return False
        try:
            result = self._kernel(self._context, task)
        except Exception as error:
            result = failure_of(error, index, "this process")
        self._found.append((index, result))
        return True

    def _wait(self) -> list[tuple[int, Any]]:
        found, self._found = self._found, []
        return found
