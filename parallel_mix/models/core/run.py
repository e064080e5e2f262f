"""The outside as a fit sees it: where it says how far it is, and keeps what lets it go on after a kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

State = dict[str, Any]
"""Named arrays and numbers, enough to go on from."""

HowFar = tuple[float, float, str]
"""Work done, an estimate of all there is, and what is being done."""


class Run(Protocol):
    """What keeps the checkpoints of a fit and shows its progress; `QuietRun` is one that does neither."""

    def restored(self) -> State | None:
        """The state of an earlier attempt, or None."""

    def offer(self, state: Callable[[], State]) -> None:
        """Offer a state worth keeping; it is made and written only when the last one is some seconds old."""

    def report(self, how_far: Callable[[], HowFar]) -> None:
        """Report how far the fit is; `how_far` is called only when that is to be shown."""


class QuietRun:
    """A run that keeps no checkpoints and shows no progress."""

    def restored(self) -> State | None:
        """None: there is no earlier attempt."""
        return None

    def offer(self, state: Callable[[], State]) -> None:
        """Keep nothing."""

    def report(self, how_far: Callable[[], HowFar]) -> None:
        """Show nothing."""
