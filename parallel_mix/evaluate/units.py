"""What one task of a cross-validation does: fits of one classifier on folds of a partition, and what they tell.

An exception of a classifier is a value: the fold is reported and the others go on.
"""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parallel_mix.evaluate.data import RowsData, RowsRecipe
from parallel_mix.evaluate.partitions import WHOLE, Partition, Protocol, partition_of
from parallel_mix.models.core.methods import EITHER, Method, Setting

Ints = np.ndarray


@dataclass(frozen=True)
class ExamRecipe:
    """What a worker needs: rows, classifiers and protocol."""

    rows: RowsRecipe
    methods: tuple[Method, ...]
    protocol: Protocol

    def load(self) -> Exam:
        return Exam(self)


class Exam:
    """The same, ready to be used; a partition is drawn again by each worker that needs it."""

    def __init__(self, recipe: ExamRecipe) -> None:
        self.rows: RowsData = recipe.rows.load()
        self.methods, self.protocol = recipe.methods, recipe.protocol
        self._partition: Partition | None = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Load compiled code, and make the kinds of matrices, once: before processes are forked from this one."""
        few = np.concatenate([np.flatnonzero(self.rows.y == k)[:3] for k in range(2)])
        for method in self.methods:
            if method.where.startswith("parallel_mix"):
                with contextlib.suppress(Exception):  # whatever it is will be told of the fold that it concerns
                    list(predictions(self.rows, method, method.settings[:2], few, few[:2]))

    def partition(self, number: int) -> Partition:
        """Partition `number`; the last one is at hand."""
        if self._partition is None or self._partition.number != number:
            self._partition = partition_of(self.rows.y, self.protocol, number)
        return self._partition


@dataclass(frozen=True)
class Task:
    """Some folds (or WHOLE) of a partition, a classifier, and some of its settings."""

    method: int
    partition: int
    folds: tuple[int, ...]
    settings: tuple[int, ...]


@dataclass(frozen=True)
class Told:
    """What came of a fold: errors of the settings, for WHOLE also the classes that were told; or why it failed."""

    fold: int
    wrong: np.ndarray  # (settings)
    seconds: float
    predicted: Ints | None = None
    failure: str = ""


def examine(exam: Exam, task: Task) -> list[Told]:
    """Fit and tell, fold by fold."""
    return [examine_fold(exam, task, fold) for fold in task.folds]


def examine_fold(exam: Exam, task: Task, fold: int) -> Told:
    """One fold; what a classifier raises is told with its traceback, and its other settings go on."""
    method = exam.methods[task.method]
    settings = [method.settings[k] for k in task.settings]
    train, test = exam.partition(task.partition).rows(fold)
    wrong, told, failure = np.full(len(settings), np.nan), None, ""
    began = time.perf_counter()
    try:
        for which, predicted in predictions(exam.rows, method, settings, train, test, exam.protocol.seed):
            if isinstance(predicted, BaseException):
                failure = failure or "".join(traceback.format_exception(predicted))
                continue
            wrong[which] = (predicted != exam.rows.y[test]).mean(axis=1)
            told = predicted[0] if fold == WHOLE else None
    except Exception as error:  # it cannot even be made
        failure = "".join(traceback.format_exception(error))
    return Told(fold, wrong, time.perf_counter() - began, told, failure)


def predictions(
    rows: RowsData, method: Method, settings: Sequence[Setting], train: Ints, test: Ints, seed: int = 0
) -> Iterator[tuple[list[int], Ints | BaseException]]:
    """Which settings, and the numbers of classes that they tell (settings, test rows), or what they raised."""
    y = rows.y[train]
    if (y == y[0]).all():  # nothing to tell apart here
        yield list(range(len(settings))), np.full((len(settings), len(test)), y[0])
        return
    split = rows.split(train, test)
    new, inner = split.across(method.takes), None
    for which, alone in grouped(method, settings):
        estimator = method.make().set_params(**alone)
        if method.takes == EITHER:
            estimator.set_params(input=rows.kind)
        estimator.set_params(
            **{name: seed for name, value in estimator.get_params().items() if is_unseeded(name, value)}
        )
        if inner is None and not getattr(estimator, "learns_classes_only", False):
            inner = split.within(method.takes)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of solvers that stop early: errors say what that is worth
                if hasattr(estimator, "predict_settings"):
                    estimator.fit_checked(inner, y)
                    yield which, estimator.predict_settings(new, [settings[k] for k in which])
                else:
                    told = estimator.fit(inner, rows.names[y]).predict(new)
                    yield which, sane(told, rows.names, np.unique(y), len(test))[None]
        except (Exception, SystemExit) as error:
            error.add_note(f"with the settings {settings[which[0]]}" if settings[which[0]] else "with its own settings")
            yield which, error


def is_unseeded(name: str, value: Any) -> bool:
    """True of a seed, the estimator's own or of one within it, that would be another one everywhere."""
    return value is None and (name == "random_state" or name.endswith("__random_state"))


def grouped(method: Method, settings: Sequence[Setting]) -> list[tuple[list[int], Setting]]:
    """Settings that one fit serves, and the parameters of that fit."""
    served = getattr(method.make(), "served", ()) if settings[0] else ()
    groups: dict[str, list[int]] = {}
    for k, setting in enumerate(settings):
        alone = {name: value for name, value in setting.items() if name not in served}
        key = repr(alone) if served else str(k)
        groups.setdefault(key, []).append(k)
    return [
        (which, {name: value for name, value in settings[which[0]].items() if name not in served or len(which) == 1})
        for which in groups.values()
    ]


def sane(predicted: Any, names: np.ndarray, shown: Ints, count: int) -> Ints:
    """Predictions of classes by name, one a row, as numbers; or what is wrong with them."""
    found = np.asarray(predicted)
    if found.shape != (count,):
        raise ValueError(f"predict() returned an array of shape {found.shape} for {count} rows.")
    number = {name: k for k, name in zip(shown.tolist(), names[shown].tolist(), strict=True)}
    strange = [value for value in found.tolist() if value not in number]
    if strange:
        raise ValueError(
            f"predict() returned {strange[0]!r}, which is no class it was shown: {', '.join(map(str, number))}."
        )
    return np.array([number[value] for value in found.tolist()], dtype=np.int64)
