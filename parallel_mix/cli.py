"""`parallel-mix COMMAND ...`: finds the job and its options, and turns errors into sentences and exit codes."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from parallel_mix import __version__, registry
from parallel_mix.config import add_options, gather
from parallel_mix.errors import InputError, ParallelMixError, TaskError
from parallel_mix.registry import Command

GENERAL = {
    "table": ("tabulate_errors", "print the errors of comparisons"),
    "paper": ("reproduce_table", "make a paper's table of errors again"),
    "predict": ("predict_labels", "give new points the clusters or classes of a result"),
    "info": ("describe_result", "say what is in a result or a table"),
    "plot": ("plot_result", "draw the pictures of a result"),
    "export": ("export_labels", "write the labels of a result as csv"),
    "convert": ("convert_table", "turn a table into HDF5"),
    "submit": ("submit_batch", "hand commands to SLURM"),
    "launch": ("launch_ranks", "start a command on the nodes of a SLURM job"),
    "doctor": ("check_setup", "find out what is wrong with a set-up"),
    "status": ("show_status", "say how far runs are"),
}
"""Commands that are no family's: the program in `jobs`, and what it does, in a line."""


def commands() -> dict[str, Command]:
    """All commands by name, those of families first."""
    general = {name: Command(name, f"parallel_mix.jobs.{file}", text) for name, (file, text) in GENERAL.items()}
    return registry.commands() | general


@dataclass(frozen=True)
class Call:
    """A command with what it was asked for.

    The module of a command has a class `Options` and may have `decide(options)`: what decides the answer, refused in
    words where options contradict each other. It has either `work(options, decided, backend)`, which runs on a backend
    while all ranks load the module it `NEEDS` (or `needs(options)`); or `run(options)`, which one process does, unless
    it says `EVERY_RANK`. `TEMPLATE` may name resources of its batch template that are not the usual ones.
    """

    command: str
    module: Any
    options: Any
    decided: Any

    def run(self) -> None:
        """Do it; under mpirun what needs no backend is done by one process."""
        module, options = self.module, self.options
        if not is_parallel(module) and not speaks():
            return
        if hasattr(module, "run"):
            module.run(options)
            return
        from parallel_mix.runs.session import run_on_backend

        needs = module.needs(options) if hasattr(module, "needs") else module.NEEDS
        run_on_backend(options, lambda backend: module.work(options, self.decided, backend), needs)


def is_parallel(module: Any) -> bool:
    """Whether a command runs on a backend, or on every rank, and keeps checkpoints."""
    return hasattr(module, "work") or getattr(module, "EVERY_RANK", False)


class Parser(argparse.ArgumentParser):
    """argparse with sentences and exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[:1].upper()}{message[1:]}. See `{self.prog} --help`.")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console script."""
    code = guarded(_dispatch, list(sys.argv[1:] if arguments is None else arguments))
    gc.freeze()  # the end need not look at all there is once more: a tenth of a second where compiled code was loaded
    sys.exit(code)


def main_of(command: str) -> NoReturn:
    """A job's program, started by its file."""
    main([*command.split(), *sys.argv[1:]])


def guarded(action: Any, *arguments: Any) -> int:
    """Run, and return the exit code; a user's mistake is a sentence, no traceback."""
    try:
        action(*arguments)
    except ParallelMixError as error:
        if not speaks():
            time.sleep(0.5)  # a launcher that sees this end kills the one that speaks
        else:
            sys.stderr.write(f"parallel-mix: {error}\n")
            if isinstance(error, TaskError):
                sys.stderr.write(
                    "What was finished is kept: the same command goes on from there. To run the failed task alone, "
                    f"here: the same command with --only-task {error.failure.task}.\n"
                )
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("parallel-mix: interrupted.\n")
        return 130
    except BrokenPipeError:  # `parallel-mix info run.h5 | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _joined_range(words: list[str]) -> list[str]:
    """`--range 0.1 2.0` as `--range 0.1,2.0`."""
    for k in range(len(words) - 2):
        if words[k] == "--range" and all(re.fullmatch(r"[-+.\deE]+", word) for word in words[k + 1 : k + 3]):
            return [*words[: k + 1], ",".join(words[k + 1 : k + 3]), *words[k + 3 :]]
    return words


def speaks() -> bool:
    """True on the one process of a job that talks to the user."""
    names = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
    return next((os.environ[name] for name in names if name in os.environ), "0") == "0"


def _dispatch(words: list[str]) -> None:
    known = commands()
    if words and not words[0].startswith("-"):
        full_name(command_of(words))
    if not words or command_of(words) not in known:
        _top_parser().parse_args(words or ["--help"])
        raise InputError(f"No command given: use one of {', '.join(known)}.")
    call_of(words).run()


def template_of(command: str) -> str:
    """The batch template of a command."""
    from parallel_mix.cluster.template import template

    command, module = full_name(command), module_of(command)
    if "output" not in module.Options.__dataclass_fields__ or command == "paper":
        raise InputError(f"{command} makes no file on a cluster: there is no template for it.")
    asked = getattr(module, "TEMPLATE", None)
    return template(command, commands()[command].summary, module.Options, is_parallel(module), asked)


def command_of(words: Sequence[str]) -> str:
    """The command that words begin with: one word or two."""
    return " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]


def full_name(command: str) -> str:
    """The command that is meant; one of two words must be given with both."""
    known = commands()
    if command in known:
        return command
    longer = [name for name in known if name.startswith(f"{command} ")]
    if longer:
        raise InputError(f"{command!r} is {' or '.join(longer)}: say which.")
    raise InputError(f"There is no command {command!r}: use one of {', '.join(known)}.")


def module_of(command: str) -> Any:
    """The module of a command."""
    return importlib.import_module(commands()[full_name(command)].module)


def call_of(words: Sequence[str]) -> Call:
    """What a command line asks for, checked as far as it can be without a look at files."""
    command = command_of(words)
    module = module_of(command)
    words = [command, *words[len(command.split()) :]]
    own = Parser(prog=f"parallel-mix {command}", description=module.__doc__, allow_abbrev=False)
    add_options(own, module.Options)
    try:
        flags = vars(own.parse_args(_joined_range(list(words[1:]))))
    except InputError as error:
        if "words" in module.Options.__dataclass_fields__ and "--" not in words:
            raise InputError(f"{error} A command and its words come after `--`.") from None
        raise
    if not flags.get("config") and hasattr(module, "site_file") and (path := module.site_file()):
        flags["config"] = path
    options = gather(module.Options, flags)
    return Call(command, module, options, module.decide(options) if hasattr(module, "decide") else None)


def _top_parser() -> Parser:
    known = commands()
    listing = "\n".join(f"  {name:<10} {command.summary}" for name, command in known.items())
    parser = Parser(
        prog="parallel-mix",
        description=f"Clustering and mixture models as distributed jobs.\n\ncommands:\n{listing}",
        epilog="`parallel-mix COMMAND --help` tells the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"parallel-mix {__version__}")
    parser.add_argument("command", choices=known, metavar="COMMAND")
    return parser


if __name__ == "__main__":
    main()
