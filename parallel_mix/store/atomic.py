"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parallel_mix.errors import InputError


@contextmanager
def written_whole(path: Path, sync: bool = True) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success sync and rename it, otherwise remove it."""
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}.part")
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
        if sync:
            sync_folder(path.parent)
    except OSError as error:
        raise InputError(explain(error, path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Write a text file, whole or not at all; a long text may come in parts."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines([text] if isinstance(text, str) else text)


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all, without waiting for the disk: a live status is soon replaced."""
    with written_whole(path, sync=False) as temporary:
        temporary.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def explain(error: OSError, path: Path) -> str:
    """A sentence on why a path could not be written."""
    number, text = error.errno, str(error)
    if number in (errno.ENOSPC, errno.EDQUOT) or "No space left" in text or f"errno = {errno.ENOSPC}" in text:
        return f"The disk of {path.parent} is full: {path.name} could not be written. Free some space and run again."
    if number == errno.EFBIG or f"errno = {errno.EFBIG}" in text:
        return f"{path} would be larger than this system or your limits allow (ulimit -f)."
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{path} cannot be written: no permission to write in {path.parent}."
    if number == errno.ENOENT and path.parent.is_dir():
        return f"{path.parent} is no folder for files: give another output path."
    if number == errno.ENOENT:
        return f"The folder {path.parent} does not exist: create it, or give another output path."
    return f"{path} could not be written: {error.strerror or text}."


def check_writable(path: Path) -> None:
    """Refuse an output that cannot be written, before the work and not after it."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file to write.")
    probe = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}.probe")
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(explain(error, path)) from error


def sync_folder(folder: Path) -> None:
    """Write to disk that a file in this folder has got its name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems cannot sync a folder; the rename is done all the same
        return
    finally:
        os.close(descriptor)
