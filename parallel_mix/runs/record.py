"""The record of a run, kept with its result: who computed what, with what, where, and how long."""

from __future__ import annotations

import platform
import shlex
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parallel_mix import __version__
from parallel_mix.backends.base import Backend
from parallel_mix.config import CommonOptions

PACKAGES = ("numpy", "scipy", "h5py", "mpi4py", "distributed")


def run_record(command: str, options: CommonOptions, backend: Backend, digest: str) -> dict[str, Any]:
    """What is known before the result is; of the packages those that are in use by then."""
    numbers = {name: getattr(sys.modules.get(name), "__version__", None) for name in PACKAGES}
    versions = {"parallel-mix": __version__, **{name: number for name, number in numbers.items() if number}}
    return {
        "command": command,
        "command_line": shlex.join(sys.argv),
        "config": {key: str(v) if isinstance(v, Path) else v for key, v in asdict(options).items()},
        "seed": options.seed,
        "versions": {"python": platform.python_version(), **versions},
        "host": socket.gethostname(),
        "machine": platform.platform(),
        "backend": backend.name,
        "workers": backend.size,
        "input_digest": digest,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
