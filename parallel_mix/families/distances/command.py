"""Distances between all pairs of rows, straight to disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_mix.config import CommonOptions, TableOptions, argument, number, option, positive

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

METRICS_IN_WORDS = (
    "of rows of numbers: euclidean, sqeuclidean, cosine, correlation, cityblock, chebyshev, minkowski, hamming, "
    "jaccard, mahalanobis, gaussian; of signatures: mallows, irm; of texts: edit, edit-normalized; of categories: vdm; "
    "or a Python function of two rows, module:function (default: euclidean)"
)
NEEDS = "parallel_mix.models.distances.pairwise"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix distances`."""

    input: Path = argument("table: csv, npy, npz, parquet or HDF5")
    old: Path | None = argument("a second table: rows of the first (new) against its rows", nargs="?", default=None)
    metric: str | None = option(None, METRICS_IN_WORDS, metavar="NAME")
    p: float | None = option(None, "the power of minkowski (default: 2)", read=number, metavar="P")
    sigma: float | None = option(None, "bandwidth of gaussian, in data units (default: 1)", read=number, metavar="S")
    symmetric: bool = option(False, "a function of your own is symmetric: half the work, checked by samples")
    from_similarity: str | None = option(
        None, "the input is a matrix S of similarities: take the largest - S, or 1/S", choices=("bound", "inverse")
    )
    knn: int | None = option(None, "indices and distances of the K nearest only", read=positive, metavar="K")
    symmetrize: bool = option(False, "with --from-similarity: the mean of both halves")
    weights: str | None = option(
        None, "dataset or column of row weights (kept for those who use the distances)", metavar="NAME"
    )
    single: bool = option(False, "write float32")
    gather: bool = option(False, "send tiles to rank 0, where workers share no file system")


def decide(options: Options) -> dict[str, Any]:
    """What decides the answer; refused in words where it contradicts itself."""
    from parallel_mix.families.distances.job import wish

    return wish(options)


def work(options: Options, decided: Any, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.distances.job import MatrixJob, NeighboursJob, as_compared, chosen_metric
    from parallel_mix.models.distances.pairwise import input_kind
    from parallel_mix.runs.job import Job

    kind = input_kind(decided["metric"])
    with Job("distances", options, backend, options.selection(kind)) as job:
        new, old = job.reader.read_two(options.input, options.old)
        new, old = as_compared(kind, new, old)
        metric = chosen_metric(decided, new, old)
        kind_of_job = NeighboursJob if options.knn else MatrixJob
        job.carry_out(kind_of_job(job, new, old, decided, metric, options.gather))
