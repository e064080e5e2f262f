"""A toy's file, and what is said, drawn and made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.plots.figures import new_figure, save
from parallel_mix.runs.job import Job
from parallel_mix.store.labels import labels_as_csv
from parallel_mix.store.results import Tree, read_result
from parallel_mix.store.tables import TEXT_ENDINGS, Table

NEEDS = "tests.toy.model"
LAYOUT = (
    ("/toy/classes (k), means (k, d)", "names of the classes, and their means"),
    ("/toy/labels, distances (n)", "the class whose mean is nearest to each row, and how far that is"),
)


def means_of(table: Table) -> tuple[list[str], Any]:
    """Names and means of the classes."""
    if table.y is None:
        raise InputError(f"{table.path} has no classes: name their column with --labels.")
    names = sorted(set(map(str, table.y)))
    return names, np.stack([table.X[table.y.astype(str) == name].mean(axis=0) for name in names])


def tree_of(names: list[str], means: Any, told: dict[str, Any]) -> Tree:
    """The groups of a result."""
    return {"toy": {"classes": names, "means": means, **told}}


def describe(path: Path) -> list[str]:
    """What `info` says."""
    tree = read_result(path, "toy")
    return [f"{path}: {len(tree['labels']):,} rows told by the means of {len(tree['means'])} classes"]


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """How far the rows are from the nearest mean."""
    figure = new_figure(6, 4)
    figure.add_subplot().hist(read_result(path, "toy")["distances"])
    return save(figure, folder, "distances", formats)


def labels_of(path: Path, level: str | None) -> dict[str, Any]:
    """What `export` writes."""
    return {"label": read_result(path, "toy")["labels"]}


def predict(options: Any, backend: Any) -> None:
    """What `predict` makes of new rows."""
    from tests.toy.model import Means, tell_rows

    tree = read_result(options.model, "toy")
    with Job("predict", options, backend, options.selection(), TEXT_ENDINGS) as job:
        table = job.reader.read(options.input, least_rows=1)
        run = job.start({"model": str(tree["means"].tolist())}, unit="blocks")
        told = tell_rows(Means(job.staging.rows(table), tree["means"]), backend, run)
        job.write_csv(labels_as_csv(table.rows, {"label": told["labels"]}))
