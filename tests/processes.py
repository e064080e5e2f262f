"""Commands in processes of their own, without the second that Python takes to load libraries.

A server that has loaded them forks a process for each command (`forkserver` of the standard library). It has begun no
threads of OpenMP, which would not survive a fork: it loads what brings them, and computes nothing by it. One Dask
cluster serves the whole run of the tests.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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
IDLE = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
}
"""Without these a cluster that has nothing to do takes a twelfth of a processor: for profiles, and to watch itself."""


def _run_here(words: Sequence[str], folder: str, environment: Mapping[str, str], out: str, err: str) -> None:
    """What a forked process does."""
    for number, path in ((1, out), (2, err)):
        to = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, number)
        os.close(to)
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
        process = _context().Process(target=_run_here, args=arguments)  # type: ignore[attr-defined]
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
    folder = tempfile.TemporaryDirectory()
    os.environ[ADDRESS] = str(Path(folder.name) / "address")
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, os.environ[ADDRESS]], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, **IDLE, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
    )  # fmt: skip
    atexit.register(folder.cleanup)
    atexit.register(cluster.communicate, timeout=30)


@cache
def dask_address() -> str:
    """The address of the one Dask cluster of this run of the tests, which is started where it has not been yet."""
    if ADDRESS not in os.environ:
        start_dask()
    file, patience = Path(os.environ[ADDRESS]), time.monotonic() + 60.0
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < patience, "The Dask cluster of the tests did not start within a minute."
        time.sleep(0.1)
    return file.read_text().strip()
