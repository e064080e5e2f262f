"""Hand commands to SLURM: submit [resources] -- COMMAND ... [--then COMMAND ...]."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from parallel_mix.cluster.batch_script import Resources, site_file
from parallel_mix.config import argument, option, span
from parallel_mix.errors import InputError

__all__ = ["Options", "run", "site_file"]


@dataclass(frozen=True, kw_only=True)
class Options(Resources):
    """Options of `parallel-mix submit`."""

    words: list[str] = argument(
        "-- and a command of parallel-mix; --then and another one that waits for it", nargs="*", read=str, default=()
    )
    dask_workers: tuple[int, int] | None = option(
        None,
        "run on Dask workers that are jobs of their own, as many as there is work for",
        read=span,
        metavar="MIN..MAX",
    )
    dry_run: bool = option(False, "print the scripts and submit nothing")
    template: str | None = option(None, "print a batch template for this command, a copy to edit", metavar="COMMAND")


def run(options: Options) -> None:
    """Check every command, then submit them one after the other."""
    from parallel_mix.cli import call_of, is_parallel, module_of, template_of
    from parallel_mix.cluster.batch_script import asks_for, batch_script
    from parallel_mix.cluster.submission import (
        check_inputs,
        check_target,
        here,
        refuse_shared_outputs,
        stages,
        stages_done,
        submit_chain,
        warn_of_local_folders,
    )

    if options.template is not None and options.words:
        raise InputError("--template prints a template and submits nothing: leave out the command after `--`.")
    if options.template is not None:
        print(template_of(options.template), end="")
        return
    folder = here()
    program = (sys.executable, "-m", "parallel_mix")
    chain = stages(options.words, lambda command: is_parallel(module_of(command)), options.dask_workers)
    commands = [call_of(stage.words).options for stage in chain]  # a mistake is better found now than after a night
    scripts = [batch_script(stage, options, program, str(folder)) for stage in chain]
    outputs = [getattr(command, "output", None) for command in commands]
    refuse_shared_outputs(options.array, outputs)
    if not options.array:
        check_inputs(folder, commands)
    for stage in chain:
        sys.stderr.write(f"parallel-mix: {asks_for(stage, options)}\n")
    if options.dry_run:
        print("\n# --dependency=afterok of the job before:\n".join(scripts), end="")
        return
    done = 0 if options.array else stages_done(commands, folder)
    for output, command in zip(outputs[done:], commands[done:], strict=True):
        if output and not options.array:
            check_target(folder / output, getattr(command, "force", True))
    warn_of_local_folders([folder, *[folder / output for output in outputs if output]])
    submit_chain(chain[done:], scripts[done:], folder, [] if options.array else outputs[done:])


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("submit")
