"""What all tests share: programs of the environment, a table of clusters, comparison of result files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from parallel_mix.kernels.metrics.signatures import Signatures
from parallel_mix.store.checksums import Checksums
from tests.processes import dask_address, program, run_forked, start_dask, start_forks

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[1]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPI_ENVIRONMENT = {**AS_ROOT, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
NOT_STARTED = "listener thread failed to start"
"""What mpirun of Open MPI 5.0 says once in a thousand times, before any rank runs: it is called again then."""
UNDER_MPI = "OMPI_COMM_WORLD_SIZE" in os.environ

FIRST = ("slurm", "test_package.py", "jobs", "families", "mpi")
"""Rooms and files whose tests take longest: they begin first where tests run in several processes."""


def place_in_order(file: Path) -> int:
    """The number in `FIRST` of a file of tests, or of its room."""
    return next((k for k, name in enumerate(FIRST) if name in (file.parent.name, file.name)), len(FIRST))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first."""
    items.sort(key=lambda item: place_in_order(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out tests of the long rooms by files, whose fixtures are dear, and those of SLURM to one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByRoom(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.partition("::")[0])
            if file.parent.name == "slurm":
                return "slurm"
            return str(file) if place_in_order(file) < len(FIRST) else nodeid

    return ByRoom(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start the one Dask cluster and the one server of forks, which serve all processes of the tests."""
    start_dask()
    start_forks()


BUDGET = 25.0
"""Seconds that the shared tests of one family may take, on two cores that have nothing else to do."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what the shared tests of each family took, beside their budget: a test itself asserts no time."""
    seconds: dict[str, float] = {}
    for report in (one for some in terminalreporter.stats.values() for one in some if hasattr(one, "duration")):
        if "test_every_family.py::" in report.nodeid and "[" in report.nodeid:
            family = report.nodeid.rpartition("[")[2].split("-")[0].rstrip("]")
            seconds[family] = seconds.get(family, 0.0) + report.duration
    if seconds:
        shown = ", ".join(f"{name} {took:.0f}" for name, took in sorted(seconds.items(), key=lambda item: -item[1]))
        terminalreporter.write_line(f"Shared tests of each family, seconds (budget {BUDGET:.0f}): {shown}")


Program = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **MPI_ENVIRONMENT, **more}


def mpirun(ranks: int) -> list[str]:
    return [str(BIN / "mpirun"), "--oversubscribe", "-n", str(ranks)]


def launcher(backend: str) -> tuple[list[str], list[str]]:
    """Words before and after the command line of a program for a backend: serial, mpi2, mpi3, dask2, own-dask2, ...

    `dask2` is the one cluster of this run of the tests, `own-dask2` one that the command starts.
    """
    name, count = backend.rstrip("0123456789"), backend.lstrip("abcdefghijklmnopqrstuvwxyz-")
    if name == "mpi":
        return mpirun(int(count)), []
    if name == "dask":
        return [], ["--backend", "dask", "--scheduler", dask_address()]
    if name == "own-dask":
        return [], ["--backend", "dask", "--workers", count]
    return [], ["--threads", count] if count else []


def parallel_mix(
    *words: object, backend: str = "serial", timeout: float = 120, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line program to its end; `more` are variables of its environment."""
    before, after = launcher(backend)
    forked = more.keys() <= {"PYTHONPATH"}  # what reads other variables when it is loaded has been loaded by then
    if not before and forked:
        return run_forked([*map(str, words), *after], environment(**more), timeout)
    first = program() if forked else [str(BIN / "parallel-mix")]
    return run_to_end([*before, *first, *map(str, words), *after], timeout, **more)


def run_to_end(command: list[str], timeout: float = 120, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, anew where mpirun did not start it."""
    for _ in range(3):
        done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, timeout=timeout)
        if NOT_STARTED not in done.stderr:
            break
    return done


def children(pid: int) -> list[int]:
    """The processes that a process has started, by their ids."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                    pids.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return pids


def kill_with_children(process: subprocess.Popen[Any]) -> None:
    """End a process and all that it has started, ranks too, which have process groups of their own."""
    generations = [[process.pid]]
    while generations[-1]:
        generations.append([child for pid in generations[-1] for child in children(pid)])
    for pid in (pid for generation in generations for pid in generation):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def contents(path: Path, without: tuple[str, ...] = ("run",)) -> dict[str, np.ndarray]:
    """Every dataset and attribute of a result but its run record."""
    arrays: dict[str, np.ndarray] = {}

    def visit(name: str, item: object) -> None:
        if name != "/" and name.split("/")[0] in without:
            return
        for key, value in item.attrs.items():  # type: ignore[attr-defined]
            arrays[f"{name}@{key}"] = np.asarray(value)
        if isinstance(item, h5py.Dataset):
            arrays[name] = np.asarray(item[()])

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)
    return arrays


def assert_same_result(one: Path, other: Path, without: tuple[str, ...] = ("run",)) -> None:
    """Bit for bit the same, but for the run record; both with sound checksums, if with any."""
    for path in (one, other):
        if (sums := Checksums.of(path)) is not None:
            sums.compare_all()
    a, b = contents(one, without), contents(other, without)
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert value.dtype == b[name].dtype, name
        same = value.tolist() == b[name].tolist() if value.dtype == object else value.tobytes() == b[name].tobytes()
        assert same, name


def blobs(n: int = 300, d: int = 3, k: int = 4, seed: int = 1) -> np.ndarray:
    """A table of k clusters with a few stragglers."""
    r = np.random.default_rng(seed)
    centres = r.normal(0, 4, (k, d))
    X = centres[r.integers(0, k, n)] + r.normal(size=(n, d))
    X[: n // 20] = r.uniform(-8, 8, (n // 20, d))
    return X


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small csv file with a header."""
    path = tmp_path / "table.csv"
    np.savetxt(path, blobs(), delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    return path


@pytest.fixture(params=["mpi"] if UNDER_MPI else ["serial", "inline", "dask"])
def backend(request: pytest.FixtureRequest) -> Iterator[object]:
    """A running backend of each kind; under mpirun, ranks above 0 serve it and skip the test's body."""
    if request.param == "mpi":
        from parallel_mix.backends.mpi import MpiBackend

        made = MpiBackend(threads=2)
        if made.rank > 0:
            made.serve()
            pytest.skip("served rank 0")
        with made:
            yield made
    elif request.param == "dask":
        from parallel_mix.backends.dask import DaskBackend

        with DaskBackend(client=request.getfixturevalue("dask_client")) as made:
            yield made
    elif request.param == "inline":
        if "backend_of_workers" in request.fixturenames:
            pytest.skip("one task at a time, by this thread")
        from parallel_mix.backends.inline import InlineBackend

        with InlineBackend() as made:
            yield made
    else:
        from parallel_mix.backends.serial import SerialBackend

        with SerialBackend(threads=2) as made:
            yield made


@pytest.fixture
def backend_of_workers(backend: object) -> object:
    """A running backend that is more than this thread."""
    return backend


@pytest.fixture(scope="session")
def dask_client() -> Iterator[object]:
    from distributed import Client

    with Client(dask_address()) as client:
        yield client


def signatures(n: int, d: int, seed: int, lattice: bool = False) -> Signatures:
    """Sets of 1 to 14 weighted points; on a lattice with equal weights, where best transports are many."""
    r = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(r.integers(1, 15, n))])
    values, weights = r.normal(size=(offsets[-1], d)), r.uniform(0.05, 1.0, offsets[-1])
    if lattice:
        values, weights = np.round(values), np.ones(len(weights))
    return Signatures(values, weights / np.repeat(np.add.reduceat(weights, offsets[:-1]), np.diff(offsets)), offsets)


@pytest.fixture
def shared_data() -> Callable[[str], dict[str, np.ndarray]]:
    """The papers' real data where they are; tests skip where they are not."""

    def load(name: str) -> dict[str, np.ndarray]:
        path = ROOT.parent / "shared" / "data" / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"the papers' data are not here: {path.name}")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load
