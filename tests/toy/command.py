"""Tell rows by the nearest mean of a class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parallel_mix.config import CommonOptions, TableOptions, argument, option, positive

NEEDS = "tests.toy.model"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix toy`."""

    input: Path = argument("table: csv, npy, npz, parquet or HDF5")
    repeat: int = option(1, "look so often", read=positive, metavar="N")


def work(options: Options, _: None, backend: Any) -> None:
    """What rank 0 does."""
    from parallel_mix.runs.job import Job
    from tests.toy.model import Means, tell_rows
    from tests.toy.results import means_of, tree_of

    with Job("toy", options, backend, options.selection()) as job:
        table = job.reader.read(options.input)
        names, means = means_of(table)
        if options.dry_run:
            job.progress.say(f"Would tell {table.count} rows.")
            return
        run = job.start({"classes": ",".join(names)}, unit="blocks")
        told = tell_rows(Means(job.staging.rows(table), means, options.repeat), backend, run)
        job.write_with_data("toy", tree_of(names, means, told), table, True)
