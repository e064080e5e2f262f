"""Classifiers compared by nested cross-validation, all partitions, folds and settings in one pool of tasks.

A partition's refit becomes a task as soon as its last fold is in. What is chosen is the setting of the smallest mean
error over the folds; of equal ones the first of the grid.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.evaluate.data import CONVERSIONS, KINDS, RowsRecipe
from parallel_mix.evaluate.fold_tasks import CrossvalRecipe, FoldOutcome, Task, run_folds
from parallel_mix.evaluate.methods import check_kinds, method_named, with_grid
from parallel_mix.evaluate.partitions import WHOLE, Protocol, check_protocol, partition_of
from parallel_mix.evaluate.tables import table_of, told_apart, written
from parallel_mix.models.core.methods import ANYTHING, Method
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.tasks import Arrays, ResumableMap
from parallel_mix.models.distances.pairwise import is_known

Ints = np.ndarray
FEW_ROWS = 600
"""With fewer rows a task is all folds of a partition, else one fold."""


@dataclass
class ClassifierResults:
    """The results of one classifier in a cross-validation."""

    method: Method
    inner: np.ndarray  # (partitions, folds, settings) errors in the folds; NaN before, and where they failed
    chosen: Ints  # (partitions) number of the setting; -1 where there is none
    predicted: Ints  # (partitions, test rows) numbers of classes; -1
    errors: np.ndarray  # (partitions) of the test rows
    seconds: np.ndarray  # (partitions) of all fits
    fits: np.ndarray  # (partitions) seconds of the refit and its predictions
    failures: dict[tuple[int, int], str] = field(default_factory=dict)  # (partition, fold): traceback

    @classmethod
    def empty(cls, method: Method, protocol: Protocol, tests: int) -> ClassifierResults:
        """Results before any fold is done, where a partition has `tests` test rows."""
        P, s = protocol.partitions, len(method.settings)
        inner = np.full((P, protocol.folds, s), np.nan)
        rest = np.full((P, tests), -1), np.full(P, np.nan), np.zeros(P), np.zeros(P)
        return cls(method, inner, np.full(P, -1), *rest)

    def choose(self, partition: int) -> int:
        """The setting of the smallest mean error among those that no fold failed with; -1 if there is none."""
        if len(self.method.settings) == 1:
            return 0
        means = self.inner[partition].mean(axis=0)
        return -1 if np.isnan(means).all() else int(np.nanargmin(np.round(means, 12)))


def inner_tasks(m: int, p: int, method: Method, folds: int, n: int) -> list[Task]:
    """The tasks that choose a setting of classifier m on partition p; none where there is one setting."""
    count = len(method.settings)
    if count == 1:
        return []
    if n < FEW_ROWS:
        return [Task(m, p, tuple(range(folds)), tuple(range(count)))]
    return [Task(m, p, (f,), tuple(range(count))) for f in range(folds)]


@dataclass(frozen=True)
class Comparison:
    """The results of all classifiers of a cross-validation."""

    protocol: Protocol
    y: Ints
    tests: Ints  # (partitions, test rows) which rows they are
    marks: list[ClassifierResults]
    classes: list[Any] | None = None  # what the numbers of classes stand for

    def __repr__(self) -> str:
        return self.table()

    @property
    def errors(self) -> np.ndarray:
        """Errors on the test rows as shares from 0 to 1, (classifiers, partitions)."""
        return np.stack([marks.errors for marks in self.marks])

    def table(self, form: str = "text", name: str = "error") -> str:
        """A table of the mean and sd of the errors in %; the best and those not significantly worse are marked."""
        titles = told_apart([(marks.method.title, marks.method.name) for marks in self.marks])
        return written(table_of([(name, titles, self.errors)]), form)


def compare(recipe: CrossvalRecipe, backend: Backend, run: Run | None = None) -> Comparison:
    """Cross-validate all classifiers on all partitions."""
    run, methods, protocol = run or QuietRun(), recipe.methods, recipe.protocol
    y = recipe.rows.y
    tests = np.stack([partition_of(y, protocol, p).test for p in range(protocol.partitions)])
    folds = MapOfFolds(methods, protocol, tests, len(y), run.restored())
    backend.share(recipe)
    folds.work_off(backend, run, run_folds)
    return Comparison(protocol, y, tests, folds.marks)


def fold_number(method: int, partition: int, fold: int, protocol: Protocol) -> int:
    """The number of a fold among all of a comparison, by which it can be run alone; the whole training part is last."""
    place = protocol.folds if fold == WHOLE else fold
    return (method * protocol.partitions + partition) * (protocol.folds + 1) + place


class MapOfFolds(ResumableMap):
    """The folds and refits of all classifiers: the results of those that are done, and those that are left as tasks.

    A refit is a task once the folds before it have chosen its setting.
    """

    tasks: list[Task]

    def __init__(
        self, methods: Sequence[Method], protocol: Protocol, tests: Ints, n: int, state: State | None = None
    ) -> None:
        self.protocol, self.n = protocol, n
        self.marks = [ClassifierResults.empty(method, protocol, tests.shape[1]) for method in methods]
        shape = len(methods), protocol.partitions
        self.folds_done = np.zeros((*shape, protocol.folds), dtype=bool)
        self.refit_done = np.zeros(shape, dtype=bool)
        self.asked = np.zeros(shape, dtype=bool)  # refits that are tasks already
        for m, marks in enumerate(self.marks):
            self.folds_done[m] = len(marks.method.settings) == 1
        self.total = int((~self.folds_done).sum()) + self.refit_done.size
        self._take_up(state)
        super().__init__(self._left(), "folds and refits", None)

    def number_told(self, number: int) -> int:
        task = self.tasks[number]
        return fold_number(task.method, task.partition, task.folds[0], self.protocol)

    def _left(self) -> list[Task]:
        """The tasks that are left before refits, and the refits that are ready."""
        tasks = []
        for p in range(self.protocol.partitions):
            for m, marks in enumerate(self.marks):
                for task in inner_tasks(m, p, marks.method, self.protocol.folds, self.n):
                    folds = tuple(fold for fold in task.folds if not self.folds_done[m, p, fold])
                    if folds:
                        tasks.append(Task(m, p, folds, task.settings))
        return tasks + self._refits()

    def ready(self) -> range:
        """Add the refits that have become ready as tasks; their numbers."""
        first = len(self.tasks)
        self.tasks += self._refits()
        self.done = np.append(self.done, np.zeros(len(self.tasks) - first, dtype=bool))
        return range(first, len(self.tasks))

    def _refits(self) -> list[Task]:
        """Refits that have become ready since they were last asked for."""
        refits = []
        for m, p in zip(*np.nonzero(self.folds_done.all(axis=2) & ~self.asked), strict=True):
            self.asked[m, p] = True
            chosen = self.marks[m].choose(int(p))
            self.marks[m].chosen[p] = chosen
            if chosen < 0:
                self.refit_done[m, p] = True
            elif not self.refit_done[m, p]:
                refits.append(Task(int(m), int(p), (WHOLE,), (chosen,)))
        return refits

    def keep(self, number: int, result: Iterable[FoldOutcome]) -> None:
        """Keep the outcomes of a task's folds."""
        task = self.tasks[number]
        marks, p = self.marks[task.method], task.partition
        for one in result:
            marks.seconds[p] += one.seconds
            if one.failure:
                marks.failures[p, one.fold] = one.failure
            if one.fold == WHOLE:
                self.refit_done[task.method, p] = True
                marks.fits[p] = one.seconds
                if one.predicted is not None:
                    marks.predicted[p], marks.errors[p] = one.predicted, one.errors[0]
            else:
                self.folds_done[task.method, p, one.fold] = True
                marks.inner[p, one.fold, list(task.settings)] = one.errors

    def how_far(self) -> HowFar:
        """How many folds and refits are done, of how many, and their name."""
        ours = [m for m, marks in enumerate(self.marks) if len(marks.method.settings) > 1]
        done = float(self.folds_done[ours].sum() + self.refit_done.sum())
        return done, float(self.total), f"{self.what} {int(done):,}/{self.total:,}"

    def arrays(self) -> Arrays:
        """All results so far, as arrays with names such as marks/0/errors."""
        named: Arrays = {"folds_done": self.folds_done, "refit_done": self.refit_done}
        for m, marks in enumerate(self.marks):
            for name in ("inner", "predicted", "errors", "seconds", "fits"):
                named[f"marks/{m}/{name}"] = getattr(marks, name)
            for (p, fold), text in marks.failures.items():
                named[f"failures/{m}/{p}/{fold}"] = text
        return named

    def _take_up(self, state: State | None) -> None:
        """Take the results of an earlier attempt from its state."""
        if state is None:
            return
        self.folds_done, self.refit_done = (np.array(state[name], dtype=bool) for name in ("folds_done", "refit_done"))
        for m, marks in enumerate(self.marks):
            for name in ("inner", "predicted", "errors", "seconds", "fits"):
                setattr(marks, name, np.array(state[f"marks/{m}/{name}"]))
        for key, text in state.items():
            if key.startswith("failures/"):
                m, p, fold = map(int, key.split("/")[1:])
                self.marks[m].failures[p, fold] = text.decode() if isinstance(text, bytes) else str(text)


def crossval(
    estimators: Sequence[Any],
    data: Any,
    y: Any,
    protocol: Protocol | None = None,
    backend: Backend | None = None,
    *,
    kind: str = "distances",
    conversion: str | None = None,
    metric: str | None = None,
) -> Comparison:
    """Compare classifiers by nested cross-validation, on all cores by default.

    An estimator is a name (README has the list), a scikit-learn classifier, or a pair of one and its grid. `data` is
    a square matrix of distances or similarities, or rows of numbers, as `kind` says; `conversion` makes distances of
    similarities: "bound" (the largest less S) or "inverse" (1/S). With metric="vdm" the data are rows of categories,
    whose distances each training part teaches anew: distances that all rows have taught know the classes of the test
    rows. Of a classifier that fails there is a warning.
    """
    if metric not in (None, "vdm"):
        raise InputError(
            f"metric={metric!r} needs no classes: give its distances. (vdm is learnt in each training part.)"
        )
    if metric == "vdm":
        if kind != "distances":
            raise InputError(f"vdm gives distances, not {kind}: leave out kind=.")
        data = _codes(data)
    if kind not in KINDS:
        raise InputError(f"There is no kind {kind!r}: use {', '.join(KINDS)}.")
    estimators = [estimators] if isinstance(estimators, str) else estimators
    if conversion not in (None, *CONVERSIONS):
        raise InputError(f"There is no conversion {conversion!r}: use {', '.join(CONVERSIONS)}.")
    if not len(estimators):
        raise InputError("There is no classifier to compare.")
    values = np.asarray(data, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(y) or not np.isfinite(values).all():
        raise InputError(
            f"data of shape {values.shape} for {len(y)} classes: finite numbers, a row for each, are needed."
        )
    if kind != "vectors" and metric is None and values.shape[0] != values.shape[1]:
        raise InputError(f"{kind} of {values.shape[0]} x {values.shape[1]} are no square matrix.")
    known = is_known(y)
    if not known.all():
        raise InputError(f"{int((~known).sum())} rows have no class: leave them out.")
    names, numbers = np.unique(np.asarray(y), return_inverse=True)
    protocol = Protocol() if protocol is None else protocol
    if not isinstance(protocol, Protocol):
        raise InputError(
            f"protocol must be a Protocol(partitions=, test=, folds=, stratified=, seed=), not {protocol!r}."
        )
    check_protocol(numbers, protocol)
    methods = tuple(_method_of(estimator) for estimator in estimators)
    check_kinds(methods, kind)
    if (
        kind == "distances"
        and metric is None
        and ((values < 0).any() or np.abs(np.diagonal(values)).max() > 1e-6 * values.max())
    ):
        raise InputError("Negative values, or a diagonal that is not 0, in data passed as distances (kind=).")
    needs = [method.name for method in methods if method.takes == "distances"]
    if kind == "similarities" and needs and conversion is None:
        raise InputError(f"{needs[0]} takes distances: say how they are made, conversion='bound' or 'inverse'.")
    rows = RowsRecipe(values, kind, numbers, tuple(names.tolist()), conversion or "inverse", metric == "vdm")
    with SerialBackend() if backend is None else contextlib.nullcontext(backend) as used:
        comparison = replace(compare(CrossvalRecipe(rows, methods, protocol), used), classes=names.tolist())
    for marks in comparison.marks:
        if marks.failures:
            (p, fold), text = next(iter(marks.failures.items()))
            where = f"partition {p}, " + ("the whole training part" if fold == WHOLE else f"fold {fold}")
            warnings.warn(
                f"{marks.method.name} failed in {len(marks.failures)} folds or refits (see its `failures`), first in "
                f"{where}:\n{text}",
                stacklevel=2,
            )
    return comparison


def _codes(data: Any) -> np.ndarray:
    """Categories of any kind as numbers, column by column."""
    X = np.asarray(data)
    X = X if X.dtype.kind in "biufUT" else np.asarray(X, dtype=str)
    if X.ndim != 2:
        raise InputError(f"Categories of shape {X.shape}: rows and columns are needed.")
    return np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T]).astype(np.float64)


def _method_of(estimator: Any) -> Method:
    if isinstance(estimator, str):
        return method_named(estimator)
    if isinstance(estimator, type):
        raise InputError(f"{estimator.__name__} is a class: give one of it, {estimator.__name__}().")
    made, grid = estimator if isinstance(estimator, tuple) else (estimator, {})
    if isinstance(made, str):
        return with_grid(method_named(made), grid)
    name, takes = type(made).__name__, getattr(made, "input", getattr(made, "takes", ANYTHING))
    return with_grid(Method(name, f"{type(made).__module__}:{name}", takes=takes, title=name, prototype=made), grid)
