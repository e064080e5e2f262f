"""Print the errors of comparisons as a table: mean (sd), the best and all not significantly worse marked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parallel_mix.config import argument, option
from parallel_mix.families import commands_with, family_of

ENDINGS = (".txt", ".md", ".tex", ".csv")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix table`."""

    results: list[Path] = argument(f"results of {commands_with('tables')}, a column each", nargs="+")
    format: str = option("text", "how it is written", choices=("text", "markdown", "latex", "csv"))
    force: bool = option(False, "overwrite an existing file")
    output: Path | None = option(None, "write it to a file", read=Path, metavar="FILE", short="-o")


def run(options: Options) -> None:
    """Read, print."""
    from parallel_mix.evaluate.tables import table_of, told_apart, written
    from parallel_mix.runs.job import check_output
    from parallel_mix.store.atomic import write_text
    from parallel_mix.store.results import making_sense_of

    with making_sense_of(*options.results):
        columns = [errors_in(path) for path in options.results]
        names = told_apart([(data, path.stem) for (data, *_), path in zip(columns, options.results, strict=True)])
        parts = [(name, told_apart(rows), errors) for name, (_, rows, errors) in zip(names, columns, strict=True)]
        text = written(table_of(parts), options.format)
    if options.output is not None:
        check_output(options.output, options.force, ENDINGS, *options.results)
        write_text(options.output, text)
    else:
        sys.stdout.write(text)


def errors_in(path: Path) -> tuple[str, list[tuple[str, str]], Any]:
    """The name of the data, the rows and the errors of a comparison."""
    family = family_of(path, "tables", f": table takes those of {commands_with('tables')}.")
    columns: tuple[str, list[tuple[str, str]], Any] = family.part("tables").errors_of(path)
    return columns


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("table")
