"""From an hmac result and new points to a csv of clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from parallel_mix.backends.base import Backend
from parallel_mix.families.hmac.file import read_clustering
from parallel_mix.models.hmac.prediction import predict_hmac
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.labels import labels_as_csv
from parallel_mix.store.results import check_columns, read_data, read_names
from parallel_mix.store.tables import TEXT_ENDINGS, digest

NEEDS = "parallel_mix.models.hmac.prediction"


def predict(options: Any, backend: Backend) -> None:
    """New points climb to the modes of an hmac result."""
    result = read_clustering(options.model)
    known = read_data(options.model, whole=result.settings.approach != 3)
    columns = read_names(options.model)[1]
    of_model = {"model_columns": tuple(columns)} if columns else {"width": known.X.shape[1]}
    selection = replace(options.selection(), **of_model)
    with Job("predict", options, backend, selection, TEXT_ENDINGS) as job:
        table = job.reader.read(options.input, least_rows=1)
        check_columns(options.model, table, known.X.shape[1])
        level = result.level_number(options.level)
        if options.dry_run:
            job.progress.say(f"Would climb at level {level}, bandwidth {result.bandwidths[level]:g}.")
            return
        run = job.start(
            {
                "model": Fingerprint(digest(known), "the model differs"),
                "settings": str(result.settings),
                "level": level,
            },
            unit="ascents",
        )
        labels = predict_hmac(result, job.staging.rows(known), table.X, level, backend, run)
        unknown = int((labels < 0).sum())
        if unknown:
            job.progress.say(f"{unknown:,} of {len(labels):,} points climb to modes the result does not know: -1.")
        job.write_csv(labels_as_csv(table.rows, {"label": labels}))
