"""The text of a batch job: a pure function of what is asked for."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields
from typing import Any

from parallel_mix.config import option, positive
from parallel_mix.errors import InputError

SAFE = re.compile(r"[A-Za-z0-9_.,:+@%/=\-\[\]]+")
"""What may stand in a #SBATCH line, which SLURM cuts into words by rules of its own."""
SECONDS_BEFORE_END = 120


def time_limit(text: str) -> str:
    """A time limit as SLURM reads it: minutes, m:s, h:m:s, d-h, d-h:m or d-h:m:s."""
    if not re.fullmatch(r"(\d+-)?\d+(:\d{1,2}){0,2}", text):
        raise ValueError("must be a time such as 90 (minutes), 2:00:00 or 1-12:00:00")
    return text


def word(text: str) -> str:
    """A value for an #SBATCH line."""
    if not SAFE.fullmatch(text):
        raise ValueError("may have letters, digits and _.,:+@%/=-[] only")
    return text


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a job asks SLURM for; a site's file gives the defaults."""

    nodes: int | None = option(None, "nodes", read=positive, metavar="N")
    ntasks: int | None = option(None, "ranks in all", read=positive, metavar="N")
    ntasks_per_node: int | None = option(None, "ranks of each node", read=positive, metavar="N")
    cpus_per_task: int = option(1, "cores, and compute threads, of each rank", read=positive, metavar="N")
    mem: str | None = option(None, "memory of each node, e.g. 16G", read=word, metavar="SIZE")
    mem_per_cpu: str | None = option(None, "memory of each core, e.g. 2G", read=word, metavar="SIZE")
    time: str | None = option(None, "time limit, e.g. 2:00:00", read=time_limit, metavar="TIME")
    partition: str | None = option(None, "partition", read=word, metavar="NAME")
    account: str | None = option(None, "account", read=word, metavar="NAME")
    qos: str | None = option(None, "quality of service", read=word, metavar="NAME")
    constraint: str | None = option(None, "features the nodes must have", read=word, metavar="NAME")
    job_name: str | None = option(None, "name of the job (default: the command)", read=word, metavar="NAME")
    array: str | None = option(
        None, "run once for each index, e.g. 0-9%4; %a in the command's words stands for it", read=word, metavar="LIST"
    )


@dataclass(frozen=True)
class Stage:
    """One command of a submission."""

    words: tuple[str, ...]
    parallel: bool  # keeps checkpoints and may be stopped
    ranks: bool = True  # a parallel one runs on MPI ranks

    @property
    def command(self) -> str:
        return self.words[0]


def batch_script(
    stage: Stage,
    resources: Resources,
    program: tuple[str, ...],
    folder: str,
    max_requeue: int = 0,
    launcher: str | None = None,
    setup: str | None = None,
) -> str:
    """The script of one stage. `program` starts parallel-mix; `setup` are a site's own shell lines."""
    options = ["--max-requeue", str(max_requeue)] if stage.parallel else []
    options += ["--launcher", launcher] if launcher and stage.parallel else []
    line = "exec " + shlex.join([*program, "launch", *options, "--", *_words(stage, resources)])
    lines = [
        "#!/usr/bin/env bash",
        *(f"#SBATCH --{key}={value}" for key, value in _directives(stage, resources)),
        f"#SBATCH --signal=B:USR1@{SECONDS_BEFORE_END}",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue" if max_requeue else "#SBATCH --no-requeue",
        "set -euo pipefail",
        f"cd -- {shlex.quote(folder)}",
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
        *(setup or "").splitlines(),
        "# Stops at its signal with a checkpoint; goes on by requeue, or by the same submission again.",
        line,
    ]
    return "\n".join(lines) + "\n"


def _words(stage: Stage, resources: Resources) -> list[str]:
    more = resources.cpus_per_task > 1 and stage.parallel and "--threads" not in stage.words
    return [*stage.words, *(["--threads", str(resources.cpus_per_task)] if more else [])]


def _directives(stage: Stage, resources: Resources) -> list[tuple[str, Any]]:
    values: dict[str, Any] = {f.name.replace("_", "-"): getattr(resources, f.name) for f in fields(Resources)}
    values["job-name"] = values["job-name"] or stage.command
    values["output"] = "%x-%A_%a.log" if resources.array else "%x-%j.log"
    if not (stage.parallel and stage.ranks):
        values |= {"nodes": None, "ntasks": 1, "ntasks-per-node": None}
    found = [(key, value) for key, value in values.items() if value is not None]
    for key, value in found:
        if not SAFE.fullmatch(str(value)):
            raise InputError(f"--{key} {value!r} may have letters, digits and _.,:+@%/=-[] only.")
    return sorted(found)
