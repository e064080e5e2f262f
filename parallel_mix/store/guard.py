"""An HDF5 file is looked at before the library opens it.

A copy of this process (a fork) reads some of everything in the file, as the HDF5 library can crash, or loop for ever,
on bytes that are not what it wrote. The copy gives itself some seconds for each part of the file; how it ends is all
that is asked. Meanwhile, where the file ends with checksums, this process compares its bytes with them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.store.checksums import Checksums, DifferentError
from parallel_mix.store.damage import MEND

DEADLINE = 4.0
"""Seconds for one part of a file, after which the library counts as in a loop (or filling memory with nothing)."""
BYTES_OF_EACH = 4_194_304
"""How much of a dataset is read at most, but for one chunk."""
LARGEST_CHUNK = 67_108_864
"""The bytes of the largest chunk, or box of values, that is read on trial."""
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)

_State = tuple[str, int, int, int, int]
_seen: dict[_State, Checksums | str | None] = {}
"""Files as they were when they were looked at: their checksums, None without any, or why they are refused."""


def look_first(path: Path, mend: str) -> None:
    """Refuse a file whose checksums differ, or which the HDF5 library does not survive; each state is tried once.

    Rows of a large matrix are not compared: that is done when they are read. `mend` is what the user is to do.
    """
    try:
        state = _state_of(path)
        if state not in _seen:
            _seen[state] = _look(path)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    seen = _seen[state]
    if isinstance(seen, str):
        raise InputError(f"{path} is damaged: {seen}; {mend}.")


def checksums_in(path: Path) -> Checksums | None:
    """The checksums of a file that `look_first` lets pass; None where it has none."""
    look_first(path, MEND)
    seen = _seen.get(_state_of(path))
    return seen if isinstance(seen, Checksums) else None


def _state_of(path: Path) -> _State:
    """The path, inode, size and times of a file: another state of the file has other ones."""
    now = path.stat()
    if not stat.S_ISREG(now.st_mode):
        raise InputError(f"{path} is no file.")
    return str(path.absolute()), now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _look(path: Path) -> Checksums | str | None:
    """The checksums of a file, None if it has none; or a text on what is wrong with it."""
    try:
        with _trial(path) as end_of_trial:
            sums = Checksums.of(path)
            if sums is not None:
                sums.compare_plain()
            end = -end_of_trial()
    except DifferentError as error:
        return str(error)
    if end == signal.SIGALRM:
        return "the HDF5 library does not come to an end with it"
    return f"the HDF5 library crashes on it ({signal.Signals(end).name})" if end in CRASHES else sums


def _trial(path: Path) -> AbstractContextManager[Callable[[], int]]:
    """A trial of the file: by a copy of this process meanwhile, or by one of the helper once its end is asked for."""
    if _helper is not None:
        return contextlib.nullcontext(partial(_helper.end_of, path))
    if "mpi4py.MPI" in sys.modules:
        return contextlib.nullcontext(lambda: 0)  # MPI should not be copied, and nobody called `before_mpi`
    return _trial_by_a_copy(path)


class _Helper:
    """A process that was forked before MPI began, and which has files read by copies of itself."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        if not os.fork():
            here.close()
            self._serve(there)
        there.close()
        self._lines = here.makefile("rw", encoding="utf-8", errors="surrogateescape")

    def end_of(self, path: Path) -> int:
        """The exit code of a copy that reads the file, a signal as a negative number."""
        self._lines.write(json.dumps(str(path.absolute())) + "\n")
        self._lines.flush()
        return int(self._lines.readline() or 0)  # nothing is known where the helper was killed

    def _serve(self, channel: socket.socket) -> NoReturn:
        """Answer until the process that was copied has ended."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _close_streams()
            with channel.makefile("rw", encoding="utf-8", errors="surrogateescape") as lines:
                while line := lines.readline():
                    with _trial_by_a_copy(Path(json.loads(line))) as end:
                        lines.write(f"{end()}\n")
                    lines.flush()
        finally:
            os._exit(0)


_helper: _Helper | None = None


def before_mpi() -> None:
    """Fork the process that tries out files, before MPI begins in this one."""
    global _helper
    _helper = _Helper()


@contextlib.contextmanager
def _trial_by_a_copy(path: Path) -> Iterator[Callable[[], int]]:
    """Let a copy of this process read a file; what is yielded waits for its exit code, a signal as a negative number.

    A copy that nobody waited for is ended: so a file that differs from its checksums ends it at once.
    """
    child = os.fork()
    if not child:
        _read_some_of_all(path)
    ended = False

    def end() -> int:
        nonlocal ended
        _, status = os.waitpid(child, 0)
        ended = True
        return os.waitstatus_to_exitcode(status)

    try:
        yield end
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _read_some_of_all(path: Path) -> NoReturn:
    """Read some of all groups, attributes and datasets; what the library says of them is left to who reads next."""
    try:
        _ring_at_the_deadline()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.disable()
        _close_streams()
        with h5py.File(path, "r", locking=False) as file:
            left, known = [(file, "/")], set()
            while left:
                group, name = left.pop()
                _ring_at_the_deadline()
                with contextlib.suppress(Exception):
                    item = group[name]
                    place = item.file.filename, h5py.h5o.get_info(item.id).addr
                    if place not in known:
                        known.add(place)
                        _touch(item)
                        left += [(item, name) for name in item] if isinstance(item, h5py.Group) else []
    except BaseException:  # noqa: S110
        pass
    finally:
        os._exit(0)


def _ring_at_the_deadline() -> None:
    """Let the system end this process if it does not call this again before the deadline."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)


def _close_streams() -> None:
    """Keep no pipe of a launcher or a shell open."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)


def _touch(item: Any) -> None:
    """Read the attributes of a group or dataset, and the first and the last values of a dataset."""
    with contextlib.suppress(Exception):
        for name in list(item.attrs):
            with contextlib.suppress(Exception):
                item.attrs[name]
    if not isinstance(item, h5py.Dataset) or item.shape is None:
        return
    size = max(item.dtype.itemsize, 1)
    if item.chunks is None:
        room, box = BYTES_OF_EACH // size, []
        for length in reversed(item.shape):
            box.append(max(min(length, room), 1))
            room //= box[-1]
        box.reverse()
    else:
        box = list(item.chunks)
    if size * int(np.prod(box, dtype=object)) <= LARGEST_CHUNK:
        item[tuple(slice(0, wide) for wide in box)]
        last = [(max(length - 1, 0) // wide) * wide for length, wide in zip(item.shape, box, strict=True)]
        item[tuple(slice(a, a + wide) for a, wide in zip(last, box, strict=True))]
