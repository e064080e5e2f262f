"""Compiled code, kept for the next process in a folder that goes by the text of all kernels.

numba looks at the file of a function to see whether it may use what it compiled before; but it compiles the functions
of other files into it that this one calls. So the folder is another one as soon as any kernel is: an upgraded package
never runs what was compiled from an older one.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from numba import config, njit
from numba.core import event

from parallel_mix import compile_notice

F = TypeVar("F", bound=Callable[..., Any])
Inline = Literal["never", "always"]
REORDERED = {"reassoc", "contract", "nsz"}
"""Sums may be added in another order, so that several numbers are added at once; always in the same one."""
HERE = Path(__file__).parent
SAID_FOR = 30.0
"""Seconds for which one process speaks for all that start together."""


def digest_of(folder: Path) -> str:
    """A short digest of the Python files below a folder."""
    text = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        text.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return text.hexdigest()[:16]


def cache_folder() -> Path | None:
    """Where compiled code is kept: where the user says (NUMBA_CACHE_DIR), beside the kernels, or in the home folder.

    Never in a folder that others may write to: what is in it is run.
    """
    name = f"parallel-mix-{digest_of(HERE)}"
    said = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for parent in (Path(said),) if said else (HERE / "__pycache__", home / "parallel-mix"):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return parent / name
    return None


FOLDER = cache_folder()


@overload
def compiled(function: F) -> F: ...
@overload
def compiled(*, inline: Inline = "never", fastmath: set[str] | bool = False) -> Callable[[F], F]: ...
def compiled(function: Any = None, *, inline: Inline = "never", fastmath: set[str] | bool = False) -> Any:
    """The function in machine code, which other threads need not wait for; 1/0 is infinite, as in NumPy."""
    if function is None:
        return partial(compiled, inline=inline, fastmath=fastmath)
    compile_it = partial(njit, nogil=True, forceinline=True, inline=inline, fastmath=fastmath, error_model="numpy")
    if FOLDER is None:
        return compile_it()(function)
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = str(FOLDER)  # type: ignore[attr-defined]
    try:
        return compile_it(cache=True)(function)
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


def _is_first_to_say() -> bool:
    """Whether no other process has said it just now."""
    if FOLDER is None:
        return True
    mark = FOLDER / "said"
    try:
        recent = time.time() - mark.stat().st_mtime < SAID_FOR
    except OSError:
        recent = False
    if not recent:
        mark.touch()
    return not recent


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("parallel_mix.")


class _Compilation(event.Listener):
    """Says once that code is compiled, and adds up how long that takes."""

    def __init__(self) -> None:
        self.said, self.depth, self.began = False, 0, 0.0

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        if not self.depth:
            self.began = time.monotonic()
        self.depth += 1
        if not self.said and _is_first_to_say():
            compile_notice.say(compile_notice.TEXT)
        self.said = True

    def on_end(self, event: Any) -> None:
        if _is_ours(event):
            self.depth -= 1
            if not self.depth:
                compile_notice.seconds += time.monotonic() - self.began


event.register("numba:compile", _Compilation())  # type: ignore[no-untyped-call]
