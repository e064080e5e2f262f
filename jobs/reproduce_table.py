"""Make a table of a paper again: its classifiers and protocol on its data, ours beside theirs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, argument, option, positive
from parallel_mix.errors import InputError

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix paper`."""

    table: str | None = argument("its name, as --list has it", nargs="?", read=str, default=None)
    list: bool = option(False, "name the tables, and what of their data is there")
    data: Path | None = option(None, "folder of the data sets (npz)", read=Path, metavar="FOLDER")
    output: Path = option(None, "folder to write to", read=Path, metavar="FOLDER", short="-o")
    partitions: int = option(20, "random partitions", read=positive, metavar="N")
    folds: int = option(10, "to choose settings by", read=positive, metavar="N")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only_task is not None:
            raise InputError("--only-task is for `crossval`.")
        if not self.list and (self.table is None or self.data is None or self.output is None):
            raise InputError("A table's name, --data FOLDER and -o FOLDER are needed; --list names the tables.")


def run(options: Options) -> None:
    """List, or compare and write."""
    from parallel_mix.families.crossval.paper import listing
    from parallel_mix.runs.session import run_on_backend

    if options.list:
        sys.stdout.write(listing(options.data))
        return
    run_on_backend(options, lambda backend: work(options, None, backend), "parallel_mix.evaluate.crossval")


def work(options: Options, _: None, backend: Backend) -> None:
    """Rank 0's part: data set by data set; results that are there already are used."""
    from parallel_mix.evaluate.paper_tables import SOURCES, paper_table
    from parallel_mix.families.crossval.paper import compare_again, compared, data_at_hand, read_source
    from parallel_mix.store.atomic import write_text

    assert options.table is not None and options.data is not None  # noqa: S101
    table, results = paper_table(options.table), {}
    at_hand = data_at_hand(table, options.data)
    if not options.dry_run:
        options.output.mkdir(parents=True, exist_ok=True)
    for name in at_hand:
        folder = options.output if options.output.exists() else Path()  # of a dry run
        results[name] = folder / f"{options.table}-{name}.h5"
        source = SOURCES[name]
        compare_again(options, backend, results[name], read_source(options.data, source), source, table.methods())
    if options.dry_run:
        return
    rivals = {name: options.output / f"{table.rivals}-{name}.h5" for name in at_hand if table.rivals}
    text = compared(table, results, rivals)
    write_text(options.output / f"{options.table}.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("paper")
