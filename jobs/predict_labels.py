"""Give new points the clusters (hmac: those of the modes they climb to) or the classes (hlm) of a result."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    from parallel_mix.launch.job import Job
    from parallel_mix.models.hmac_prediction import predict_hmac
    from parallel_mix.models.hmac_result import HmacResult
    from parallel_mix.store.labels import labels_as_csv
    from parallel_mix.store.results import check_columns, kind_of, read_data, read_names, read_result
    from parallel_mix.store.tables import TEXT_ENDINGS, digest

    kind = kind_of(options.model)
    if kind not in ("hmac", "hlm"):
        raise InputError(f"{options.model} is a result of the kind {kind!r}: predict takes those of `hmac` and `hlm`.")
    if kind == "hlm":
        from parallel_mix.launch.hlm_prediction_job import predict_classes

        predict_classes(options, backend)
        return
    result = HmacResult.from_tree(read_result(options.model, "hmac"))
    known = read_data(options.model)
    columns = read_names(options.model)[1]
    of_model = {"model_columns": tuple(columns)} if columns else {"width": known.X.shape[1]}
    selection = replace(options.selection(), **of_model)
    with Job("predict", options, backend, selection, TEXT_ENDINGS) as job:
        table = job.read(options.input, least_rows=1)
        check_columns(options.model, table, known.X.shape[1])
        level = result.level_number(options.level)
        if options.dry_run:
            job.progress.say(f"Would climb at level {level}, bandwidth {result.bandwidths[level]:g}.")
            return
        run = job.start({"model": digest(known), "settings": str(result.settings), "level": level})
        labels = predict_hmac(result, job.source(known), table.X, level, backend, run)
        unknown = int((labels < 0).sum())
        if unknown:
            job.progress.say(f"{unknown:,} of {len(labels):,} points climb to modes the result does not know: -1.")
        job.write_csv(labels_as_csv(table.rows, {"label": labels}))


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("predict")
