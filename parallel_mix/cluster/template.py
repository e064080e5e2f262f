"""The batch template of a command, made of the command's options: a copy for a user to edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

PARALLEL = {"ntasks": "32", "cpus-per-task": "1", "time": "02:00:00", "signal": "B:USR1@120"}
SERIAL = {"ntasks": "1", "time": "00:30:00"}
KEEPS = "At its time limit it keeps a checkpoint and is requeued; the same sbatch again goes on, too."
KEEPS_NOT = "One process, and no checkpoint: its output is there whole or not at all."
LAUNCH = (
    "# Finds the launch line that SLURM and MPI have in common (--launcher chooses another), passes the signal on, "
    "requeues.\n"
    'exec parallel-mix launch --max-requeue "${MAX_REQUEUE:-3}" -- '
)
LAUNCH_SERIALLY = "exec parallel-mix launch -- "


def file_name(command: str) -> str:
    """The file name of a command's template, such as hlm_fit.sbatch."""
    return f"{command.replace(' ', '_')}.sbatch"


def template(
    command: str, summary: str, options: type[Any], parallel: bool, asked: Mapping[str, str] | None = None
) -> str:
    """The template of a command; `asked` are resources other than the usual ones, such as {"ntasks": "4"}.

    Input files, in the order of the command, and the output are its arguments; all others are passed on.
    """
    inputs = [item.name for item in fields(options) if item.metadata.get("input") and item.default is MISSING]
    required = {item.name: item.metadata for item in fields(options) if item.metadata.get("required")}
    names = [*inputs, *(["output"] if required.pop("output", None) else [])]
    flags = [f"--{name.replace('_', '-')} {data['metavar']}" for name, data in required.items()]
    usage = " ".join(["sbatch", file_name(command), *(name.upper() for name in names), *flags, "[options]"])
    resources = (PARALLEL if parallel else SERIAL) | dict(asked or {})
    given = [f'"${name}"' if name != "output" else '-o "$output"' for name in names]
    lines = [
        "#!/usr/bin/env bash",
        f"# {summary[:1].upper()}{summary[1:]}:   {usage}",
        f"# A copy to edit. {KEEPS if parallel else KEEPS_NOT}",
        f"# Its options: parallel-mix {command} --help",
        f"#SBATCH --job-name={command.replace(' ', '-')}",
        *(f"#SBATCH --{key}={value}" for key, value in resources.items()),
        *(["#SBATCH --requeue", "#SBATCH --open-mode=append"] if parallel else []),
        "#SBATCH --output=%x-%j.log",
        "set -euo pipefail",
        f'usage="usage: {usage}"',
        *(f"{name}=${{{number}:?$usage}}" for number, name in enumerate(names, start=1)),
        f"shift {len(names)}",
        "",
        "# source /path/to/venv/bin/activate     # where parallel-mix is installed",
        "",
        (LAUNCH if parallel else LAUNCH_SERIALLY) + " ".join([command, *given, '"$@"']),
    ]
    return "\n".join(lines) + "\n"
