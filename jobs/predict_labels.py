"""Give new points the clusters (hmac: those of the modes they climb to) or the classes (hlm) of a result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, TableOptions, argument, integer, option
from parallel_mix.families import commands_with, family_of

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

PARALLEL = True


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix predict`."""

    model: Path = argument(f"result of {commands_with('predictions')}")
    input: Path = argument("table of new points; for hlm their distances to the old ones")
    level: int | None = option(None, "level; default: the one its labels show", read=integer, metavar="N")


def run(options: Options) -> None:
    """Read, climb, write."""
    from parallel_mix.runs.session import run_on_backend

    run_on_backend(options, lambda backend: work(options, backend), "parallel_mix.models.hmac_prediction")


def work(options: Options, backend: Backend) -> None:
    """Rank 0's part."""
    from parallel_mix.store.results import making_sense_of

    with making_sense_of(options.model):
        family = family_of(options.model, "predictions", f": predict takes those of {commands_with('predictions')}.")
        family.part("predictions").predict(options, backend)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("predict")
