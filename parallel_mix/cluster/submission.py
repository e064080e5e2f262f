"""From commands, which have been checked, to jobs in the queue."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parallel_mix.cluster import slurm
from parallel_mix.cluster.batch_script import Stage
from parallel_mix.config import input_files
from parallel_mix.errors import InputError, ParallelMixError
from parallel_mix.store.checkpoints import note_queued

NOT_IN_A_JOB = ("submit", "launch", "status", "doctor")
LOCAL_KINDS = ("tmpfs", "ramfs", "devtmpfs")
LOCAL_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (named to warn of them)


def here() -> Path:
    """The folder in which the jobs will run."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise InputError(
            "The folder you are in has been deleted: change to another one and submit from there."
        ) from None


def stages(
    words: Sequence[str], is_parallel: Callable[[str], bool], dask_workers: tuple[int, int] | None = None
) -> list[Stage]:
    """The commands between the words --then; with `dask_workers`, parallel ones run on Dask."""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "--then":
            commands.append([])
        else:
            commands[-1].append(word)
    if commands == [[]]:
        raise InputError("There is no command to submit: give one after `--`.")
    if not all(commands):
        raise InputError("A command is missing before or after --then.")
    for command in commands:
        if command[0] in NOT_IN_A_JOB:
            raise InputError(f"{command[0]} is not for a job's inside: submit what it would submit.")
    more = ("--slurm-workers", "{}..{}".format(*dask_workers)) if dask_workers else ()
    chain = []
    for command in commands:
        parallel = is_parallel(command[0])
        words = (*command, *more) if parallel else tuple(command)
        chain.append(Stage(words, keeps=parallel, ranks=parallel and not more))
    return chain


def refuse_shared_outputs(array: str | None, outputs: Sequence[Path | None]) -> None:
    """Refuse an array whose tasks would write over each other's outputs."""
    for output in outputs:
        if array and output and "%a" not in str(output):
            raise InputError(f"Every task of the array would write {output}: put %a, the task's index, in its name.")


def stages_done(commands: Sequence[Any], folder: Path) -> int:
    """How many of a chain's first commands an earlier submission has done: the output is newer than all inputs."""
    done = 0
    for command in commands[:-1]:
        output, sources = getattr(command, "output", None), input_files(command)
        if output is None or not sources or output in sources or getattr(command, "force", False):
            break
        try:
            made = (folder / output).stat().st_mtime
            newer = all(made >= (folder / source).stat().st_mtime for source in sources)
        except OSError:
            break
        if not newer:
            break
        sys.stderr.write(f"parallel-mix: {output} is there already: its command is left out.\n")
        done += 1
    return done


def check_target(output: Path, force: bool) -> None:
    """Refuse now, not on the node, an output that must not or cannot be written."""
    if output.exists() and not output.is_dir() and not force:
        raise InputError(f"{output} exists already: give its command --force to overwrite it, or another name.")
    if not output.parent.is_dir():
        raise InputError(f"{output.parent}, where {output.name} is to be written, is no folder.")


def check_inputs(folder: Path, commands: Sequence[Any]) -> None:
    """Refuse a chain with a command whose inputs are not there and are made by no command before it."""
    made: list[Path] = []
    for command in commands:
        for path in input_files(command):
            if folder / path not in made and not (folder / path).exists():
                raise InputError(f"{path} is not there, and no command before makes it.")
        if getattr(command, "output", None):
            made.append(folder / command.output)


def submit_chain(
    chain: Sequence[Stage], scripts: Sequence[str], folder: Path, outputs: Sequence[Path | None]
) -> list[str]:
    """Submit the scripts, each to begin when the one before is done; returned are the numbers of their jobs."""
    jobs: list[str] = []
    for number, (stage, script) in enumerate(zip(chain, scripts, strict=True)):
        jobs.append(slurm.submit(script, folder, jobs[-1] if jobs else None))
        waits = f" after {jobs[-2]}" if len(jobs) > 1 else ""
        print(f"{jobs[-1]}  {stage.command}{waits}", flush=True)
        output = outputs[number] if outputs else None
        if stage.keeps and output:
            note_queued(folder / output, jobs[-1])
    return jobs


def wait_for(script: str, folder: Path, name: str, seconds: float = 300.0) -> str:
    """Submit a script and wait for its end; returned is what it printed."""
    job = slurm.submit(script, folder)
    sys.stderr.write(f"parallel-mix: job {job} is submitted.\n")
    unknown = 0
    log, until = folder / f"{name}-{job}.log", time.monotonic() + seconds
    while True:
        state, reason = slurm.queue([job]).get(job, ("", ""))
        unknown = 0 if state else unknown + 1  # once may be a hiccup of the controller
        if state not in ("", "PENDING", "CONFIGURING", "RUNNING", "COMPLETING") or unknown > 5:
            break
        if time.monotonic() > until:
            raise ParallelMixError(f"Job {job} is still {state} ({reason}): look at {log} later.")
        time.sleep(1.0)
    try:
        said = log.read_text(encoding="utf-8")
    except OSError:
        raise ParallelMixError(f"Job {job} ended ({state}), and {log} is not there: do the nodes see it?") from None
    if state not in ("COMPLETED", ""):
        sys.stdout.write(said)
        raise ParallelMixError(f"Job {job} ended as {state}.")
    return said


def warn_of_local_folders(folders: Sequence[Path]) -> None:
    """Warn of those folders that other nodes probably do not see."""
    mounts = sorted(_mounts(), key=lambda mount: len(str(mount[0])))
    for folder in sorted({folder if folder.is_dir() else folder.parent for folder in folders}):
        place = folder.resolve()
        kind = next((kind for at, kind in reversed(mounts) if place.is_relative_to(at)), "")
        if kind in LOCAL_KINDS or any(place.is_relative_to(local) for local in LOCAL_FOLDERS):
            sys.stderr.write(
                f"parallel-mix: note: {folder} is on this machine alone, it seems: other nodes do not see it.\n"
            )


def _mounts() -> list[tuple[Path, str]]:
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [(Path(at.replace("\\040", " ")), kind) for _, at, kind, *_ in (line.split(" ") for line in lines)]
