"""Start a command on all ranks of a SLURM job, watch over it, and requeue the job at its time limit."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from parallel_mix.config import argument, count, option


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix launch`."""

    words: list[str] = argument("-- and a command of parallel-mix with its words", nargs="+", read=str)
    launcher: str | None = option(
        None, "'srun --mpi=pmix', 'srun --mpi=pmi2', 'mpirun' or 'none' (default: what SLURM and MPI share)"
    )
    max_requeue: int = option(0, "requeue the job at its time limit, at most so often", read=count, metavar="N")


def run(options: Options) -> None:
    """Choose, start, wait."""
    from parallel_mix.cli import call_of, is_parallel, module_of
    from parallel_mix.cluster import slurm
    from parallel_mix.cluster.supervisor import LAUNCHERS, Supervisor, choose_launcher, launch_words, mpi_library
    from parallel_mix.errors import InputError

    launcher = options.launcher
    if launcher is not None and launcher not in LAUNCHERS:
        raise InputError(f"--launcher {launcher!r} is none of: {', '.join(LAUNCHERS)}.")
    index = os.environ.get("SLURM_ARRAY_TASK_ID")
    given = [word.replace("%a", index) for word in options.words] if index else options.words
    if int(os.environ.get("SLURM_RESTART_COUNT", "0")) > 0:  # what was begun afresh goes on
        given = [word for word in given if word != "--fresh"]
    command = call_of(given).options
    on_ranks = is_parallel(module_of(given[0])) and getattr(command, "backend", None) in (None, "mpi")
    on_ranks = on_ranks and getattr(command, "slurm_workers", None) is None
    if not on_ranks:
        launcher = "none"
    elif launcher is None:
        launcher = choose_launcher(mpi_library(), slurm.mpi_kinds() if slurm.job_id() else ())
    words = [*launch_words(launcher), sys.executable, "-m", "parallel_mix", *given]
    code = Supervisor(words, getattr(command, "output", None), options.max_requeue).run()
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("launch")
