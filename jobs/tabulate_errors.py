"""Print the errors of comparisons as a table: mean (sd), the best and all not significantly worse marked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option

ENDINGS = (".txt", ".md", ".tex", ".csv")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix table`."""

    results: list[Path] = argument("results of `crossval`, a column each", nargs="+")
    format: str = option("text", "how it is written", choices=("text", "markdown", "latex", "csv"))
    force: bool = option(False, "overwrite an existing file")
    output: Path | None = option(None, "write it to a file", read=Path, metavar="FILE", short="-o")


def run(options: Options) -> None:
    """Read, print."""
    from parallel_mix.evaluate.tables import table_of, told_apart, written
    from parallel_mix.families.crossval.file import read_comparison
    from parallel_mix.runs.job import check_output
    from parallel_mix.store.atomic import write_text
    from parallel_mix.store.results import making_sense_of

    with making_sense_of(*options.results):
        found = [read_comparison(path) for path in options.results]
        names = told_apart([(one.name, path.stem) for one, path in zip(found, options.results, strict=True)])
        parts = [(name, told_apart(one.names), one.errors) for name, one in zip(names, found, strict=True)]
        text = written(table_of(parts), options.format)
    if options.output is not None:
        check_output(options.output, options.force, ENDINGS, *options.results)
        write_text(options.output, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("table")
