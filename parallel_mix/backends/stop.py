"""A stop asked for by a signal: the handler sets a flag and nothing else."""

from __future__ import annotations

import signal
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopFlag:
    """The first stop signal that arrived, or 0."""

    def __init__(self) -> None:
        self.signum = 0

    def listen(self) -> None:
        """Catch the stop signals from now on (main thread only)."""
        for signum in STOP_SIGNALS:
            signal.signal(signum, self._note)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.signum = self.signum or signum
