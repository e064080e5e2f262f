"""The text of a batch job, which depends on nothing but what is asked for."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from parallel_mix.config import count, option, positive
from parallel_mix.errors import InputError
from parallel_mix.progress import plural

SAFE = re.compile(r"[A-Za-z0-9_.,:+@%/=\-\[\]]+")
"""What may stand in a #SBATCH line, which SLURM cuts into words by rules of its own."""
SECONDS_BEFORE_END = 120
"""Seconds before its end at which a job gets the signal to keep a checkpoint; in a short job, a quarter of its time."""
NO_DIRECTIVES = ("launcher", "max_requeue", "setup")


def time_limit(text: str) -> str:
    """The text, where it is a time limit as SLURM reads it: minutes, m:s, h:m:s, d-h, d-h:m or d-h:m:s."""
    if not re.fullmatch(r"(\d+-)?\d+(:\d{1,2}){0,2}", text):
        raise ValueError("must be a time such as 90 (minutes), 2:00:00 or 1-12:00:00")
    return text


def seconds_before_end(limit: str | None) -> int:
    """How many seconds before the time limit its signal comes."""
    if limit is None:
        return SECONDS_BEFORE_END
    days, _, clock = limit.rpartition("-")
    numbers = [int(number) for number in clock.split(":")]
    units = (3600, 60, 1) if days or len(numbers) == 3 else (60, 1)
    seconds = int(days or 0) * 86_400 + sum(number * unit for number, unit in zip(numbers, units, strict=False))
    return min(SECONDS_BEFORE_END, seconds // 4)


def site_file() -> Path | None:
    """The path of the file with the site's defaults; None where there is none."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = os.environ.get("PARALLEL_MIX_SITE")  # one that is named must be there
    path = Path(named or home / "parallel-mix" / "site.toml")
    return path if named or path.exists() else None


def word(text: str) -> str:
    """The text, where it may stand in an #SBATCH line."""
    if not SAFE.fullmatch(text):
        raise ValueError("may have letters, digits and _.,:+@%/=-[] only")
    return text


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources that a job asks SLURM for; a site's file gives the defaults."""

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
    launcher: str | None = option(None, "how to start ranks (default: found out on the node)", metavar="WORDS")
    max_requeue: int = option(3, "requeue at the time limit, at most so often", read=count, metavar="N")
    setup: str | None = option(None, "shell lines to run first, e.g. 'module load openmpi'", metavar="TEXT")


@dataclass(frozen=True)
class Stage:
    """One command of a submission."""

    words: tuple[str, ...]
    keeps: bool  # checkpoints, so that it may be stopped and requeued
    ranks: bool  # runs on MPI ranks

    @property
    def command(self) -> str:
        """The command's name."""
        return self.words[0]


def batch_script(
    stage: Stage,
    resources: Resources,
    program: tuple[str, ...],
    folder: str,
) -> str:
    """The script of one stage. `program` starts parallel-mix."""
    options = ["--max-requeue", str(resources.max_requeue)] if stage.keeps else []
    options += ["--launcher", resources.launcher] if resources.launcher and stage.ranks else []
    end = seconds_before_end(resources.time)
    line = "exec " + shlex.join([*program, "launch", *options, "--", *_words(stage, resources)])
    lines = [
        "#!/usr/bin/env bash",
        *(f"#SBATCH --{key}={value}" for key, value in _directives(stage, resources)),
        *([f"#SBATCH --signal=B:USR1@{end}"] if stage.keeps else []),
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue" if stage.keeps and resources.max_requeue else "#SBATCH --no-requeue",
        *(resources.setup or "").splitlines(),
        "set -euo pipefail",
        f"cd -- {shlex.quote(folder)}",
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
        *(
            ["# Stops at its signal with a checkpoint; goes on by requeue, or by the same submission again."]
            * stage.keeps
        ),
        line,
    ]
    return "\n".join(lines) + "\n"


def asks_for(stage: Stage, resources: Resources) -> str:
    """A sentence on the ranks that a stage asks SLURM for; without a number SLURM starts one on each node."""
    if not stage.ranks:
        return f"{stage.command} asks for 1 process."
    nodes, each = resources.nodes, resources.ntasks_per_node or 1
    ranks = resources.ntasks or (nodes or 1) * each
    where = f" on {plural(nodes, 'node')}" if nodes else ""
    threads = f", each with {plural(resources.cpus_per_task, 'compute thread')}"
    hint = "" if ranks > 1 else "; use --ntasks for more"
    return f"{stage.command} asks for {plural(ranks, 'rank')}{where}{threads}{hint}."


def _words(stage: Stage, resources: Resources) -> list[str]:
    given = any(word.split("=")[0] == "--threads" for word in stage.words)
    more = resources.cpus_per_task > 1 and stage.keeps and not given
    return [*stage.words, *(["--threads", str(resources.cpus_per_task)] if more else [])]


def _directives(stage: Stage, resources: Resources) -> list[tuple[str, Any]]:
    names = [field.name for field in fields(Resources) if field.name not in NO_DIRECTIVES]
    values: dict[str, Any] = {name.replace("_", "-"): getattr(resources, name) for name in names}
    values["job-name"] = values["job-name"] or stage.command
    values["output"] = "%x-%A_%a.log" if resources.array else "%x-%j.log"
    if not stage.ranks:
        values |= {"nodes": None, "ntasks": 1, "ntasks-per-node": None}
    directives = [(key, value) for key, value in values.items() if value is not None]
    for key, value in directives:
        if not SAFE.fullmatch(str(value)):
            raise InputError(f"--{key} {value!r} may have letters, digits and _.,:+@%/=-[] only.")
    return sorted(directives)
