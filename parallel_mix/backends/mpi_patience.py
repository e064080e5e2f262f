"""Waiting for messages: polls with growing pauses, so that a signal is seen at once and an idle rank costs no core."""

from __future__ import annotations

import contextlib
import ctypes
import time

WITHOUT_PAUSE = 3e-4
"""Seconds for which a rank that computes nothing looks for messages without a pause."""
SHORTEST_PAUSE, LONGEST_PAUSE = 5e-5, 0.005
"""Seconds of the shortest and of the longest pause."""
SHORTEST_WHILE_COMPUTING = 1e-3
"""Seconds of the shortest pause while compute threads are at work."""
SET_TIMER_SLACK = 29  # Linux' prctl; nanoseconds


def sharpen_timers() -> None:
    """Let short sleeps of this thread be as short as asked for: Linux adds 50 us to each."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SET_TIMER_SLACK, 1_000, 0, 0, 0)


class Patience:
    """The pauses of a rank that waits, from one look for messages to the next.

    A pause is a part of the time waited so far, so that short waits end promptly; at first, while nothing is computed
    here, there is none. Every look takes the interpreter lock from the compute threads; while they run there are few of
    them, and a result of theirs ends the wait by itself.
    """

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def pause(self, computing: bool) -> float:
        """Seconds to wait before the next look; `computing`: compute threads are at work here."""
        waited = time.perf_counter() - self._since
        if waited < WITHOUT_PAUSE and not computing:
            return 0.0
        pause = max(2.0 * waited, SHORTEST_WHILE_COMPUTING) if computing else max(0.03 * waited, SHORTEST_PAUSE)
        return min(pause, LONGEST_PAUSE)
