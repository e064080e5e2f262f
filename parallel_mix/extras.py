"""What an installation may lack: a sentence with the line that installs it, before any work."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from parallel_mix.errors import InputError

MODULES = {
    "dask": ("dask", "distributed", "cryptography"),
    "dask-jobqueue": ("dask_jobqueue",),
    "field": ("finufft",),
    "mpi": ("mpi4py",),
    "parquet": ("pyarrow",),
    "plots": ("matplotlib",),
    "text": ("rapidfuzz",),
}
"""The modules that an extra of the package brings, or that stand for themselves."""


def need(extra: str, what: str) -> None:
    """Refuse `what` ("Pictures") where a module of the extra is missing."""
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        verb = "need" if what.endswith("s") else "needs"
        raise InputError(f"{what} {verb} {' and '.join(missing)}, not installed here: {install_line(extra)}.")


def install_line(extra: str) -> str:
    """What to type; it names the packages themselves, so that it works from wherever parallel-mix came."""
    try:
        lines = [line.partition(";") for line in requires("parallel-mix") or []]
    except PackageNotFoundError:
        lines = []
    markers = (f'extra == "{extra}"', f"extra == '{extra}'")
    wanted = [name.strip() for name, _, marker in lines if marker.strip() in markers]
    return "pip install " + " ".join(map(shlex.quote, wanted or MODULES.get(extra, (extra,))))
