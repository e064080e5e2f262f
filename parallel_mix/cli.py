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
from typing import Any, NoReturn

from parallel_mix import __version__
from parallel_mix.config import add_options, gather
from parallel_mix.errors import InputError, ParallelMixError, TaskError

COMMANDS = {
    "hmac": ("parallel_hmac", "cluster by hierarchical mode association"),
    "distances": ("distance_matrix", "distances between all pairs of rows, to a file"),
    "cluster": ("cluster_distances", "cluster by distances alone"),
    "hlm fit": ("fit_hlm", "fit a classifier over distances"),
    "hlm update": ("update_hlm", "let a classifier over distances grow"),
    "crossval": ("cross_validate", "compare classifiers by cross-validation"),
    "table": ("tabulate_errors", "print the errors of comparisons"),
    "paper": ("reproduce_table", "make a paper's table of errors again"),
    "predict": ("predict_labels", "give new points the clusters of a result"),
    "info": ("describe_result", "say what is in a result or a table"),
    "plot": ("plot_result", "draw the pictures of a result"),
    "export": ("export_labels", "write the labels of a result as csv"),
    "convert": ("convert_table", "turn a table into HDF5"),
    "submit": ("submit_batch", "hand commands to SLURM"),
    "launch": ("launch_ranks", "start a command on the nodes of a SLURM job"),
    "doctor": ("check_setup", "find out what is wrong with a set-up"),
    "status": ("show_status", "say how far runs are"),
}


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
    parser = _top_parser()
    if not words or command_of(words) not in COMMANDS:
        parser.parse_args(words or ["--help"])
        raise InputError(f"No command given: use one of {', '.join(COMMANDS)}.")
    job = job_of(command_of(words))
    if not job.PARALLEL and not speaks():
        return  # under mpirun one process does it
    job.run(options_of(words))


def command_of(words: Sequence[str]) -> str:
    """The command that words begin with: one word or two."""
    return " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]


def job_of(command: str) -> Any:
    """The module of a command; of the first of those that begin with a word."""
    command = next((name for name in COMMANDS if name == command or name.startswith(f"{command} ")), command)
    if command not in COMMANDS:
        raise InputError(f"There is no command {command!r}: use one of {', '.join(COMMANDS)}.")
    return importlib.import_module(f"parallel_mix.jobs.{COMMANDS[command][0]}")


def options_of(words: Sequence[str]) -> Any:
    """The options that a command line gives its job."""
    command = command_of(words)
    job = job_of(command)
    words = [command, *words[len(command.split()) :]]
    own = Parser(prog=f"parallel-mix {command}", description=job.__doc__, allow_abbrev=False)
    add_options(own, job.Options)
    try:
        flags = vars(own.parse_args(_joined_range(list(words[1:]))))
    except InputError as error:
        if "words" in job.Options.__dataclass_fields__ and "--" not in words:
            raise InputError(f"{error} A command and its words come after `--`.") from None
        raise
    if not flags.get("config") and hasattr(job, "site_file") and (path := job.site_file()):
        flags["config"] = path
    options = gather(job.Options, flags)
    if hasattr(job, "check"):
        job.check(options)
    return options


def _top_parser() -> Parser:
    listing = "\n".join(f"  {name:<10}{text}" for name, (_, text) in COMMANDS.items())
    parser = Parser(
        prog="parallel-mix",
        description=f"Clustering and mixture models as distributed jobs.\n\ncommands:\n{listing}",
        epilog="`parallel-mix COMMAND --help` tells the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"parallel-mix {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    return parser
