"""Write the labels of a result as csv, row names kept."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option
from parallel_mix.families import commands_with, family_of, kinds_with_levels


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix export`."""

    result: Path = argument(f"result of {commands_with('labels')}")
    output: Path = option(None, "the csv file to write", read=Path, metavar="FILE", short="-o", required=True)
    level: str | None = option(
        None, f"of {kinds_with_levels()}: a level, or `all`; default: the one its labels show", metavar="N"
    )
    force: bool = option(False, "overwrite an existing file")


def run(options: Options) -> None:
    """Read, write."""
    from parallel_mix.runs.job import check_output
    from parallel_mix.store.atomic import write_text
    from parallel_mix.store.labels import labels_as_csv
    from parallel_mix.store.results import making_sense_of, read_names
    from parallel_mix.store.tables import TEXT_ENDINGS

    with making_sense_of(options.result):
        family = family_of(options.result, "labels", f": labels are those of {commands_with('labels')}.")
        columns = family.part("labels").labels_of(options.result, options.level)
        check_output(options.output, options.force, TEXT_ENDINGS, options.result)
        write_text(options.output, labels_as_csv(read_names(options.result)[0], columns))
    sys.stderr.write(f"{options.output} written.\n")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("export")
