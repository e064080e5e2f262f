"""SLURM's own programs, called from here; their refusals are sentences."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from parallel_mix.errors import InputError, ParallelMixError

PATIENCE = 60.0
"""Seconds that SLURM's programs have to answer."""


def call(words: Sequence[str], text: str | None = None, cwd: Path | None = None) -> str:
    """The output of one of SLURM's programs; its refusal is raised as an error of ours."""
    if shutil.which(words[0]) is None:
        raise InputError(f"There is no SLURM here ({words[0]} is not found): submit from a login node of the cluster.")
    try:
        done = subprocess.run(
            list(words), input=text, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=cwd
        )
    except subprocess.TimeoutExpired:
        raise ParallelMixError(f"{words[0]} has not answered for {PATIENCE:g} s: is SLURM's controller up?") from None
    if done.returncode:
        if "onfiguration source" in done.stderr or "slurm.conf" in done.stderr:
            raise InputError(
                f"SLURM's programs are here, but no cluster is configured ({words[0]} finds no slurm.conf)."
            )
        said = " ".join(re.sub(r"^\S+: (error: )?", "", line) for line in done.stderr.strip().splitlines())
        raise InputError(f"SLURM refuses ({words[0]}): {said or f'exit code {done.returncode}'}.")
    return done.stdout


def submit(script: str, folder: Path, after: str | None = None) -> str:
    """Hand a script to sbatch; returned is the number of its job."""
    words = ["sbatch", "--parsable", f"--chdir={folder}"]
    if after:
        words += [f"--dependency=afterok:{after}", "--kill-on-invalid-dep=yes"]
    return call(words, script).strip().split(";")[0]


def queue(jobs: Sequence[str]) -> dict[str, tuple[str, str]]:
    """State and reason of each of these jobs that SLURM still knows."""
    if not jobs or shutil.which("squeue") is None:
        return {}
    try:
        lines = call(["squeue", "-h", "-a", "-o", "%A|%T|%r", "--states=all", f"--jobs={','.join(jobs)}"]).splitlines()
    except ParallelMixError:  # jobs it has forgotten
        return {}
    rows = [line.split("|") for line in lines]
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def mpi_kinds() -> tuple[str, ...]:
    """The ways in which srun can start MPI programs: pmix, pmi2, ..."""
    if shutil.which("srun") is None:
        return ()
    try:
        done = subprocess.run(
            ["srun", "--mpi=list"],  # noqa: S607 (the site's srun)
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return ()
    kinds = re.findall(r"[a-z][a-z0-9_]+", (done.stdout + done.stderr).split("are", 1)[-1])
    return tuple(dict.fromkeys(kind for kind in kinds if kind.startswith(("pmi", "cray"))))


def job_id() -> str | None:
    """The number of the job that this process runs in (of an array, job and task); None outside a job."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else os.environ.get("SLURM_JOB_ID")
