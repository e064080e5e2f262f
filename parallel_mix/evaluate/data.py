"""Rows as classifiers take them: distances, similarities converted from them (or the other way), or vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from parallel_mix.errors import InputError
from parallel_mix.kernels.metrics.category_distances import ClassProbabilities
from parallel_mix.models.core.methods import ANYTHING, EITHER
from parallel_mix.models.core.sources import MatrixSource

Ints = np.ndarray
LEAST_SIMILARITY = 1e-3
"""Similarities below this count as this before they are inverted."""
CONVERSIONS = ("bound", "inverse")
KINDS = ("distances", "similarities", "vectors")


@dataclass(frozen=True)
class RowsRecipe:
    """What a worker makes `RowsData` of: the matrix (or table), its kind, the classes, and the conversion."""

    matrix: MatrixSource | Any
    kind: str
    y: Ints  # numbers of classes
    names: tuple[Any, ...]  # what they stand for
    conversion: str = "inverse"  # or bound: the largest less S
    learns: bool = False  # distances of rows of categories (vdm), which are learnt from the classes of training rows

    def load(self) -> RowsData:
        """The rows, in memory."""
        return RowsData(self)


class RowsData:
    """Rows in memory, with each kind (distances, similarities) made when it is first asked for."""

    def __init__(self, recipe: RowsRecipe) -> None:
        self._recipe = recipe
        self.y, self.names = recipe.y, np.array(recipe.names)
        n = recipe.matrix.shape[0]
        self._given = np.ascontiguousarray(recipe.matrix[slice(0, n)], dtype=np.float64)
        self._kinds = {} if recipe.learns else {recipe.kind: self._given}

    @property
    def kind(self) -> str:
        """The kind that the rows came as: distances, similarities or vectors."""
        return self._recipe.kind

    def split(self, train: Ints, test: Ints) -> Split:
        """The training rows and the test rows, as classifiers take them."""
        if not self._recipe.learns:
            return Split(self, train, test)
        X = self._given
        known = ClassProbabilities(X[train], self.y[train])
        old, new = known.rows(X[train]), known.rows(X[test])
        return Learnt(self, train, test, cdist(old, old, "sqeuclidean"), cdist(new, old, "sqeuclidean"))

    def of(self, kind: str) -> np.ndarray:
        """All rows as this kind; as ANYTHING or EITHER, the kind that they came as."""
        own = self._recipe.kind
        kind = own if kind in (ANYTHING, EITHER) else kind
        if kind not in self._kinds:
            if "vectors" in (own, kind):
                raise InputError(f"{kind[:1].upper()}{kind[1:]} cannot be made of {own}.")
            given = self._kinds[own]
            made = similarities_of(given) if kind == "similarities" else distances_of(given, self._recipe.conversion)
            self._kinds[kind] = made
        return self._kinds[kind]


@dataclass(frozen=True)
class Split:
    """Training rows and test rows, as a classifier takes them."""

    rows: RowsData
    train: Ints
    test: Ints

    def within(self, kind: str) -> np.ndarray:
        """What a classifier is fitted to: the training rows, or the matrix between them."""
        values = self.rows.of(kind)
        return np.asarray(values[np.ix_(self.train, self.train)] if self.rows.kind != "vectors" else values[self.train])

    def across(self, kind: str) -> np.ndarray:
        """What a classifier predicts from: the test rows, or the matrix of the test rows to the training rows."""
        values = self.rows.of(kind)
        return np.asarray(values[np.ix_(self.test, self.train)] if self.rows.kind != "vectors" else values[self.test])


@dataclass(frozen=True)
class Learnt(Split):
    """Training rows and test rows of distances that are learnt from the training rows alone (vdm)."""

    inner: np.ndarray
    outer: np.ndarray

    def within(self, kind: str) -> np.ndarray:
        """The matrix between the training rows."""
        return similarities_of(self.inner) if kind == "similarities" else self.inner

    def across(self, kind: str) -> np.ndarray:
        """The matrix of the test rows to the training rows.

        Things at distance 0 are as similar as the most similar training rows.
        """
        if kind != "similarities":
            return self.outer
        with np.errstate(divide="ignore", over="ignore"):
            S: np.ndarray = np.reciprocal(self.outer)
        return np.where(np.isinf(S), similarities_of(self.inner).max(), S)


def similarities_of(D: np.ndarray) -> np.ndarray:
    """The similarities 1/D; where D is 0 (itself, duplicates), that of the most similar others."""
    with np.errstate(divide="ignore", over="ignore"):
        S: np.ndarray = np.reciprocal(D)
    np.fill_diagonal(S, np.inf)
    none = np.isinf(S)
    S[none] = 0.0
    S[none] = S.max() or 1.0
    return S


def distances_of(S: np.ndarray, conversion: str) -> np.ndarray:
    """The distances max(S) - S, or 1/S (1000 where S is below 0.001); 0 on the diagonal."""
    D: np.ndarray = S.max() - S if conversion == "bound" else 1.0 / np.maximum(S, LEAST_SIMILARITY)
    np.fill_diagonal(D, 0.0)
    return D
