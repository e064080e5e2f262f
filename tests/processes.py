"""Commands in processes of their own, without the second that Python takes to load libraries.

A server that has loaded them forks a process for each command (`tests/fork_server.py`). It serves the whole run of the
tests, and so does one Dask cluster.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests import stand_in

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        print(cluster.scheduler_address, file=open(sys.argv[1], "w"))
        sys.stdin.read()
"""
ADDRESS = "PARALLEL_MIX_TESTS_DASK"
"""The environment variable that names the file with the address of the Dask cluster of this run of the tests."""
FORKS = "PARALLEL_MIX_TESTS_FORKS"
"""The environment variable that names the socket of the server of forks of this run of the tests."""
IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""Without these a cluster that has nothing to do takes a twelfth of a processor: for profiles, and to watch itself."""


def run_forked(
    words: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command line program to its end, as `subprocess.run` would."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(os.devnull) as none,  # noqa: PTH123
        stand_in.ask(_forks(), list(words), dict(environment), [some.fileno() for some in (none, out, err)]) as fork,
    ):
        fork.settimeout(timeout)
        try:
            code = int(fork.makefile().read().split()[1])
        except TimeoutError:
            raise subprocess.TimeoutExpired(list(words), timeout) from None
        said, warned = ((some.seek(0), some.read().decode(errors="replace"))[1] for some in (out, err))
        return subprocess.CompletedProcess(list(words), code, said, warned)


def program() -> list[str]:
    """The words that start the command line program, for mpirun too: a process that stands in for a fork."""
    return [sys.executable, "-IS", str(stand_in.__file__), _forks()]


@cache
def _forks() -> str:
    """The socket of the server of forks, which is started where it has not been yet."""
    if FORKS not in os.environ:
        start_forks()
    _wait_for(Path(os.environ[FORKS]).exists, "The server of forks")
    return os.environ[FORKS]


def start_dask() -> None:
    """Start the one Dask cluster of this run of the tests: two workers of one thread, until this process ends."""
    _start_server(ADDRESS, ["-c", CLUSTER], IDLE, subprocess.DEVNULL)


def start_forks() -> None:
    """Start the one server of forks of this run of the tests, until this process ends."""
    _start_server(FORKS, ["-m", "tests.fork_server"], {}, None)


def _start_server(variable: str, words: list[str], more: Mapping[str, str], errors: int | None) -> None:
    """Start a program that makes a file, whose name the variable holds, and ends when its input does."""
    folder = tempfile.TemporaryDirectory()
    os.environ[variable] = str(Path(folder.name) / "at")
    server = subprocess.Popen(
        [sys.executable, *words, os.environ[variable]], stdin=subprocess.PIPE, stderr=errors,
        env={**os.environ, **more, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    )  # fmt: skip
    atexit.register(folder.cleanup)
    atexit.register(server.communicate, timeout=30)


@cache
def dask_address() -> str:
    """The address of the one Dask cluster of this run of the tests, which is started where it has not been yet."""
    if ADDRESS not in os.environ:
        start_dask()
    file = Path(os.environ[ADDRESS])
    _wait_for(lambda: file.exists() and file.read_text().endswith("\n"), "The Dask cluster")
    return file.read_text().strip()


PATIENCE = 240.0
"""Seconds that a server of the tests may take to start; the first one on a machine compiles all numerical code."""


def _wait_for(there: Callable[[], bool], what: str) -> None:
    """Wait for something that is started."""
    until = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < until, f"{what} of the tests did not start within {PATIENCE:.0f} seconds."
        time.sleep(0.1)
