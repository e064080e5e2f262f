"""Results of `parallel-mix crossval`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.store.results import Tree, read_group, read_result, read_source


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
