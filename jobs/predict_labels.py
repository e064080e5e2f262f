"""Give new points the clusters (hmac: those of the modes they climb to) or the classes (hlm) of a result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from parallel_mix.config import CommonOptions, TableOptions, argument, integer, option

if TYPE_CHECKING:
    from parallel_mix.backends.base import Backend

PARALLEL = True


@dataclass(frozen=True, kw_only=True)
class Options(CommonOptions, TableOptions):
    """Options of `parallel-mix predict`."""

    model: Path = argument("result of `hmac` or `hlm fit`")
    input: Path = argument("table of new points; for hlm their distances to the old ones")
    level: int | None = option(None, "level; default: the one its labels show", read=integer, metavar="N")


def run(options: Options) -> None:
    """Read, climb, write."""
    from parallel_mix.launch.session import run_on_backend

    run_on_backend(options, lambda backend: work(options, backend), "parallel_mix.models.hmac_prediction")


def work(options: Options, backend: Backend) -> None:
    """Rank 0's part."""
    from parallel_mix.errors import InputError
    from parallel_mix.store.results import kind_of, making_sense_of

    with making_sense_of(options.model):
        kind = kind_of(options.model)
        if kind == "hmac":
            from parallel_mix.launch.hmac_prediction_job import predict_clusters

            predict_clusters(options, backend)
        elif kind == "hlm":
            from parallel_mix.launch.hlm_prediction_job import predict_classes

            predict_classes(options, backend)
        else:
            raise InputError(
                f"{options.model} is a result of the kind {kind!r}: predict takes those of `hmac` and `hlm`."
            )


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("predict")
