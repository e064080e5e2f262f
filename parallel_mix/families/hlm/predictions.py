"""`predict` with a classifier over distances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.families.clusters.job import check_distances
from parallel_mix.families.hlm.file import StoredModel, read_model
from parallel_mix.models.distances.pairwise import class_names, is_known
from parallel_mix.models.hlm.prediction import predict_hlm
from parallel_mix.progress import plural
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.columns import listed
from parallel_mix.store.labels import labels_as_csv
from parallel_mix.store.results import read_names
from parallel_mix.store.stored_matrix import read_sides
from parallel_mix.store.tables import HDF5_ENDINGS, TEXT_ENDINGS, Selection, Table

NEEDS = "parallel_mix.models.hlm.prediction"


def predict(options: Any, backend: Backend) -> None:
    """Read the distances of new rows to those of the model, write class and posteriors."""
    if options.level is not None:
        raise InputError(f"{options.model} is a classifier: it has no --level.")
    stored = read_model(options.model)
    model, names = stored.model, stored.names
    dataset = "distances" if options.dataset == Selection.dataset else options.dataset
    selection = Selection(dataset, None, options.labels, options.row_names, "rectangle")
    with Job("predict", options, backend, selection, TEXT_ENDINGS) as job:
        table = job.reader.read(options.input, least_rows=1)
        check_distances(table, all_may_be_zero=True, new=True)
        columns = columns_of(table, stored, options.model)
        if (rows := read_names(options.model)[0]) is not None:
            say_ignored(job, table, rows)
        if options.dry_run:
            job.progress.say(f"Would tell {table.count:,} rows by {len(columns):,} components of {len(names)} classes.")
            return
        run = job.start(
            {
                "model": Fingerprint(json.dumps(stored.settings), "the model differs"),
                "components": float(model.b.sum()),
                "prior": str(model.prior),
            },
            unit="blocks of rows",
        )
        posteriors = predict_hlm(table.matrix, columns, model, backend, run)
        classes = np.array(names)[posteriors.argmax(axis=1)]
        if table.y is not None and (known := is_known(table.y)).any():
            right = float(np.mean(class_names(table.y)[known] == classes[known]))
            job.progress.say(f"{right:.2%} of {plural(int(known.sum()), 'row')} of known class are told right")
        shown = {f"p({name})": np.round(posteriors[:, k], 9) for k, name in enumerate(names)}
        job.write_csv(labels_as_csv(table.rows, {"class": classes, **shown}))


def names_across(table: Table) -> list[str] | None:
    """Names of the columns of distances, where they are known."""
    if table.path.suffix.lower() not in HDF5_ENDINGS:
        return table.columns
    rows, columns = read_sides(table.path)
    names = (rows if columns is None else columns).rows
    return names if names is not None and len(names) == table.matrix.shape[1] else None


def say_ignored(job: Job, table: Table, known: list[str]) -> None:
    """Name the columns of distances to rows that nobody knows of."""
    there = set(known)
    more = [name for name in names_across(table) or [] if name not in there]
    if more:
        job.progress.say(f"{table.path}: ignored, as the model does not know these rows: {listed(more)}.")


def places_of(names: list[str], path: Path) -> dict[str, int]:
    """Where each column is, by its name; one that stands for two is refused."""
    places = {name: k for k, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for k, name in enumerate(names) if places[name] != k)
        raise InputError(f"Two columns of {path} are called {twice!r}: names that tell rows apart are needed.")
    return places


def columns_of(table: Table, stored: StoredModel, model: Path) -> np.ndarray:
    """The columns of the new distances that are those to the components: by name, or by their number."""
    count, rows = table.matrix.shape[1], stored.model.rows
    centroids = stored.model.centroids
    across = names_across(table)
    if across is not None and (wanted := stored.component_names) is not None:
        place = places_of(across, table.path)
        missing = [name for name in wanted if name not in place]
        if missing:
            raise InputError(
                f"{table.path} has no distances to {missing[0]!r}: {len(missing)} of the {len(wanted)} rows that "
                f"{model} is made of are not among its columns."
            )
        return np.array([place[name] for name in wanted])
    if count == rows:
        return centroids
    if count == len(centroids):
        return np.arange(count)
    raise InputError(
        f"{table.path} has distances to {count:,} rows, {model} was fitted on {rows:,}: give the distances of new rows "
        f"to all of these, or to the {len(centroids):,} centroids in their order."
    )
