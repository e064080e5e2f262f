"""The tasks of a cross-validation: a classifier is fitted to the other folds of a partition and predicts a fold.

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
class CrossvalRecipe:
    """What a worker makes `CrossvalData` of: rows, classifiers and protocol."""

    rows: RowsRecipe
    methods: tuple[Method, ...]
    protocol: Protocol

    def load(self) -> CrossvalData:
        """The data, as a worker holds them."""
        return CrossvalData(self)


class CrossvalData:
    """Rows, classifiers and protocol, ready to be used; each worker that needs a partition draws it again."""

    def __init__(self, recipe: CrossvalRecipe) -> None:
        self.rows: RowsData = recipe.rows.load()
        self.methods, self.protocol = recipe.methods, recipe.protocol
        self._partition: Partition | None = None
        self._warm_up()

    def _warm_up(self) -> None:
        """Load compiled code, and make the kinds of matrices, once: before processes are forked from this one."""
        few = np.concatenate([np.flatnonzero(self.rows.y == k)[:3] for k in range(2)])
        for method in self.methods:
            if method.where.startswith("parallel_mix"):
                with contextlib.suppress(Exception):  # whatever it is will be reported with the fold that it concerns
                    list(predictions(self.rows, method, method.settings[:2], few, few[:2]))

    def partition(self, number: int) -> Partition:
        """The partition of this number; the last one asked for is kept."""
        if self._partition is None or self._partition.number != number:
            self._partition = partition_of(self.rows.y, self.protocol, number)
        return self._partition


@dataclass(frozen=True)
class Task:
    """A classifier, some of its settings, and some folds (or WHOLE) of a partition."""

    method: int
    partition: int
    folds: tuple[int, ...]
    settings: tuple[int, ...]


@dataclass(frozen=True)
class FoldOutcome:
    """The outcome of a fold: the error of each setting, for WHOLE also the predicted classes; or why it failed."""

    fold: int
    errors: np.ndarray  # (settings)
    seconds: float
    predicted: Ints | None = None
    failure: str = ""


def run_folds(data: CrossvalData, task: Task) -> list[FoldOutcome]:
    """The outcomes of a task's folds, one after the other."""
    return [run_fold(data, task, fold) for fold in task.folds]


def run_fold(data: CrossvalData, task: Task, fold: int) -> FoldOutcome:
    """The outcome of one fold; what a setting raises is kept with its traceback, and the other settings go on."""
    method = data.methods[task.method]
    settings = [method.settings[k] for k in task.settings]
    train, test = data.partition(task.partition).rows(fold)
    errors, predicted_classes, failure = np.full(len(settings), np.nan), None, ""
    began = time.perf_counter()
    try:
        for which, predicted in predictions(data.rows, method, settings, train, test, data.protocol.seed):
            if isinstance(predicted, BaseException):
                failure = failure or "".join(traceback.format_exception(predicted))
                continue
            errors[which] = (predicted != data.rows.y[test]).mean(axis=1)
            predicted_classes = predicted[0] if fold == WHOLE else None
    except Exception as error:  # it cannot even be made
        failure = "".join(traceback.format_exception(error))
    return FoldOutcome(fold, errors, time.perf_counter() - began, predicted_classes, failure)


def predictions(
    rows: RowsData, method: Method, settings: Sequence[Setting], train: Ints, test: Ints, seed: int = 0
) -> Iterator[tuple[list[int], Ints | BaseException]]:
    """Which settings, and the numbers of the classes that they predict (settings, test rows), or what they raised."""
    y = rows.y[train]
    if (y == y[0]).all():  # nothing to tell apart here
        yield list(range(len(settings))), np.full((len(settings), len(test)), y[0])
        return
    split = rows.split(train, test)
    new, inner = split.across(method.takes), None
    for which, parameters in grouped(method, settings):
        estimator = method.make().set_params(**parameters)
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
                    predicted = estimator.fit(inner, rows.names[y]).predict(new)
                    yield which, checked_predictions(predicted, rows.names, np.unique(y), len(test))[None]
        except (Exception, SystemExit) as error:
            error.add_note(f"with the settings {settings[which[0]]}" if settings[which[0]] else "with its own settings")
            yield which, error


def is_unseeded(name: str, value: Any) -> bool:
    """Whether a parameter is a seed, the estimator's own or of one within it, that has no value and so is random."""
    return value is None and (name == "random_state" or name.endswith("__random_state"))


def grouped(method: Method, settings: Sequence[Setting]) -> list[tuple[list[int], Setting]]:
    """The settings that one fit serves, and the parameters of that fit."""
    served = getattr(method.make(), "served", ()) if settings[0] else ()
    groups: dict[str, list[int]] = {}
    for k, setting in enumerate(settings):
        unserved = {name: value for name, value in setting.items() if name not in served}
        key = repr(unserved) if served else str(k)
        groups.setdefault(key, []).append(k)
    return [
        (which, {name: value for name, value in settings[which[0]].items() if name not in served or len(which) == 1})
        for which in groups.values()
    ]


def checked_predictions(predicted: Any, names: np.ndarray, shown: Ints, count: int) -> Ints:
    """Predicted classes, one a row, as numbers instead of names; predictions that are none are refused."""
    values = np.asarray(predicted)
    if values.shape != (count,):
        raise ValueError(f"predict() returned an array of shape {values.shape} for {count} rows.")
    number = {name: k for k, name in zip(shown.tolist(), names[shown].tolist(), strict=True)}
    strange = [value for value in values.tolist() if value not in number]
    if strange:
        raise ValueError(
            f"predict() returned {strange[0]!r}, which is no class it was shown: {', '.join(map(str, number))}."
        )
    return np.array([number[value] for value in values.tolist()], dtype=np.int64)
