"""Cluster a table by hierarchical mode association, at every bandwidth of a ladder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, TableOptions, argument, numbers, option, positive
from parallel_mix.extras import need

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend
    from parallel_mix.models.hmac.result import HmacSettings

NEEDS = "parallel_mix.models.hmac.levels"
LEAVE_FROM = {None: 5_000_000, 3: 0}
"""By the approach that was asked for: from how many rows on those in HDF5 stay in their file (else they never do)."""


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix hmac`."""

    input: Path = argument("table: csv, npy, npz, parquet or HDF5")
    bandwidths: tuple[float, ...] | None = option(
        None, "rising, in data units, e.g. 0.1,0.2,0.5", read=numbers, metavar="LIST", instead_of=("levels", "range")
    )
    levels: int | None = option(None, "or number of bandwidths (default: 20)", read=positive, metavar="N")
    range: tuple[float, ...] | None = option(
        None, "between these two, in largest sds of a column (default: 0.1,2)", read=numbers, metavar="LOW,HIGH"
    )
    standardize: bool = option(False, "divide each column by its standard deviation first")
    nested: bool = option(True, "levels are independent of each other", negative="--flat")
    approach: int | None = option(
        None,
        "1: every step in parallel, 2: every ascent in parallel, 3: as 2, but nobody holds all rows (1 to 3 columns; "
        "default: 3 for 5,000,000 rows or more in HDF5, else 2)",
        read=int,
        choices=(1, 2, 3),
    )
    density: str = option(
        "auto",
        "exact: sums over all rows; field: fast, for 1 to 3 columns; tree: sums over the rows nearby, for more",
        choices=("auto", "exact", "field", "tree"),
    )
    weights: str | None = option(None, "dataset or column of row weights", metavar="NAME")
    data: bool = option(
        True,
        "keep no copy of the data in the result (large tables in HDF5 are never copied)",
        negative="--no-data",
    )


def decide(options: Options) -> HmacSettings:
    """What decides the answer; refused in words where it contradicts itself."""
    from parallel_mix.models.hmac.result import HmacSettings

    if options.density == "field":
        need("field", "--density field")
    return HmacSettings.asked(
        options.bandwidths,
        options.levels,
        options.range,
        options.standardize,
        options.nested,
        options.approach or HmacSettings.approach,
        options.density,
    )


def work(options: Options, settings: HmacSettings, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.hmac.file import tree_of
    from parallel_mix.models.hmac.density_choice import decided, left_where_they_are
    from parallel_mix.models.hmac.levels import fit_hmac
    from parallel_mix.models.hmac.points import measure_frame
    from parallel_mix.runs.job import Job

    with Job("hmac", options, backend, options.selection()) as job:
        table = job.reader.read(options.input, leave_from=LEAVE_FROM.get(options.approach))
        source = job.staging.rows(table)
        frame = measure_frame(source, options.standardize, job.reader.of_blocks(table))
        if options.approach is None and table.stored is not None:
            settings = left_where_they_are(settings, frame)
        settings, remark = decided(source, settings, frame)
        if remark:
            job.progress.say(remark)
        ladder = settings.ladder(frame.spread)
        if options.dry_run:
            job.progress.say(f"Would cluster at {len(ladder)} bandwidths from {ladder[0]:g} to {ladder[-1]:g}.")
            return
        result = fit_hmac(source, settings, backend, job.start(asdict(settings), unit="ascents"), frame)
        job.write_with_data("hmac", tree_of(result), table, options.data and table.stored is None)
