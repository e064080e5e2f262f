"""Random partitions into training and test rows, and of training rows into folds: the same for all classifiers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parallel_mix.errors import InputError

Ints = np.ndarray
WHOLE = -1
"""The fold that stands for a whole training part: fit to it, and predict the test rows."""


@dataclass(frozen=True)
class Protocol:
    """The way classifiers are compared (Qiao & Li, 5.1): partitions, the share of test rows, folds of the others."""

    partitions: int = 20
    test: float = 0.2
    folds: int = 10
    stratified: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise InputError(f"There must be 1 partition or more, not {self.partitions}.")
        if self.folds < 2:
            raise InputError(f"There must be 2 folds or more, not {self.folds}.")
        if not 0.0 < self.test < 1.0:
            raise InputError(f"The share of test rows must lie between 0 and 1, not {self.test:g}.")


@dataclass(frozen=True)
class Partition:
    """One partition: the test rows, and the fold of each row that is no test row (-1 for these)."""

    number: int
    test: Ints
    fold: Ints

    def rows(self, fold: int) -> tuple[Ints, Ints]:
        """The training and the test rows of a fold, or (WHOLE) of the partition; both in rising order."""
        if fold == WHOLE:
            return np.flatnonzero(self.fold >= 0), self.test
        return np.flatnonzero((self.fold >= 0) & (self.fold != fold)), np.flatnonzero(self.fold == fold)


def partition_of(y: Ints, protocol: Protocol, number: int) -> Partition:
    """The partition of this number, drawn from the seed and the number of rows (and classes, where stratified)."""
    n = len(y)
    random = np.random.default_rng([protocol.seed, number, n])
    order = random.permutation(n)
    if protocol.stratified:
        order = order[np.argsort(y[order], kind="stable")]
        is_test = np.zeros(n, dtype=bool)
        for c in np.unique(y):
            here = np.flatnonzero(y[order] == c)
            is_test[here[: round(protocol.test * len(here))]] = True
    else:
        is_test = np.arange(n) < round(protocol.test * n)
    test, train = order[is_test], order[~is_test]
    fold = np.full(n, -1)
    fold[train] = np.arange(len(train)) % protocol.folds  # by class, where they are stratified
    return Partition(number, np.sort(test), fold)


def check_protocol(y: Ints, protocol: Protocol) -> None:
    """Refuse a protocol for which there are too few rows or classes."""
    n = len(y)
    sizes = np.bincount(y) if protocol.stratified else [n]
    train = n - sum(round(protocol.test * int(size)) for size in sizes)
    if train == n or train < 2:
        raise InputError(f"{n} rows cannot be divided into {train} to learn from and {n - train} to test.")
    if protocol.folds > train:
        raise InputError(f"{protocol.folds} folds of {train} training rows: there cannot be more folds than rows.")
    if len(np.unique(y)) < 2:
        raise InputError("All rows are of one class: there is nothing to tell apart.")
