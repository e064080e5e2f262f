"""Fit a classifier over distances alone: a mixture by hypothetical local mapping (HLM) for each class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_mix.config import CommonOptions, argument, number, option, positive

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

NEEDS = "parallel_mix.models.hlm.fit"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix hlm fit`."""

    input: Path = argument("square matrix of distances: result of `parallel-mix distances`, or a file of any format")
    labels: str = option("y", "dataset of the classes; rows without one are left out", metavar="NAME")
    components: int | None = option(None, "components of each class (default: 4)", read=positive, metavar="N")
    kernel: bool = option(False, "Kernel HLM: every row a component")
    select: str | None = option(
        None, "or numbers to choose from by cross-validation, e.g. 1..10,12,14,16,kernel", metavar="LIST"
    )
    clustering: str = option("vsh", "how components are found", choices=("vsh", "gkmeans", "ward"))
    shape: str = option("common", "one gamma shape, one a class, or a few", choices=("common", "class", "grouped"))
    groups: int = option(3, "with --shape grouped: how many groups", read=positive, metavar="N")
    restarts: int = option(20, "random starts of vsh, of which the best holds", read=positive, metavar="N")
    folds: int = option(10, "of the cross-validation", read=positive, metavar="N")
    kernel_shape: float | None = option(None, "Kernel HLM's gamma shape, by hand", read=number, metavar="S")
    kernel_scale: float | None = option(None, "Kernel HLM's gamma scale, by hand", read=number, metavar="B")
    keep: bool = option(False, "keep all distances with the model, for `hlm update --scheme 2`")
    symmetrize: bool = option(False, "take the mean of the distances there and back")
    dataset: str = option("distances", "name of the matrix in HDF5 or npz", metavar="NAME")
    weights: str | None = option(None, "dataset of row weights", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")


def decide(options: Options) -> Any:
    """What decides the answer; refused in words where it contradicts itself."""
    from parallel_mix.families.hlm.fit_job import settings_of

    return settings_of(options)


def work(options: Options, decided: Any, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.hlm.fit_job import HlmJob
    from parallel_mix.runs.job import Job
    from parallel_mix.store.tables import Selection

    selection = Selection(options.dataset, options.weights, options.labels, options.row_names, "matrix")
    with Job("hlm fit", options, backend, selection) as job:
        job.carry_out(HlmJob(job, job.reader.read(options.input), decided))
