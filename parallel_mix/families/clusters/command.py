"""Cluster by distances alone: medoids by vertex substitution or generalized k-means, or Ward's tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_mix.config import CommonOptions, argument, option, positive, positives

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

NEEDS = "parallel_mix.models.clusters.clustering"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix cluster`."""

    input: Path = argument("square matrix of distances: result of `parallel-mix distances`, or a file of any format")
    clusters: tuple[int, ...] = option(
        None, "numbers of clusters, e.g. 12 or 4,8,16 or 2..6", read=positives, metavar="LIST", required=True
    )
    method: str = option("vsh", "vertex substitution, generalized k-means or Ward", choices=("vsh", "gkmeans", "ward"))
    restarts: int = option(20, "random starts of vsh, of which the best holds", read=positive, metavar="N")
    by_class: str | None = option(None, "cluster each class of this dataset by itself", metavar="NAME")
    symmetrize: bool = option(False, "take the mean of the distances there and back")
    shard: bool = option(False, "spread the rows of the matrix over the workers (where it is too large, by itself)")
    dataset: str = option("distances", "name of the matrix in HDF5 or npz", metavar="NAME")
    weights: str | None = option(None, "dataset of row weights", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")


def work(options: Options, decided: Any, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.clusters.job import ClustersJob
    from parallel_mix.runs.job import Job
    from parallel_mix.store.tables import Selection

    selection = Selection(options.dataset, options.weights, options.by_class, options.row_names, "matrix")
    with Job("cluster", options, backend, selection) as job:
        job.carry_out(ClustersJob(job, job.reader.read(options.input), options))
