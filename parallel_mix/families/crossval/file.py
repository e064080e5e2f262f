"""Results of `parallel-mix crossval`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.evaluate.crossval import ClassifierResults, Comparison
from parallel_mix.evaluate.partitions import WHOLE
from parallel_mix.store.results import Tree, read_group, read_result, read_source

LAYOUT = (
    ("/crossval@protocol, @identity, @kind, @conversion, @metric", "what decided the comparison; vdm where it was "
     "learnt in each training part"),
    ("/crossval/classes, y (n), tests (P, t)", "names and numbers of the classes, test rows of each partition"),
    ("/crossval/methods/000@name, @title, @where, @fixed; settings", "a classifier, and what its folds chose from "
     "(JSON)"),
    ("/crossval/methods/000/inner (P, folds, settings)", "errors in the folds (NaN: failed)"),
    ("/crossval/methods/000/chosen, errors (P), predicted (P, t)", "number of the setting chosen, error and classes "
     "predicted in the test rows"),
    ("/crossval/methods/000/failures/...", "tracebacks"),
    ("/data/known, rows; @path, @digest", "the rows of known class, their names, and where the data are"),
    ("/run/seconds, refits", "of all fits and of the last one, by partition"),
)  # fmt: skip


def tree_of(about: Tree, classes: list[str], y: np.ndarray, comparison: Comparison) -> Tree:
    """The groups of a result; `about` is what decided it."""
    groups = {f"{m:03d}": method_tree(marks) for m, marks in enumerate(comparison.marks)}
    return {"crossval": {**about, "classes": classes, "y": y, "tests": comparison.tests, "methods": groups}}


def fold_name(fold: int) -> str:
    """A fold in words."""
    return "the whole training part" if fold == WHOLE else f"fold {fold}"


def method_tree(marks: ClassifierResults) -> dict[str, Any]:
    """One classifier as it is stored."""
    method = marks.method
    tree: dict[str, Any] = {
        "@name": method.name,
        "@title": method.title,
        "@where": method.where,
        "@fixed": json.dumps(dict(method.fixed)),
        "settings": json.dumps(method.settings),
        "inner": marks.inner,
        "chosen": marks.chosen,
        "predicted": marks.predicted,
        "errors": marks.errors,
    }
    if marks.failures:
        tree["failures"] = {f"partition {p}, {fold_name(fold)}": text for (p, fold), text in marks.failures.items()}
    return tree


@dataclass(frozen=True)
class StoredMethod:
    """One classifier as it was written."""

    name: str
    title: str
    settings: list[dict[str, Any]]
    errors: np.ndarray  # (partitions)
    chosen: np.ndarray  # (partitions)
    predicted: np.ndarray  # (partitions, test rows)
    seconds: np.ndarray  # (partitions)
    failures: dict[str, str]  # where: traceback

    @classmethod
    def from_tree(cls, tree: Tree, seconds: np.ndarray) -> StoredMethod:
        """From its group in the file."""
        failures = {where: str(text, "utf-8") for where, text in tree.get("failures", {}).items()}
        settings = json.loads(str(tree["settings"], "utf-8"))
        errors, chosen, predicted = (tree[name] for name in ("errors", "chosen", "predicted"))
        return cls(tree["@name"], tree["@title"], settings, errors, chosen, predicted, seconds, failures)


@dataclass(frozen=True)
class StoredComparison:
    """A whole result."""

    name: str
    methods: list[StoredMethod]
    classes: list[str]
    y: np.ndarray
    tests: np.ndarray
    identity: str  # of data and settings

    @property
    def errors(self) -> np.ndarray:
        """(classifiers, partitions)"""
        return np.stack([method.errors for method in self.methods])

    @property
    def names(self) -> list[tuple[str, str]]:
        """Titles and names of the classifiers."""
        return [(method.title, method.name) for method in self.methods]


def read_comparison(path: Path) -> StoredComparison:
    """A result of `crossval`."""
    tree = read_result(path, "crossval")
    times, source = read_group(path, "run/seconds"), read_source(path)[0]
    groups = tree["methods"]
    methods = [StoredMethod.from_tree(groups[key], times[key]) for key in sorted(groups)]
    classes = [str(name, "utf-8") for name in tree["classes"]]
    return StoredComparison(source.stem, methods, classes, tree["y"], tree["tests"], str(tree["@identity"]))
