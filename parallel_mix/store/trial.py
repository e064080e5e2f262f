"""Trials of whether a folder's file system does what HDF5 and parallel writers need."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import h5py

READ = """
import sys, h5py
try:
    h5py.File(sys.argv[1], "r").close()
except BlockingIOError:
    print("locked")
"""
WRITE = """
import os, sys
handle = os.open(sys.argv[1], os.O_WRONLY)
part = int(sys.argv[2])
for block in range(part, 64, 2):
    os.pwrite(handle, bytes([block]) * 65536, block * 65536)
os.fsync(handle)
"""


def locking(folder: Path) -> bool:
    """Whether a file that is being written is locked for readers in other processes."""
    path = folder / f".lock-{secrets.token_hex(4)}.h5"
    try:
        with h5py.File(path, "w"):
            words = [sys.executable, "-c", READ, str(path)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.strip() == "locked"
    except OSError:
        return False
    finally:
        path.unlink(missing_ok=True)


def parallel_writes(folder: Path) -> bool:
    """Whether two processes can write the blocks of one file in turns and none is lost."""
    path = folder / f".write-{secrets.token_hex(4)}"
    try:
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 64 * 65536)
        writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(path), str(part)]) for part in (0, 1)]
        codes = [writer.wait(timeout=60) for writer in writers]
        return not any(codes) and path.read_bytes() == b"".join(bytes([block]) * 65536 for block in range(64))
    except OSError:
        return False
    finally:
        path.unlink(missing_ok=True)
