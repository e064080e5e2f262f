"""Checks of this installation, this folder and this cluster, so that no night is lost by a fault of theirs.

Each finding says that something is well, or what to do about it.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix import __version__
from parallel_mix.backends.mpi_launch import launched_by_mpi, launched_size
from parallel_mix.backends.mpi_probe import facts_of_all, round_trips
from parallel_mix.backends.threads import available_cores
from parallel_mix.cluster import slurm
from parallel_mix.cluster.supervisor import choose_launcher, mpi_library
from parallel_mix.errors import ParallelMixError
from parallel_mix.store.trial import locking, parallel_writes

if TYPE_CHECKING:
    from parallel_mix.backends.mpi import MpiBackend

MEBI = 2**20
LARGE_MESSAGE = 4 * MEBI
"""Bytes of the message by which bandwidth is measured."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: what it is, whether it is well, and what to say of it."""

    what: str
    well: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.well else 'MEND'}  {self.what}: {self.text}"


def findings_of_process(folder: Path) -> Iterator[Finding]:
    """The findings of everything that one process can check; results are to be written to the folder."""
    yield _packages()
    yield from _mpi()
    yield _machine()
    yield _blas()
    yield from _folder(folder)
    yield _dask()
    yield from _slurm()


def _packages() -> Finding:
    installed, missing = [], []
    for name in ("numpy", "scipy", "h5py", "mpi4py", "distributed", "dask-jobqueue", "matplotlib", "pyarrow"):
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    text = f"parallel-mix {__version__}, Python {platform.python_version()}, {', '.join(installed)}"
    without = f"; not installed, and needed only for what uses them: {', '.join(missing)}" if missing else ""
    return Finding("packages", True, text + without)


def _mpi() -> Iterator[Finding]:
    library = mpi_library()
    if not library:
        advice = "none is found: pip install 'parallel-mix[mpi-runtime]', or load the site's MPI and install mpi4py"
        yield Finding("MPI library", False, advice)
        return
    yield Finding("MPI library", True, library.split(", package")[0])
    own = Path(sys.executable).with_name("mpirun")
    mpirun = str(own) if own.exists() else shutil.which("mpirun")
    on_path = shutil.which("mpirun")
    if mpirun is None:
        yield Finding("mpirun", bool(slurm.mpi_kinds()), "not found; srun can do its work where SLURM is")
    else:
        done = subprocess.run([mpirun, "--version"], capture_output=True, text=True, timeout=30, check=False)
        said = (done.stdout + done.stderr).strip().splitlines()[0]
        fits = ("Open MPI" in said) == ("Open MPI" in library)
        advice = "" if fits else " - of another MPI than mpi4py uses: ranks would not know of each other; mend PATH"
        yield Finding("mpirun", fits, f"{said} ({mpirun}){advice}")
        if fits and on_path and Path(on_path).resolve() != Path(mpirun).resolve():
            advice = f"the first on PATH is {on_path}: call {mpirun}, or `source {own.parent}/activate`"
            yield Finding("PATH", False, advice)
    kinds = slurm.mpi_kinds()
    if kinds:
        chosen = choose_launcher(library, kinds)
        yield Finding("srun and MPI", True, f"srun offers {', '.join(kinds)}; ranks are started by `{chosen}`")
        if "Open MPI" in library and not any(kind.startswith("pmix") for kind in kinds):
            text = "srun has no pmix for Open MPI; mpirun in the job does as well, and is what `launch` uses"
            yield Finding("PMIx", True, text)


def _machine() -> Finding:
    cores, memory = available_cores(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    per_core = memory / max(cores, 1)
    text = f"{socket.gethostname()}: {cores} cores to use, {memory:.1f} GiB of memory ({per_core:.1f} a core)"
    return Finding("machine", per_core > 0.5, text + ("" if per_core > 0.5 else " - little: use fewer ranks a node"))


def _blas() -> Finding:
    import numpy  # noqa: F401 (its BLAS is what is looked at)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    if not pools:
        return Finding("BLAS", False, "NumPy has none that can be recognised: steps will be slow; reinstall NumPy")
    text = ", ".join(f"{p['internal_api']} {p['version']} ({p.get('architecture', '?')})" for p in pools)
    return Finding("BLAS", True, f"{text}; parallel-mix holds it to one thread a rank")


def _folder(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        yield Finding("folder", False, f"{folder} is no folder")
        return
    try:
        probe = folder / f".doctor-{secrets.token_hex(4)}"
        probe.write_bytes(b"x" * 4096)
        probe.rename(probe.with_suffix(".moved")).unlink()
    except OSError as error:
        yield Finding("folder", False, f"{folder} cannot be written: {error.strerror}")
        return
    free = shutil.disk_usage(folder).free / 2**30
    yield Finding("folder", free > 1, f"{folder.resolve()}: writable, {free:.0f} GiB free")
    locks = locking(folder)
    advice = "not supported here: export HDF5_USE_FILE_LOCKING=FALSE (parallel-mix writes each file from one process)"
    yield Finding("HDF5 locking", locks, "works" if locks else advice)
    sound = parallel_writes(folder)
    advice = "two processes that write parts of one file lose data here: use another file system for large matrices"
    yield Finding("parallel writes", sound, "two processes wrote one file, all bytes are there" if sound else advice)


def _dask() -> Finding:
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            socket.create_connection(server.getsockname(), timeout=2).close()
    except OSError as error:
        return Finding("Dask ports", False, f"no port can be opened on the loopback: {error.strerror}")
    return Finding("Dask ports", True, "ports can be opened on the loopback")


def _slurm() -> Iterator[Finding]:
    if shutil.which("sinfo") is None:
        yield Finding("SLURM", True, "not here: mpirun and Dask work without it")
        return
    try:
        lines = slurm.call(["scontrol", "-o", "show", "partition"]).splitlines()
    except ParallelMixError as error:
        configured = "SLURM_CONF" in os.environ or Path("/etc/slurm/slurm.conf").exists()
        text = str(error) if configured else "its programs are here, but no cluster is configured"
        yield Finding("SLURM", not configured, text)
        return
    for line in lines:
        facts = dict(re.findall(r"(\w+)=(\S+)", line))
        up = facts.get("State") == "UP"
        default = ", default" if facts.get("Default") == "YES" else ""
        text = (
            f"{facts.get('TotalNodes')} nodes, {facts.get('TotalCPUs')} cores, longest job {facts.get('MaxTime')}, "
            f"at most {facts.get('MaxNodes')} nodes a job{default}"
        )
        yield Finding(
            f"partition {facts.get('PartitionName')}", up, text if up else f"{facts.get('State')}: use another"
        )


def findings_of_ranks(backend: MpiBackend) -> list[Finding]:
    """The findings of what the ranks can check together; all of them call this, and rank 0 gets the findings."""
    expected = launched_size() if launched_by_mpi() else 1
    if backend.ranks != expected:
        text = f"{expected} were started, MPI sees {backend.ranks}: launcher and MPI library do not fit"
        return [Finding("ranks", False, text)]
    facts = facts_of_all(backend, (backend.host, __version__, len(os.sched_getaffinity(0))))
    trips = round_trips(backend, (8, LARGE_MESSAGE))
    if backend.rank:
        return []
    hosts = [host for host, _, _ in facts]
    counted = ", ".join(f"{hosts.count(host)} on {host}" for host in dict.fromkeys(hosts))
    findings = [Finding("ranks", True, f"{backend.ranks}: {counted}")]
    versions = {version for _, version, _ in facts}
    text = "the same everywhere" if len(versions) == 1 else f"differ: {', '.join(sorted(versions))}; install one"
    findings.append(Finding("versions", len(versions) == 1, text))
    crowded = [host for host in dict.fromkeys(hosts) if hosts.count(host) > max(c for h, _, c in facts if h == host)]
    text = f"more ranks than cores on {', '.join(crowded)}: ask for fewer" if crowded else "one for each rank"
    findings.append(Finding("cores", not crowded, text))
    return findings + _links(hosts, trips)


def _links(hosts: Sequence[str], trips: Sequence[tuple[float, ...]]) -> list[Finding]:
    """A finding on latency and bandwidth between rank 0 and the others, the worst of which are named."""
    if not trips:
        return []
    latency = [small / 2 for small, _ in trips]
    speed = [2 * LARGE_MESSAGE / MEBI / large for _, large in trips]
    slow = max(range(len(trips)), key=latency.__getitem__)
    thin = min(range(len(trips)), key=speed.__getitem__)
    well = latency[slow] < 1e-2 and speed[thin] > 50
    text = (
        f"latency at most {latency[slow] * 1e6:.0f} us (rank {slow + 1} on {hosts[slow + 1]}), bandwidth at least "
        f"{speed[thin]:.0f} MiB/s (rank {thin + 1} on {hosts[thin + 1]})"
    )
    return [Finding("links", well, text + ("" if well else ": slow; is MPI using the right network?"))]
