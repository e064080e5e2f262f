"""Commands in processes of their own, without the second that Python takes to load libraries.

A server that has loaded them forks a process for each command (`forkserver` of the standard library; for ranks,
`tests/ranks.py`). It has begun no threads of OpenMP, which would not survive a fork: it loads what brings them, and
computes nothing by it. One Dask cluster serves the whole run of the tests, and one server of ranks.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

PRELOADED = [
    "h5py",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "scipy.cluster.hierarchy",
    "scipy.spatial",
    "sklearn.metrics",
    "sklearn.model_selection",
    "sklearn.svm",
    "sklearn.tree",
    "parallel_mix.evaluate.crossval",
    "parallel_mix.families.hmac.file",
    "parallel_mix.models.clusters.clustering",
    "parallel_mix.models.hlm.incremental",
    "parallel_mix.models.hmac.prediction",
    "parallel_mix.models.distances.pairwise",
    "parallel_mix.runs.job",
    "tests.warmed",
]
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
RANKS = "PARALLEL_MIX_TESTS_RANKS"
"""The environment variable that names the socket of the server of ranks of this run of the tests."""
IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""Without these a cluster that has nothing to do takes a twelfth of a processor: for profiles, and to watch itself."""


def _run_into(words: Sequence[str], folder: str, environment: Mapping[str, str], out: str, err: str) -> None:
    """What a forked process does; what it says goes into files."""
    for number, path in ((1, out), (2, err)):
        to = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, number)
        os.close(to)
    run_here(words, folder, environment)


def run_here(words: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
    """Run the command line program in this process, as if it had been started in a folder and an environment."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    own = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:] = own + [folder if place == "" else place for place in sys.path]
    sys.argv = ["parallel-mix", *words]
    if os.environ.get("PARALLEL_MIX_TESTS_TOY"):
        import tests.toy  # noqa: F401
    from parallel_mix.cli import main

    try:
        main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@cache
def _context() -> multiprocessing.context.BaseContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def run_forked(
    words: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command line program to its end, as `subprocess.run` would."""
    with tempfile.TemporaryDirectory() as name:
        out, err = Path(name) / "out", Path(name) / "err"
        arguments = (list(words), str(Path.cwd()), dict(environment), str(out), str(err))
        process = _context().Process(target=_run_into, args=arguments)  # type: ignore[attr-defined]
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(words), timeout)
        said, warned = (path.read_text(errors="replace") if path.exists() else "" for path in (out, err))
        return subprocess.CompletedProcess(list(words), process.exitcode, said, warned)


def start_dask() -> None:
    """Start the one Dask cluster of this run of the tests: two workers of one thread, until this process ends."""
    _start_server(ADDRESS, ["-c", CLUSTER], IDLE)


def start_ranks() -> None:
    """Start the one server of ranks of this run of the tests, until this process ends."""
    _start_server(RANKS, ["-m", "tests.ranks"], {})


def _start_server(variable: str, words: list[str], more: Mapping[str, str]) -> None:
    """Start a program that makes a file, whose name the variable holds, and ends when its input does."""
    folder = tempfile.TemporaryDirectory()
    os.environ[variable] = str(Path(folder.name) / "at")
    server = subprocess.Popen(
        [sys.executable, *words, os.environ[variable]], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
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


@cache
def rank() -> list[str]:
    """The words that mpirun is to start as a rank, for a rank that the server forks."""
    if RANKS not in os.environ:
        start_ranks()
    _wait_for(Path(os.environ[RANKS]).exists, "The server of ranks")
    return [sys.executable, "-IS", str(Path(__file__).with_name("rank.py")), os.environ[RANKS]]


def _wait_for(there: Callable[[], bool], what: str) -> None:
    """Wait a minute for something that is started."""
    patience = time.monotonic() + 60.0
    while not there():
        assert time.monotonic() < patience, f"{what} of the tests did not start within a minute."
        time.sleep(0.1)
