"""Hand commands to SLURM: submit [resources] -- COMMAND ... [--then COMMAND ...]."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, count, option, span
from parallel_mix.launch.batch_script import Resources

PARALLEL = False


@dataclass(frozen=True, kw_only=True)
class Options(Resources):
    """Options of `parallel-mix submit`."""

    words: list[str] = argument(
        "-- and a command of parallel-mix; --then and another one that waits for it", nargs="+", read=str
    )
    launcher: str | None = option(None, "how to start ranks (default: found out on the node)", metavar="WORDS")
    max_requeue: int = option(3, "requeue at the time limit, at most so often", read=count, metavar="N")
    dask_workers: tuple[int, int] | None = option(
        None,
        "run on Dask workers that are jobs of their own, as many as there is work for",
        read=span,
        metavar="MIN..MAX",
    )
    setup: str | None = option(None, "shell lines to run first, e.g. 'module load openmpi'", metavar="TEXT")
    dry_run: bool = option(False, "print the scripts and submit nothing")


def site_file() -> Path | None:
    """The site's defaults, where there are any."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = Path(os.environ.get("PARALLEL_MIX_SITE") or home / "parallel-mix" / "site.toml")
    return path if path.exists() else None


def run(options: Options) -> None:
    """Check every command, then submit them one after the other."""
    from parallel_mix.cli import job_of, options_of
    from parallel_mix.launch.batch_script import batch_script
    from parallel_mix.launch.submission import here, refuse_shared_outputs, stages, submit_chain, warn_of_local_folders

    folder = here()
    program = (sys.executable, "-m", "parallel_mix")
    found = stages(options.words, lambda command: job_of(command).PARALLEL, options.dask_workers)
    commands = [options_of(stage.words) for stage in found]  # a mistake is better found now than after a night
    outputs = [getattr(command, "output", None) for command in commands]
    refuse_shared_outputs(options.array, outputs)
    scripts = [
        batch_script(s, options, program, str(folder), options.max_requeue, options.launcher, options.setup)
        for s in found
    ]
    if options.dry_run:
        print("\n".join(scripts), end="")
        return
    inputs = getattr(commands[0], "input", None)
    warn_of_local_folders([folder, *[folder / output for output in outputs if output]])
    submit_chain(found, scripts, folder, [Path(inputs)] if inputs and not options.array else [], outputs)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("submit")
