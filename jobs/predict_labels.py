"""Give new points the clusters or the classes of a result."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, TableOptions, argument, integer, option
from parallel_mix.errors import ParallelMixError
from parallel_mix.families import commands_with, family_of

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend
    from parallel_mix.registry import Family


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix predict`."""

    model: Path = argument(f"result of {commands_with('predictions')}")
    input: Path = argument("table of new points, or of their distances to the old ones, as the result was made from")
    level: int | None = option(None, "level; default: the one its labels show", read=integer, metavar="N")


def needs(options: Options) -> str:
    """The module that rank 0 loads while MPI starts: the one that the family of the result names.

    The other ranks load it with their first task: rank 0 alone reads the result.
    """
    from parallel_mix.backends.mpi_launch import launched_rank

    if launched_rank() > 0:
        return "parallel_mix.runs.job"
    with contextlib.suppress(ParallelMixError):  # rank 0 tells what is wrong
        return str(_family_of(options).part("predictions").NEEDS)
    return "parallel_mix.runs.job"


def work(options: Options, _: None, backend: Backend) -> None:
    """What rank 0 does: the work of the result's family."""
    from parallel_mix.store.results import making_sense_of

    with making_sense_of(options.model):
        _family_of(options).part("predictions").predict(options, backend)


def _family_of(options: Options) -> Family:
    return family_of(options.model, "predictions", f": predict takes those of {commands_with('predictions')}.")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("predict")
