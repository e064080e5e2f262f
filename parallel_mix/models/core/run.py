"""What a fit tells the outside while it runs: how far it is, and what would let it go on after a kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

State = dict[str, Any]
"""Named arrays and numbers, enough to go on from."""

HowFar = tuple[float, float, str]
"""Work done, an estimate of all there is, and what is being done."""


class Run(Protocol):
    """A store is handed in as one of these; `QuietRun` is the one that keeps nothing."""

    def restored(self) -> State | None:
        """The state of an earlier attempt, or None."""

    def offer(self, state: Callable[[], State]) -> None:
        """A state worth keeping; it is made and written only when the last one is some seconds old."""

    def report(self, how_far: Callable[[], HowFar]) -> None:
        """How far the run is; asked only when it is to be shown."""


class QuietRun:
    """Keeps nothing, shows nothing."""

    def restored(self) -> State | None:
        return None

    def offer(self, state: Callable[[], State]) -> None:
        pass

    def report(self, how_far: Callable[[], HowFar]) -> None:
        pass
