"""The launcher that started this process as a rank, and the MPI library it brings in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

LAUNCHERS = ("mpirun", "prterun", "prted", "orted", "orterun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy")
LAUNCHER_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


def launched_by_mpi() -> bool:
    """Whether a launcher (mpirun, mpiexec, srun with PMIx or PMI2) started this process."""
    return any(name in os.environ for name in LAUNCHER_VARIABLES)


def launched_rank() -> int:
    """The rank of this process, as the launcher says."""
    names = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
    return int(next((os.environ[name] for name in names if name in os.environ), "0"))


def launched_size() -> int:
    """How many processes the launcher started, as it says."""
    return int(next((os.environ[name] for name in SIZE_VARIABLES if name in os.environ), "1"))


def import_mpi() -> Any:
    """Initialise MPI for a main thread that does all the talking.

    On one host the shared-memory transport is chosen, which halves the start-up; a user's own choice is kept.
    """
    world = os.environ.get("OMPI_COMM_WORLD_SIZE")
    chosen = any(name in os.environ for name in ("OMPI_MCA_btl", "OMPI_MCA_pml"))
    if world and world == os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") and not chosen:
        os.environ["OMPI_MCA_pml"] = "ob1"
        os.environ["OMPI_MCA_btl"] = "self,sm"
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    from mpi4py import MPI

    return MPI


def library() -> str:
    """The name and version of the MPI library, without starting it."""
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    return str(MPI.Get_library_version()).splitlines()[0].rstrip("\0")


def abort_on_exception() -> None:
    """Make an exception that nobody caught end all ranks with code 1, as `python -m mpi4py` does."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Print the exception as ever, and end all ranks."""
        sys.__excepthook__(kind, error, trace)
        sys.stderr.flush()
        import_mpi().COMM_WORLD.Abort(1)

    sys.excepthook = hook


def _launcher() -> int | None:
    """The process of the launcher that started this rank; None under srun, whose daemon is not ours to end."""
    parent = os.getppid()
    try:
        name = Path(f"/proc/{parent}/comm").read_text().strip()
    except OSError:
        return None
    return parent if name in LAUNCHERS else None


def end_launcher(after: int = 0) -> None:
    """End the launcher, which would wait for ever for ranks on a host that is gone.

    With `after`, only if this rank is still there so many seconds later. It takes a process beside this one: the
    launcher, asked to end, ends this one first and then goes on waiting.
    """
    parent = _launcher()
    if parent is None:
        return
    wait = f"kill -0 {os.getpid()} 2>/dev/null || exit 0; sleep 1; " * after
    end = f"kill {parent}; sleep 3; kill -9 {parent}; kill -9 {os.getpid()}"
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        ["/bin/sh", "-c", wait + end], stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
