"""Parts of files that are mapped into memory, and what becomes of it when a file is cut short meanwhile.

Whoever touches a page of a mapping that the file has no more, gets the signal SIGBUS, which ends the process without a
word. Here such pages are replaced by zeros: the computation comes to its end, and then the check of the file
(`StoredMatrix.check_unchanged`) fails, and every backend says so in words. Where the file is
as long as it was, its disk cannot be read: the process ends with a sentence of that.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

PAGE = mmap.PAGESIZE
ADDRESS_AT = 16
"""Where the address is in what the system says of a signal (`siginfo_t`, on 64-bit Linux)."""
WITH_INFORMATION = 4
"""SA_SIGINFO"""
FIXED, ANONYMOUS, PRIVATE, READ_WRITE = 0x10, 0x20, 0x02, 0x3


@dataclass(frozen=True)
class Mapping:
    """The place in memory of a part of a file."""

    first: int
    end: int
    offset: int  # in the file, of the first byte
    path: Path


_mappings: weakref.WeakKeyDictionary[Any, Mapping] = weakref.WeakKeyDictionary()


class _Action(ctypes.Structure):
    """An action to be done at a signal (`struct sigaction` of Linux's C libraries)."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def mapped(path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], mode: Literal["r", "c"]) -> Any:
    """An array that is a part of a file; with "c" what is written to it stays here."""
    entries = np.memmap(path, dtype=dtype, mode=mode, offset=offset, shape=shape)
    pages = entries._mmap  # type: ignore[attr-defined]
    first = entries.ctypes.data // PAGE * PAGE
    _mappings[pages] = Mapping(first, first + len(pages), offset - (entries.ctypes.data - first), path)
    _listen()
    return entries.view(np.ndarray)


def _lost_page(number: int, information: int, context: int) -> None:
    """Put zeros where a file has been cut; end the process where it was not, or the memory is no file of ours."""
    address = ctypes.c_uint64.from_address(information + ADDRESS_AT).value
    for pages, here in list(_mappings.items()):
        if here.first <= address < here.end:
            page = address // PAGE * PAGE
            if pages.size() > here.offset + page - here.first:
                words = f"parallel-mix: {here.path} cannot be read: its disk, or its network file system, has failed.\n"
                os.write(2, words.encode())
                os._exit(2)
            flags = PRIVATE | ANONYMOUS | FIXED
            place, length = ctypes.c_void_p(page), ctypes.c_size_t(here.end - page)
            _system().mmap(place, length, READ_WRITE, flags, -1, ctypes.c_long(0))
            return
    _system().sigaction(number, ctypes.byref(_Action()), None)  # it comes again at once, and ends the process


_handler: Any = None


def _listen() -> None:
    """Handle pages that are not there any more, in this process and those forked from it."""
    global _handler
    if _handler is None and sys.platform == "linux" and sys.maxsize > 2**32:
        _handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(_lost_page)
        action = _Action(handler=ctypes.cast(_handler, ctypes.c_void_p), flags=WITH_INFORMATION)
        _system().sigaction(int(signal.SIGBUS), ctypes.byref(action), None)


def _system() -> Any:
    """The C library."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    return library
