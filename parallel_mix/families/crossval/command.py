"""Compare classifiers by nested cross-validation: random partitions, settings chosen by folds of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parallel_mix.config import CommonOptions, argument, names, number, option, positive

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

NEEDS = "parallel_mix.evaluate.crossval"


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions):
    """Options of `parallel-mix crossval`."""

    input: Path = argument("matrix of distances or similarities, or a table of vectors, with classes")
    classifiers: tuple[str, ...] = option(
        None, "names (README has the list), or module:Class of your own", read=names, metavar="LIST", required=True
    )
    labels: str = option("y", "dataset or column of the classes; rows without one are left out", metavar="NAME")
    kind: str | None = option(
        None, "what the input is; default: distances, else vectors", choices=("distances", "similarities", "vectors")
    )
    metric: str | None = option(None, "of categories: distances learnt in each training part", choices=("vdm",))
    from_similarity: str | None = option(
        None, "distances made of S: its largest - S, 1/S", choices=("bound", "inverse")
    )
    symmetrize: bool = option(False, "take the mean of a matrix there and back")
    partitions: int = option(20, "random partitions into training and test rows", read=positive, metavar="N")
    test: float = option(0.2, "the part of test rows", read=number, metavar="SHARE")
    folds: int = option(10, "of the training rows, to choose settings by", read=positive, metavar="N")
    stratified: bool = option(False, "divide each class alike")
    grid: Path | None = option(
        None, "TOML: settings to choose from, a section each classifier", read=Path, metavar="FILE"
    )
    dataset: str | None = option(None, "name of the matrix or table in HDF5 or npz", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")
    columns: tuple[str, ...] | None = option(
        None, "of a table: only these columns, by name, counted from 1, or from..to", read=names, metavar="A,B,C..E"
    )
    drop: tuple[str, ...] | None = option(None, "of a table: all columns but these", read=names, metavar="A,B,C..E")


def decide(options: Options) -> tuple[Any, Any]:
    """The classifiers and the protocol; refused in words where options contradict each other."""
    from parallel_mix.families.crossval.job import check_kind, methods_of, protocol_of

    check_kind(options.kind)
    return methods_of(options), protocol_of(options)


def work(options: Options, decided: Any, backend: Backend) -> None:
    """What rank 0 does."""
    from parallel_mix.families.crossval.job import CrossvalJob, kind_of_input, selection_of
    from parallel_mix.runs.job import Job

    kind = kind_of_input(options)
    with Job("crossval", options, backend, selection_of(options, kind)) as job:
        job.carry_out(CrossvalJob(job, job.reader.read(options.input), kind, *decided))
