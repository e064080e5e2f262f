"""How far a run is: a bar on a terminal, a line a minute in a log, and one after the first seconds."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TextIO

from parallel_mix.errors import InputError

A_MINUTE, FIRST_SECONDS, A_LITTLE = 60.0, 5.0, 0.1


def clock(seconds: float) -> str:
    """Seconds as 0:07, 12:34 or 1:02:03."""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def plural(count: int, noun: str) -> str:
    """1 column, 2 columns."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Progress:
    """Shows work done of work in all, and the time left at the rate so far, that of earlier attempts counted."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False, log_file: Path | None = None) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.log_file = log_file
        self._logged = -1e9
        self.on_terminal = self.stream.isatty()
        self.rate = 0.0
        self.earlier = 0.0  # seconds of the attempts that this one goes on from
        self._begun = time.monotonic()
        self._began: tuple[float, float] | None = None
        self._rated_from = 0.0
        self._shown = -1e9
        self._line = ""

    def begin(self) -> None:
        """The work begins now."""
        self._begun = time.monotonic()

    def show(self, done: float, total: float, text: str) -> None:
        """Say how far it is, where it is time to.

        The time left goes by what came after the first results: how long these took says too little of the rest, as
        all workers began together. So nothing is said of it before as much time again has passed.
        """
        now = time.monotonic()
        if self._began is None:
            self._began = (now - self.earlier, 0.0 if self.earlier else done)
            self._rated_from = now + (0.0 if self.earlier else max(now - self._begun, A_LITTLE))
            self._shown = now - A_MINUTE + FIRST_SECONDS if not self.on_terminal else self._shown
        elapsed = now - self._began[0]
        if elapsed > 0 and now >= self._rated_from:
            self.rate = (done - self._began[1]) / elapsed
        on_stream = not self.quiet and now - self._shown >= (0.1 if self.on_terminal else A_MINUTE)
        in_log = self.log_file is not None and now - self._logged >= A_MINUTE
        if not (on_stream or in_log):
            return
        share = min(done / total, 1.0) if total > 0 else 0.0
        left = f"{clock((total - done) / self.rate)} left" if self.rate > 0 and total >= done else "time left unknown"
        line = f"{share:4.0%}  {left}  {text}"
        if in_log:
            self._logged = now
            self._log(line)
        if on_stream:
            self._shown = now
            self._draw(share, line)

    @property
    def elapsed(self) -> float:
        """Seconds of work, of all attempts."""
        return time.monotonic() - self._began[0] if self._began else self.earlier

    def _draw(self, share: float, line: str) -> None:
        if self.on_terminal:
            filled = round(share * 24)
            self._line = f"\r[{'#' * filled}{'.' * (24 - filled)}] {line}"
            self.stream.write(self._line + "\x1b[K")
        else:
            self.stream.write(f"{time.strftime('%H:%M:%S')} {line}\n")
        self.stream.flush()

    def _log(self, line: str) -> None:
        if self.log_file is None:
            return
        try:
            with self.log_file.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
        except OSError as error:
            raise InputError(f"The log file {self.log_file} cannot be written: {error.strerror}.") from error

    def end(self) -> None:
        """Leave the bar's line."""
        if self._line:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
            self._line = ""

    def say(self, text: str) -> None:
        """A line of its own."""
        self._log(text)
        if not self.quiet:
            self.end()
            self.stream.write(text + "\n")
            self.stream.flush()
