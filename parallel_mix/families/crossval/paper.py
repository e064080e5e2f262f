"""A paper's table made again: a comparison for each data set that is to be had, and ours beside theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError
from parallel_mix.evaluate.paper_tables import SOURCES, TABLES, PaperTable, Source, beside
from parallel_mix.evaluate.partitions import Protocol
from parallel_mix.evaluate.significance import LEAST, not_worse
from parallel_mix.families.crossval.file import read_comparison
from parallel_mix.families.crossval.job import CrossvalJob
from parallel_mix.models.core.methods import Method
from parallel_mix.runs.job import Job
from parallel_mix.store.array_files import read_npz
from parallel_mix.store.results import is_result
from parallel_mix.store.stored_matrix import survey
from parallel_mix.store.tables import Selection, Table


def listing(folder: Path | None) -> str:
    """All tables, and of which data sets the files are there."""
    lines = []
    for name, table in TABLES.items():
        lines.append(f"{name:<14}{table.title}")
        shown = [data if folder is None or (folder / SOURCES[data].file).exists() else f"{data} (not there)"
                 for data in table.data]  # fmt: skip
        lines.append(f"{'':<14}data: {', '.join(shown)}; classifiers: {', '.join(table.cells)}")
    return "\n".join(lines) + "\n"


def data_at_hand(table: PaperTable, folder: Path) -> list[str]:
    """The data sets of a table whose files are there."""
    present = [name for name in table.data if (folder / SOURCES[name].file).exists()]
    if not present:
        wanted = ", ".join(SOURCES[name].file for name in table.data)
        raise InputError(f"{folder} has none of the table's data: {wanted}. (--data names their folder.)")
    return present


def read_source(folder: Path, source: Source) -> Table:
    """A data set as classifiers take it; for those of distances vectors become Euclidean ones."""
    from scipy.spatial.distance import cdist

    path = folder / source.file
    table = read_npz(path, Selection(source.dataset, labels="y"))
    if source.kind == "vectors":
        return table
    matrix = cdist(table.X, table.X) if source.dataset == "X" else np.asarray(table.X, dtype=np.float64)
    return replace(table, X=np.empty((len(matrix), 0)), matrix=matrix, survey=survey(matrix, path))


def compared(table: PaperTable, results: dict[str, Path], rivals: dict[str, Path]) -> str:
    """Ours beside theirs, as Markdown, from the results of the comparisons, and those of its rivals that are there."""
    ours, marked, alone, few = {}, set(), [], []
    for data, path in results.items():
        comparison = read_comparison(path)
        for method in comparison.methods:
            known = 100.0 * method.errors[np.isfinite(method.errors)]
            if len(known):
                ours[method.name, data] = float(known.mean()), float(known.std(ddof=1)) if len(known) > 1 else 0.0
        others = read_comparison(rivals[data]) if data in rivals and is_result(rivals[data]) else None
        together = others is not None and np.array_equal(others.tests, comparison.tests)
        errors = [comparison.errors, others.errors] if others is not None and together else [comparison.errors]
        best = not_worse(np.concatenate(errors))[: len(comparison.methods)]
        marked |= {(method.name, data) for method, good in zip(comparison.methods, best, strict=True) if good}
        alone += [data] * (data in rivals and not together)
        few += [data] * (comparison.errors.shape[1] < LEAST)
    of = f", of this table and {table.rivals}" if table.rivals else ""
    lines = [
        "Errors in %, mean (sd) over the partitions. !: further from the paper than its own sd.",
    ]
    if len(few) < len(results):
        lines.append(f"Bold: the lowest, or not significantly worse (signed-rank test, 5 %){of}.")
    if alone:
        lines.append(
            f"Of {', '.join(alone)} this table alone is looked at: make {table.rivals} in the same folder, with the "
            "same partitions, and then this one again."
        )
    if few:
        lines.append(f"Of {', '.join(few)} nothing is marked: fewer than {LEAST} partitions show no difference.")
    return f"## {table.title}\n\n{beside(table, ours, marked)}\n" + "\n".join(lines) + "\n"


def is_that(path: Path, identity: str) -> bool:
    """True of a result of the same data and settings in which no fold failed."""
    if not is_result(path):
        return False
    comparison = read_comparison(path)
    return comparison.identity == identity and not any(method.failures for method in comparison.methods)


@dataclass(frozen=True, kw_only=True)
class AgainOptions(CommonOptions):
    """What a comparison needs to know of its options, where these are not those of `crossval`."""

    input: Path
    from_similarity: str | None = None
    symmetrize: bool = False


def compare_again(
    options: Any, backend: Backend, output: Path, table: Table, source: Source, methods: Sequence[Method]
) -> None:
    """A comparison of one data set of a paper's table."""
    common = {item.name: getattr(options, item.name) for item in fields(CommonOptions)}
    one = AgainOptions(
        **{**common, "output": output, "force": True}, input=table.path, from_similarity=source.conversion
    )
    protocol = Protocol(options.partitions, folds=options.folds, seed=options.seed)
    kind = "numbers" if source.kind == "vectors" else "matrix"
    with Job("crossval", one, backend, Selection(source.dataset, labels="y", kind=kind)) as job:
        job.reader.take(table)
        comparison = CrossvalJob(job, table, source.kind, tuple(methods), protocol)
        if not options.force and output.exists() and is_that(output, comparison.identity):
            job.progress.say(f"{output} is there already.")
            return
        if options.dry_run:
            job.progress.say(f"{table.path.stem}: {comparison.intention()}")
            return
        comparison.run()
