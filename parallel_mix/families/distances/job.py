"""A job whose result is a large matrix that all workers write to in place."""

from __future__ import annotations

import hashlib
import inspect
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.families.distances.file import size_of_names, tree_beside
from parallel_mix.families.neighbours.file import tree_of
from parallel_mix.models.distances.callable_metric import imported
from parallel_mix.models.distances.neighbours import find_neighbours
from parallel_mix.models.distances.pairwise import (
    SIMILARITY,
    by_class,
    input_kind,
    metric_for,
    signatures_of,
)
from parallel_mix.models.distances.tiles import Held, Metric, PairsRecipe, RowsOf, ThingSource, compute_tiles
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint, KeptRun, checkpoint_path
from parallel_mix.store.checksums import BYTES
from parallel_mix.store.matrix_files import (
    MatrixFile,
    check_room,
    finish,
    is_whole,
    lay_out,
    plan,
    staging_path,
    sweep,
    take_up,
)
from parallel_mix.store.results import Tree, write_tree
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Table, digest


def wish(options: Any) -> dict[str, Any]:
    """What decides the answer; refused in words where options contradict each other, or would do nothing."""
    if (options.metric or "").startswith(SIMILARITY):
        raise InputError(f"There is no metric {options.metric!r}; similarities are converted by --from-similarity.")
    given = [name for name in ("metric", "p", "sigma", "symmetric", "old") if getattr(options, name)]
    metric = options.metric or "euclidean"
    if options.from_similarity:
        if given:
            word = "A second table" if given[0] == "old" else f"--{given[0]}"
            raise InputError(f"{word} has nothing to do beside --from-similarity: leave it out.")
        decided = {"metric": SIMILARITY + options.from_similarity, "symmetrize": options.symmetrize}
    else:
        input_kind(metric)
        for name, only in (("p", "minkowski"), ("sigma", "gaussian")):
            if getattr(options, name) is not None and metric != only:
                raise InputError(f"--{name} is for --metric {only}, not for {metric}.")
        if options.symmetric and ":" not in metric:
            raise InputError(f"--symmetric is a promise about a function of your own; {metric} is symmetric anyway.")
        if options.symmetrize:
            raise InputError("--symmetrize is for --from-similarity.")
        decided = {"metric": metric}
        decided |= {"p": 2.0 if options.p is None else options.p} if metric == "minkowski" else {}
        decided |= {"sigma": 1.0 if options.sigma is None else options.sigma} if metric == "gaussian" else {}
        decided |= {"symmetric": options.symmetric} if ":" in metric else {}
    if options.knn and (options.single or options.gather):
        raise InputError(f"--{'single' if options.single else 'gather'} is for the whole matrix, not for --knn.")
    return decided | ({"k": options.knn} if options.knn else {"dtype": "float32" if options.single else "float64"})


class PairsJob:
    """What both kinds of result have in common."""

    would: str
    bytes: int
    """Of the result."""

    def __init__(self, job: Job, new: Table, old: Table, decided: dict[str, Any], metric: Metric, gather: bool) -> None:
        self.job, self.new, self.old, self.decided = job, new, old, decided
        self.metric, self.gather = metric, gather
        self.shape = new.count, old.count
        self.digest = digest(new)
        self.identity = {
            **decided,
            "old": Fingerprint(digest(old), "the second table differs"),
            **identity_of_function(decided["metric"]),
        }

    def intention(self) -> str:
        """What a dry run says."""
        n, m = self.shape
        return (
            f"Would write {self.would} of {n:,} against {m:,} ({self.decided['metric']}), {self.bytes / 1e9:,.3g} GB."
        )

    def does_one_task(self, run: KeptRun) -> bool:
        """True where one task is to be run again; refused without the run that it is a task of."""
        if self.job.options.only_task is None:
            return False
        if run.restored() is None:
            raise InputError("There is no checkpoint of a failed run here, by which its tasks are counted.")
        return True

    def recipe(self, sink: MatrixFile | None) -> PairsRecipe:
        """What workers compare, and how."""
        new = None if self.new is self.old else self._source(self.new, "new")
        return PairsRecipe(self._source(self.old, "rows"), new, self.metric, sink)

    def _source(self, table: Table, name: str) -> ThingSource:
        if table.offsets is not None or table.texts is not None or isinstance(table.matrix, StoredMatrix):
            return Held(things_in(table))
        if table.matrix is not None:
            matrix = self.job.staging.matrix(table)
            return Held(matrix if isinstance(matrix, StoredMatrix) else table.matrix)
        return RowsOf(self.job.staging.rows(table, name))

    def rest(self) -> Tree:
        """What goes into the file beside the numbers."""
        record = {f"@{key}": value for key, value in self.job.complete_record().items()}
        return tree_beside(self.decided, self.new, self.old) | {"run": record}


class MatrixJob(PairsJob):
    """All distances, in a file that is laid out or taken up again, and finished."""

    would = "distances"

    def __init__(self, job: Job, new: Table, old: Table, decided: dict[str, Any], *how: Any) -> None:
        super().__init__(job, new, old, decided, *how)
        self.bytes = new.count * old.count * (4 if decided["dtype"] == "float32" else 8)

    def intention(self) -> str:
        check_room(self.job.output, self.shape, self.decided["dtype"], 0)
        return super().intention()

    def run(self) -> None:
        """Begin or go on, compute, finish."""
        dtype, job, backend = self.decided["dtype"], self.job, self.job.backend
        names = sum(size_of_names(table) for table in (self.new, self.old)) + BYTES * self.shape[0]
        if not checkpoint_path(job.output).exists():  # with one the room is taken already
            if job.options.only_task is None:
                sweep(job.output)
            check_room(job.output, self.shape, dtype, names)
        offset, header = plan(job.output, self.shape, dtype)
        identity = {**self.identity, "offset": Fingerprint(offset, "")}
        path = staging_path(job.output, {**identity, "new": self.digest})
        file = MatrixFile(str(path.absolute()), offset, self.shape, dtype, socket.gethostname())
        run = job.start(identity, unit="tiles", data=self.digest, worthless_alone=path)
        alone = self.does_one_task(run)
        if run.restored() is not None and not alone and not is_whole(file):
            if path.exists():
                job.progress.say(f"{path} is shorter than it was made: all is computed anew.")
            run.forget()  # or it was killed when all was done but this
        if run.restored() is not None:
            take_up(file, header)
        else:
            lay_out(file, header, names)
        layout, sums = compute_tiles(self.recipe(None if self.gather or alone else file), backend, run, file)
        backend.patiently(file.sync)
        rest = self.rest()
        run.yield_to_later_attempt()
        mine = run.yield_to_later_attempt
        backend.patiently(lambda: finish(file, job.output, "distances", rest, layout, sums, mine))
        job.finish()


class NeighboursJob(PairsJob):
    """The k nearest of each only."""

    would = "nearest neighbours"

    def __init__(self, job: Job, new: Table, old: Table, decided: dict[str, Any], *how: Any) -> None:
        super().__init__(job, new, old, decided, *how)
        self.bytes = 16 * new.count * int(decided["k"])
        most = old.count - (new is old)
        if decided["k"] > most:
            raise InputError(f"There are {most} others to be near to: --knn {decided['k']} is too many.")

    def run(self) -> None:
        """Begin or go on, compute, write."""
        k = self.decided["k"]
        run = self.job.start(self.identity, unit="stripes", data=self.digest)
        self.does_one_task(run)
        indices, distances = find_neighbours(self.recipe(None), k, self.job.backend, run)
        write_tree(self.job.output, "neighbours", tree_of(indices, distances) | self.rest())
        self.job.finish()


def as_signatures(table: Table) -> Table:
    """Signatures that fit together, or a sentence."""
    signatures = signatures_of(table.X, table.w, table.offsets, str(table.path))
    return replace(table, X=signatures.values, w=signatures.weights, offsets=signatures.offsets)


def things_in(table: Table) -> Any:
    """What of a table is compared."""
    if table.offsets is not None:
        return signatures_of(table.X, table.w, table.offsets, str(table.path))
    return next(things for things in (table.texts, table.matrix, table.X) if things is not None)


def chosen_metric(decided: dict[str, Any], new: Table, old: Table) -> Metric:
    """The metric that was wished for, as it is on these tables."""
    things, others = (old.survey or things_in(old)), (None if old is new else things_in(new))
    symmetric = decided.get("symmetric", decided.get("symmetrize", False))
    return metric_for(decided["metric"], things, others, decided.get("p", 2.0), decided.get("sigma", 1.0), symmetric)


def as_compared(kind: str, new: Table, old: Table) -> tuple[Table, Table]:
    """The tables as their metric compares them: categories become probabilities of the old rows' classes."""
    if kind == "signatures":
        checked = [as_signatures(table) for table in ((old,) if new is old else (old, new))]
        if new is old and old.count < 2:
            raise InputError(f"{old.path} has 1 signature: at least 2 are needed.")
        return checked[-1], checked[0]
    if kind != "categories":
        return new, old
    X, Y = by_class(old.X, old.y, None if new is old else new.X)
    known = replace(old, X=X, dataset=None)
    return known if Y is None else replace(new, X=Y, dataset=None), known


def identity_of_function(metric: str) -> dict[str, Fingerprint]:
    """A function that was mended meanwhile is another one: half a matrix of each would be wrong."""
    if ":" not in metric or metric.startswith(SIMILARITY):
        return {}
    function = inspect.unwrap(imported(metric))
    try:
        source = inspect.getsourcefile(function)
    except TypeError:  # compiled, or an object that can be called
        source = getattr(sys.modules[metric.partition(":")[0]], "__file__", None)
    if not source:
        return {}
    known = hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]
    return {"file of the function": Fingerprint(known, "the function has changed")}
