"""Distances between all pairs of rows, straight to disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, argument, number, option

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

PARALLEL = True


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix distances`."""

    input: Path = argument("table: csv, npy, npz, parquet or HDF5")
    old: Path | None = argument("a second table: rows of the first (new) against its rows", nargs="?", default=None)
    metric: str = option("euclidean", "see README for the list", metavar="NAME")
    p: float = option(2.0, "the power of minkowski", read=number, metavar="P")
    sigma: float = option(1.0, "bandwidth of the gaussian kernel distance, in data units", read=number, metavar="S")
    single: bool = option(False, "write float32")
    gather: bool = option(False, "send tiles to rank 0, where workers share no file system")
    dataset: str = option("X", "name of the data in HDF5 or npz", metavar="NAME")
    labels: str | None = option(None, "dataset or column of known classes (kept with the result)", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")


def run(options: Options) -> None:
    """Read, compute, finish."""
    from parallel_mix.launch.session import run_on_backend

    run_on_backend(options, lambda backend: work(options, backend), "parallel_mix.models.pairwise")


def work(options: Options, backend: Backend) -> None:
    """Rank 0's part."""
    from parallel_mix.launch.job import Job
    from parallel_mix.launch.matrix_job import MatrixJob
    from parallel_mix.models.pairwise import PairsRecipe, compute_tiles, metric_for
    from parallel_mix.store.tables import Selection

    selection = Selection(options.dataset, None, options.labels, options.row_names)
    with Job("distances", options, backend, selection) as job:
        new = job.read(options.input, least_rows=1 if options.old else 2)
        old = new if options.old is None else job.read(options.old, least_rows=1)
        metric = metric_for(options.metric, new.X, None if old is new else old.X, options.p, options.sigma)
        matrix = MatrixJob(job, new, old, "float32" if options.single else "float64")
        if options.dry_run:
            job.progress.say(f"Would write {matrix.shape[0]:,} x {matrix.shape[1]:,} distances ({options.metric}).")
            return
        run = matrix.start({"metric": options.metric, "p": options.p, "sigma": options.sigma})
        sources = job.source(old), None if old is new else job.source(new, "new")
        compute_tiles(PairsRecipe(*sources, metric, matrix.sink(options.gather)), backend, run, matrix.file)
        matrix.finish()


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("distances")
