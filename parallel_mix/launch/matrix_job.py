"""A job whose result is a large matrix that all workers write to in place."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.launch.job import Job
from parallel_mix.models.neighbours import find_neighbours
from parallel_mix.models.pairwise import SIMILARITY, by_class, input_kind, metric_for, signatures_of
from parallel_mix.models.tiles import Held, Metric, PairsRecipe, RowsOf, ThingSource, compute_tiles
from parallel_mix.store.checkpoints import checkpoint_path
from parallel_mix.store.matrix_files import MatrixFile, check_room, finish, lay_out, plan, staging_path, sweep, take_up
from parallel_mix.store.results import write_tree
from parallel_mix.store.tables import Table, digest


def wish(options: Any) -> dict[str, Any]:
    """What decides the answer; refused in words where options contradict each other, or would do nothing."""
    given = [name for name in ("metric", "p", "sigma", "symmetric", "old") if getattr(options, name)]
    metric = options.metric or "euclidean"
    if options.from_similarity:
        if given:
            word = "A second table" if given[0] == "old" else f"--{given[0]}"
            raise InputError(f"{word} has nothing to do beside --from-similarity: leave it out.")
        found = {"metric": SIMILARITY + options.from_similarity, "symmetrize": options.symmetrize}
    else:
        input_kind(metric)
        for name, only in (("p", "minkowski"), ("sigma", "gaussian")):
            if getattr(options, name) is not None and metric != only:
                raise InputError(f"--{name} is for --metric {only}, not for {metric}.")
        if options.symmetric and ":" not in metric:
            raise InputError(f"--symmetric is a promise about a function of your own; {metric} is symmetric anyway.")
        if options.symmetrize:
            raise InputError("--symmetrize is for --from-similarity.")
        found = {"metric": metric}
        found |= {"p": 2.0 if options.p is None else options.p} if metric == "minkowski" else {}
        found |= {"sigma": 1.0 if options.sigma is None else options.sigma} if metric == "gaussian" else {}
        found |= {"symmetric": options.symmetric} if ":" in metric else {}
    if options.knn and (options.single or options.gather):
        raise InputError(f"--{'single' if options.single else 'gather'} is for the whole matrix, not for --knn.")
    return found | ({"k": options.knn} if options.knn else {"dtype": "float32" if options.single else "float64"})


class PairsJob:
    """What both kinds of result have in common."""

    would: str

    def __init__(self, job: Job, new: Table, old: Table, decided: dict[str, Any]) -> None:
        self.job, self.new, self.old, self.decided = job, new, old, decided
        self.shape = new.count, old.count
        job.digest = digest(new)

    def intention(self) -> str:
        """What a dry run says."""
        n, m = self.shape
        return f"Would write {self.would} of {n:,} against {m:,} ({self.decided['metric']})."

    def recipe(self, metric: Metric, sink: MatrixFile | None) -> PairsRecipe:
        """What workers compare, and how."""
        new = None if self.new is self.old else self._source(self.new, "new")
        return PairsRecipe(self._source(self.old, "rows"), new, metric, sink)

    def _source(self, table: Table, name: str) -> ThingSource:
        rows_of_numbers = table.X.shape[1] and table.offsets is None
        return RowsOf(self.job.source(table, name)) if rows_of_numbers else Held(things_in(table))

    def rest(self) -> dict[str, Any]:
        """What goes into the file beside the numbers."""
        tree = {f"@{key}": value for key, value in self.decided.items()}
        tree |= names(self.new) | ({} if self.old is self.new else {"old": names(self.old)})
        return tree | {"run": {f"@{key}": value for key, value in self.job.complete_record().items()}}


class MatrixJob(PairsJob):
    """All distances, in a file that is laid out or taken up again, and finished."""

    would = "distances"

    def run(self, metric: Metric, gather: bool) -> None:
        """Begin or go on, compute, finish."""
        dtype, job, backend = self.decided["dtype"], self.job, self.job.backend
        if not checkpoint_path(job.output).exists():  # with one the room is taken already
            check_room(job.output, self.shape, dtype)
        offset, header = plan(job.output, self.shape, dtype)
        identity = {**self.decided, "old": digest(self.old), "offset": offset}
        path = staging_path(job.output, {**identity, "new": job.digest})
        file = MatrixFile(str(path.absolute()), offset, self.shape, dtype, socket.gethostname())
        job.unit = "tiles"
        job.without_checkpoint = path
        run = job.start(identity)
        alone = job.options.only_task is not None
        if run.restored() is not None:
            take_up(file, header)
        elif not alone:
            sweep(job.output)
            lay_out(file, header)
        compute_tiles(self.recipe(metric, None if gather or alone else file), backend, run, file)
        file.sync()
        finish(file, job.output, "distances", self.rest())
        job.finish()


class NeighboursJob(PairsJob):
    """The k nearest of each only."""

    would = "nearest neighbours"

    def run(self, metric: Metric, gather: bool) -> None:
        """Begin or go on, compute, write."""
        k, most = self.decided["k"], self.shape[1] - (self.new is self.old)
        if k > most:
            raise InputError(f"There are {most} others to be near to: --knn {k} is too many.")
        self.job.unit = "stripes"
        run = self.job.start({**self.decided, "old": digest(self.old)})
        indices, distances = find_neighbours(self.recipe(metric, None), k, self.job.backend, run)
        tree = {"neighbours": {"indices": indices, "distances": distances}}
        write_tree(self.job.output, "neighbours", tree | self.rest())
        self.job.finish()


def things_in(table: Table) -> Any:
    """What of a table is compared."""
    if table.offsets is not None:
        return signatures_of(table.X, table.w, table.offsets)
    return next(things for things in (table.texts, table.matrix, table.X) if things is not None)


def chosen_metric(decided: dict[str, Any], new: Table, old: Table) -> Metric:
    """The metric that was wished for, as it is on these tables."""
    things, others = (old.survey or things_in(old)), (None if old is new else things_in(new))
    symmetric = decided.get("symmetric", decided.get("symmetrize", False))
    return metric_for(decided["metric"], things, others, decided.get("p", 2.0), decided.get("sigma", 1.0), symmetric)


def as_compared(kind: str, new: Table, old: Table) -> tuple[Table, Table]:
    """The tables as their metric compares them: categories become probabilities of the old rows' classes."""
    if kind != "categories":
        return new, old
    X, Y = by_class(old.X, old.y, None if new is old else new.X)
    known = replace(old, X=X, dataset=None)
    return known if Y is None else replace(new, X=Y, dataset=None), known


def names(table: Table) -> dict[str, Any]:
    """Classes and names of the rows."""
    found: dict[str, Any] = {}
    if table.y is not None:
        found["y"] = [str(v) for v in table.y] if table.y.dtype.kind in "UO" else table.y
    if table.rows is not None:
        found["rows"] = table.rows
    return found
