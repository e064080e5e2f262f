"""Draw the pictures of a result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option
from parallel_mix.families import commands_with, kinds_with_levels


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix plot`."""

    result: Path = argument(f"result of {commands_with('pages')}")
    output: Path = option(None, "the folder to write to", read=Path, metavar="FOLDER", short="-o", required=True)
    level: str | None = option(
        None,
        f"of {kinds_with_levels()}: levels to scatter, e.g. 3,7, or `all`; default: the one its labels show",
        metavar="LIST",
    )
    columns: str | None = option(
        None,
        f"of {kinds_with_levels()}: two columns, by name or counted from 1, instead of principal coordinates",
        metavar="A,B",
    )
    format: str = option("png,svg", "formats of the pictures", metavar="LIST")


def run(options: Options) -> None:
    """Read, draw."""
    from parallel_mix.families.pictures import plot_result
    from parallel_mix.store.results import making_sense_of

    with making_sense_of(options.result):
        for path in plot_result(
            options.result, options.output, tuple(options.format.split(",")), options.level, options.columns
        ):
            print(path)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("plot")
