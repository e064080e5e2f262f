"""Find out what is wrong with this installation, folder or cluster, before a night is lost."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from parallel_mix.cluster.batch_script import Resources, site_file
from parallel_mix.config import argument, option

__all__ = ["Options", "run", "site_file"]
EVERY_RANK = True


@dataclass(frozen=True, kw_only=True)
class Options(Resources):
    """Options of `parallel-mix doctor`."""

    folder: Path = argument("where results will be written (default: here)", nargs="?", default=Path(), is_input=False)
    submit: bool = option(False, "run it as a job of two minutes and show what it says")


def run(options: Options) -> None:
    """Look at everything, print a line each; exit code 1 where something is to be mended."""
    from parallel_mix.backends.mpi import MpiBackend
    from parallel_mix.backends.mpi_launch import launched_by_mpi
    from parallel_mix.cli import speaks
    from parallel_mix.cluster.doctor import findings_of_process, findings_of_ranks
    from parallel_mix.errors import ParallelMixError
    from parallel_mix.runs.rank_checks import refuse_lone_copies

    if options.submit:
        as_job(options)
        return
    if not speaks() and not launched_by_mpi():
        return
    refuse_lone_copies()
    backend = None
    if launched_by_mpi():
        try:
            backend = MpiBackend()
        except (ImportError, RuntimeError) as error:
            raise ParallelMixError(
                f"MPI does not start: {error}. Run `parallel-mix doctor` without a launcher."
            ) from None
    findings = []
    for finding in chain(
        findings_of_ranks(backend) if backend else [], findings_of_process(options.folder) if speaks() else []
    ):
        findings.append(finding)
        print(finding, flush=True)
    if backend:
        backend.leave(patience=300.0)
    if not speaks():
        return
    wrong = sum(not finding.well for finding in findings)
    if wrong:
        raise ParallelMixError(f"{wrong} of {len(findings)} findings are to be mended.")
    print("All is well.")


def as_job(options: Options) -> None:
    """The same on the nodes of a cluster."""
    from parallel_mix.cluster.batch_script import Stage, batch_script
    from parallel_mix.cluster.submission import here, wait_for

    tasks = options.ntasks or (None if options.nodes else 2)
    asked = replace(options, time=options.time or "2", ntasks=tasks, job_name="doctor", array=None)
    stage = Stage(("doctor", str(options.folder)), keeps=False, ranks=True)
    folder = here()
    script = batch_script(stage, asked, (sys.executable, "-m", "parallel_mix"), str(folder))
    print(wait_for(script, folder, "doctor"), end="")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("doctor")
