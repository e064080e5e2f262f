"""A stop asked for by a signal: the handler sets a flag and nothing else."""

from __future__ import annotations

import signal
from types import FrameType

from parallel_mix.errors import Stopped

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopFlag:
    """The first stop signal that arrived, or 0.

    Until there is work that can be kept (`deferred`), a signal stops the program where it stands.
    """

    def __init__(self) -> None:
        self.signum = 0
        self.deferred = False

    def listen(self) -> None:
        """Catch the stop signals from now on (main thread only)."""
        for signum in STOP_SIGNALS:
            signal.signal(signum, self._note)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self.signum = self.signum or signum
        if not self.deferred:
            raise Stopped(signum)
