"""Who is told that code is being compiled, and for how long it was. (It needs no numba: whoever listens is quick.)"""

from __future__ import annotations

import sys
from collections.abc import Callable

TEXT = (
    "Numerical code is being compiled for this machine, once for this version of parallel-mix: this run takes up to "
    "half a minute longer."
)


def to_stderr(text: str) -> None:
    """The listener that nobody has replaced."""
    sys.stderr.write(f"parallel-mix: {text}\n")


say: Callable[[str], None] = to_stderr
seconds = 0.0
"""That this process has spent on compiling."""
