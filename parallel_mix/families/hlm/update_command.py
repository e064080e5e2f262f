"""Let a classifier over distances grow by a batch of new rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_mix.config import CommonOptions, argument, integer, option, positive
from parallel_mix.errors import InputError

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

NEEDS = "parallel_mix.models.hlm.incremental"
TEMPLATE = {"ntasks": "4", "time": "00:30:00"}


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix hlm update`."""

    model: Path = argument("result of `hlm fit` or `hlm update`")
    output: Path = option(
        None, "the grown model; default: the model itself grows", read=Path, metavar="FILE", short="-o"
    )
    input: Path = argument("distances of the new rows to each other (scheme 2: to the rows the model kept, too)")
    labels: str = option("y", "dataset of the classes of the new rows; new classes are added", metavar="NAME")
    scheme: int = option(1, "1: join statistics; 2: cluster samples of the old rows with the new", read=integer)
    components: int | None = option(None, "a class: of the batch, or (2) of all; as before", read=positive, metavar="N")
    samples: int = option(4, "scheme 2: rows of each old component besides its centroid", read=positive, metavar="V")
    reassign: bool = option(
        True, "scheme 2: estimate by the clustered rows alone, weighted, and keep only these", negative="--no-reassign"
    )
    dataset: str = option("distances", "name of the matrix in HDF5 or npz", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")

    def __post_init__(self) -> None:
        if self.output is None:
            object.__setattr__(self, "output", self.model)
            object.__setattr__(self, "force", True)
        super().__post_init__()
        if self.scheme not in (1, 2):
            raise InputError(f"--scheme is 1 or 2, not {self.scheme}.")
        if self.scheme == 1 and not self.reassign:
            raise InputError("--no-reassign is for --scheme 2.")

    @property
    def in_place(self) -> bool:
        """True where the model is written over by the grown one."""
        return self.output == self.model


def work(options: Options, decided: Any, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.hlm.update_job import HlmUpdate
    from parallel_mix.runs.job import Job
    from parallel_mix.store.results import making_sense_of
    from parallel_mix.store.tables import Selection

    selection = Selection(options.dataset, None, options.labels, options.row_names, "rectangle")
    with making_sense_of(options.model), Job("hlm update", options, backend, selection, workers_read=False) as job:
        job.carry_out(HlmUpdate(job, options.model, job.reader.read(options.input, least_rows=1)))
