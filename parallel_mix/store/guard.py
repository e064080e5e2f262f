"""A file is looked at before a library opens it.

Where it has checksums these are compared. Where it has none it is of unknown origin, and the HDF5 library can loop for
ever, or crash, on bytes that are not what it wrote. So it is read once by a copy of this process, which has some
seconds; how that ends is all that is asked.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import h5py

from parallel_mix.errors import InputError
from parallel_mix.store.checksums import Checksums

DEADLINE = 8.0
"""Seconds after which the library is taken to be in a loop."""
ENOUGH = 0.5
"""Seconds after which a file is taken to be good as far as it was read."""
READ_AT_MOST = 4_194_304
"""Bytes of a dataset that are read: what lies in the file as it is needs no library's care."""

_seen: dict[tuple[str, int, int], Checksums | InputError | None] = {}
"""Files by name, size and time of their last change: their checksums, or why they are refused."""


def look_first(path: Path, mend: str) -> Checksums | None:
    """Refuse a file whose checksums differ, or which the HDF5 library does not survive; its checksums, if it has any.

    Each state of a file is looked at once. Rows of a large matrix are compared when they are read.
    """
    try:
        stat = path.stat()
    except OSError:
        return None  # opening it says why
    state = (str(path.absolute()), stat.st_size, stat.st_mtime_ns)
    if state not in _seen:
        try:
            if found := Checksums.of(path, mend):
                found.compare_plain(mend)
            else:
                _try_out(path, mend)
            _seen[state] = found
        except OSError:
            return None
        except InputError as error:
            _seen[state] = error
    seen = _seen[state]
    if isinstance(seen, InputError):
        raise seen
    return seen


def _try_out(path: Path, mend: str) -> None:
    """Let a copy of this process read the file, which has no checksums."""
    if _deputy is None and "mpi4py.MPI" in sys.modules:
        return  # MPI's libraries do not like to be copied, and nobody called `before_mpi`
    end = _end_of(path) if _deputy is None else _deputy.end_of(path)
    if end is None:
        raise InputError(f"{path} is damaged: the HDF5 library does not come to an end with it; {mend}.")
    if end < 0:
        raise InputError(f"{path} is damaged: the HDF5 library crashes on it ({signal.Signals(-end).name}); {mend}.")


class _Deputy:
    """A copy of this process from before MPI began, which has files read by copies of itself."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        if not os.fork():
            here.close()
            self._serve(there)
        there.close()
        self._lines = here.makefile("rw", encoding="utf-8", errors="surrogateescape")

    def end_of(self, path: Path) -> int | None:
        """How a copy that reads the file ends."""
        self._lines.write(json.dumps(str(path.absolute())) + "\n")
        self._lines.flush()
        answer = self._lines.readline()
        return json.loads(answer) if answer else 0  # it was ended by somebody: nothing is known

    def _serve(self, channel: socket.socket) -> NoReturn:
        """Till the process that was copied is gone."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _hear_and_say_nothing()
            with channel.makefile("rw", encoding="utf-8", errors="surrogateescape") as lines:
                while line := lines.readline():
                    lines.write(json.dumps(_end_of(Path(json.loads(line)))) + "\n")
                    lines.flush()
        finally:
            os._exit(0)


_deputy: _Deputy | None = None


def before_mpi() -> None:
    """Make ready to try out files although MPI is about to begin in this process."""
    global _deputy
    _deputy = _Deputy()


def _end_of(path: Path) -> int | None:
    """The exit code of a copy that reads a file, a signal as a negative one; None: it was ended at the deadline."""
    child = os.fork()
    if not child:
        _read_all(path)
    began, pause = time.monotonic(), 0.0005
    while time.monotonic() - began < DEADLINE:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _read_all(path: Path) -> None:
    """Touch all groups, attributes and datasets; an error that the library tells is left to who reads next."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.disable()
        _hear_and_say_nothing()
        until = time.monotonic() + ENOUGH

        def look(name: str, item: Any) -> bool | None:
            _touch(name, item)
            return True if time.monotonic() > until else None

        with h5py.File(path, "r", locking=False) as file:
            _touch("", file)
            file.visititems(look)
    except BaseException:  # noqa: S110
        pass
    finally:
        os._exit(0)


def _hear_and_say_nothing() -> None:
    """Keep no pipe of a launcher or a shell open."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def _touch(name: str, item: Any) -> None:
    """Read what there is of one part of a file."""
    try:
        list(item.attrs.items())
        if isinstance(item, h5py.Dataset):
            rows = item[: max(READ_AT_MOST // max(item.nbytes // max(len(item), 1), 1), 1)] if item.shape else item[()]
            del rows
    except Exception:  # noqa: S110
        pass
