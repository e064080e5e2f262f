"""Do the processes of a job belong together? Found out before the work, in words, not after a night."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix import __version__
from parallel_mix.backends.mpi_launch import launched_by_mpi, launched_size
from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError

if TYPE_CHECKING:
    from parallel_mix.backends.mpi import MpiBackend

LEAST_SCRATCH = 4 * 2**20
HINT = "Start it by `srun --mpi=pmix` (Open MPI), `srun --mpi=pmi2` (MPICH), `mpirun`, or `parallel-mix launch --`."


def refuse_lone_copies() -> None:
    """Stop where srun started several processes that know nothing of each other."""
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", "1"))
    if tasks > 1 and not launched_by_mpi():
        raise InputError(f"srun started {tasks} copies of this program that do not know of each other. {HINT}")


@dataclass(frozen=True)
class Facts:
    """What one rank sees."""

    host: str
    version: str
    inputs: tuple[tuple[str, int | None], ...]  # sizes; None: not there
    cores: frozenset[int]
    threads: int
    sees_output: bool
    scratch: str  # the folder for temporary files, MPI's among them
    scratch_free: int  # bytes


def check_ranks(backend: MpiBackend, options: CommonOptions) -> None:
    """Compare what the ranks see, on rank 0; the others serve it and `answer` with their facts."""
    expected = launched_size()
    if backend.ranks != expected:
        raise InputError(
            f"{expected} processes were started, but MPI sees {backend.ranks}: the launcher and the MPI library "
            f"({backend.library}) do not fit together. {HINT}"
        )
    if backend.ranks == 1:
        return
    marker = _mark(options.output.absolute())
    try:
        _compare(backend.ask_all(marker, facts_of(backend, options, marker)), options)
    finally:
        if marker.is_file():
            marker.unlink()


def _mark(output: Path) -> Path:
    """A file beside the output that only ranks with the same folder see."""
    marker = output.with_name(f".{output.name}.seen-{secrets.token_hex(4)}")
    try:
        marker.touch()
    except OSError:  # why the folder cannot be written is said elsewhere, better
        return Path(os.devnull)
    return marker


def facts_of(backend: MpiBackend, options: CommonOptions, marker: Path) -> Facts:
    """What this rank sees; `marker` is a file that rank 0 has just made beside the output."""
    paths = [getattr(options, name) for name in ("input", "model") if getattr(options, name, None)]
    sizes = tuple((str(path), path.stat().st_size if path.exists() else None) for path in paths)
    cores = frozenset(os.sched_getaffinity(0))
    scratch = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 (looked at, not written)
    free = shutil.disk_usage(scratch).free if Path(scratch).is_dir() else 0
    return Facts(backend.host, __version__, sizes, cores, backend.threads, marker.exists(), scratch, free)


def _compare(ranks: Sequence[Facts], options: CommonOptions) -> None:
    first = ranks[0]
    for rank, other in enumerate(ranks):
        if other.version != first.version:
            raise InputError(
                f"Rank {rank} on {other.host} runs parallel-mix {other.version}, rank 0 on {first.host} "
                f"{first.version}: install the same version everywhere."
            )
        for (path, size), (_, here) in zip(other.inputs, first.inputs, strict=True):
            if size != here:
                what = "is not there" if size is None else f"has {size:,} bytes"
                raise InputError(
                    f"{path} {what} on {other.host}, and has {here or 0:,} bytes on {first.host}: put it where all "
                    "nodes see the same file."
                )
        if other.scratch_free < LEAST_SCRATCH:
            raise InputError(
                f"{other.scratch} on {other.host} has {other.scratch_free / 2**20:.1f} MiB left: clear it, point "
                "TMPDIR elsewhere, or leave the node out (sbatch --exclude)."
            )
        if not other.sees_output:
            raise InputError(
                f"{options.output.absolute().parent} is not the same folder on {other.host} as on {first.host}: the "
                "output must be where all nodes see it."
            )
    threads_on: Counter[str] = Counter()
    for facts in ranks:
        threads_on[facts.host] += facts.threads
    for host, threads in threads_on.items():
        cores = len(frozenset().union(*(f.cores for f in ranks if f.host == host)))
        if threads > cores and not options.quiet:
            sys.stderr.write(
                f"parallel-mix: {threads} compute threads share {cores} cores on {host}: fewer ranks would be faster.\n"
            )
