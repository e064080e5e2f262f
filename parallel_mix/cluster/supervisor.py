"""A launch watched from beside: signals passed on, a launcher that hangs ended, the job requeued where it may be.

What a run came to is read from its `progress.json`: exit codes do not survive launchers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from parallel_mix.cluster import slurm
from parallel_mix.errors import InputError, ParallelMixError
from parallel_mix.store.checkpoints import read_status, status_path

POLL = 0.2
"""Seconds between two looks at the launcher and the status."""
GRACE = 10.0
"""Seconds that a launcher has to end after its run has said that it ended."""
STOP_PATIENCE = 100.0
"""Seconds that a run has to stop after the signal, before its launcher is ended."""
LAUNCHERS = ("srun --mpi=pmix", "srun --mpi=pmi2", "mpirun", "none")


def choose_launcher(library: str, kinds: Sequence[str]) -> str:
    """The way to start ranks that this MPI library and this SLURM have in common."""
    pmix = any(kind.startswith("pmix") for kind in kinds)
    if "Open MPI" in library:
        return "srun --mpi=pmix" if pmix else "mpirun"
    if library:  # MPICH and its descendants
        return "srun --mpi=pmi2" if "pmi2" in kinds else "mpirun"
    raise InputError(
        "mpi4py finds no MPI library here: pip install 'parallel-mix[mpi-runtime]', or load the site's MPI."
    )


def mpi_library() -> str:
    """The name and version of the MPI library that mpi4py finds, in its own words; '' where there is none."""
    code = "from parallel_mix.backends.mpi_launch import library; print(library())"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        raise ParallelMixError(
            "mpi4py did not load within two minutes: is the file system of its folder well?"
        ) from None
    return done.stdout.strip() if done.returncode == 0 else ""


def launch_words(launcher: str) -> list[str]:
    """The words before a program that start it on all of an allocation's ranks."""
    if launcher.startswith("srun"):
        cores = os.environ.get("SLURM_CPUS_PER_TASK")
        return [*launcher.split(), "--kill-on-bad-exit=1", *([f"--cpus-per-task={cores}"] if cores else [])]
    many = int(os.environ.get("SLURM_CPUS_PER_TASK", "1")) > 1
    if launcher == "mpirun":
        own = Path(sys.executable).with_name("mpirun")
        mpirun = str(own) if own.exists() else shutil.which("mpirun") or shutil.which("mpiexec")
        if not mpirun:
            raise InputError(
                "There is no mpirun here: load the site's MPI, or pip install 'parallel-mix[mpi-runtime]'."
            )
        own_word = "OMPI_ALLOW_RUN_AS_ROOT"
        if os.geteuid() == 0 and os.environ.get(own_word) != "1" and "Open MPI" in mpi_library():
            raise InputError(f"Open MPI refuses to run as root: export {own_word}=1 {own_word}_CONFIRM=1 if you must.")
        return [mpirun, *(["--bind-to", "none"] if many else [])]  # its default is one core a rank
    return []


class Supervisor:
    """One launch of one command, watched to its end."""

    def __init__(self, words: Sequence[str], output: Path | None, max_requeue: int) -> None:
        self.words = list(words)
        self.status = status_path(output) if output else None
        self.max_requeue = max_requeue
        self.signum = 0
        self._before = self._launch()

    def run(self) -> int:
        """Start the command and wait for its end; the exit code says how it ended: 0 done, 75 stopped, else failed."""
        for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(signum, self._note)
        child = subprocess.Popen(self.words, start_new_session=True)
        code = self._wait(child)
        state = self._state()
        if state == "done" or (code == 0 and not state):
            return 0
        if state == "stopped" or (self.signum and state != "failed"):  # also before it could say so
            self._requeue()
            return 130 if self.signum == signal.SIGINT else 75
        return code if 0 < code < 126 else 1

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.signum in (0, signal.SIGUSR1):  # who cancels after the time limit's signal means it
            self.signum = signum

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        passed_on = ended = None
        while (code := child.poll()) is None:
            now = time.monotonic()
            if self.signum and passed_on is None:
                passed_on = now
                child.send_signal(signal.SIGUSR1)
            if ended is None and self._state() in ("done", "stopped", "failed"):
                ended = now
            late = passed_on is not None and now > passed_on + STOP_PATIENCE
            if late or (ended is not None and now > ended + GRACE):
                sys.stderr.write(f"parallel-mix: {self.words[0]} does not end by itself and is ended.\n")
                return _end(child)
            time.sleep(POLL)
        return code

    def _read_status(self) -> dict[str, Any]:
        return read_status(self.status) if self.status else {}

    def _launch(self) -> int:
        return int(self._read_status().get("launch", 0))

    def _state(self) -> str:
        """The state this launch has come to; '' while it has said nothing."""
        status = self._read_status()
        return str(status.get("state", "")) if int(status.get("launch", 0)) > self._before else ""

    def _requeue(self) -> None:
        """Requeue the job where it was stopped at its time limit; cancelled and preempted jobs are SLURM's affair."""
        job, count = slurm.job_id(), int(os.environ.get("SLURM_RESTART_COUNT", "0"))
        if self.signum != signal.SIGUSR1 or job is None:
            return
        if count >= self.max_requeue:
            again = f"after {count} requeues" if self.max_requeue else "(--max-requeue 0)"
            sys.stderr.write(f"parallel-mix: not requeued {again}. The same submission again goes on from here.\n")
            return
        try:
            slurm.call(["scontrol", "requeue", job])
        except ParallelMixError as error:
            sys.stderr.write(f"parallel-mix: not requeued ({error}). The same submission again goes on from here.\n")


def _end(child: subprocess.Popen[bytes]) -> int:
    """End a launcher and the processes that it started here; returned is exit code 1."""
    for signum, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=patience)
            break
    return 1
