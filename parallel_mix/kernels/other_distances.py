"""Distances that somebody else's function gives, and those made of similarities."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.errors import InputError, UserFunctionError
from parallel_mix.kernels.density import Array

CHECKED = 16
"""Pairs of a tile that are asked for both ways where symmetry was promised."""
SAME = 1e-9
LEAST_SIMILARITY = 1e-3
"""Smaller similarities count as this before they are inverted."""


@dataclass(frozen=True)
class CallableMetric:
    """module:function, called with two rows."""

    name: str
    symmetric: bool
    function: Callable[[Array, Array], Any] | None = None  # instead of one that is imported by its name
    block = 1
    frees_lock = False

    def prepare(self, X: Array) -> Array:
        """Nothing is to be done to them."""
        return X

    def tile(self, new: Array, rows: slice, old: Array, columns: slice, own: bool) -> Array:
        """Distances between some of the new rows and some of the old; `own`: the new are the old."""
        function = self.function or imported(self.name)
        half = own and self.symmetric and rows == columns
        D = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for i, a in enumerate(range(rows.start, rows.stop)):
            for j, b in enumerate(range(columns.start, columns.stop)):
                if not half or i <= j:
                    D[i, j] = self._value(function, new[a], old[b], a, b)
        if self.symmetric:
            self._check(function, new, rows, old, columns, D)
        return np.triu(D) + np.triu(D, 1).T if half else D

    def _value(self, function: Callable[[Array, Array], Any], x: Array, y: Array, i: int, j: int) -> float:
        try:
            value = function(x, y)
        except Exception as error:
            error.add_note(f"{self.name} was called with rows {i + 1} and {j + 1}.")
            raise
        if not isinstance(value, int | float | np.number) or isinstance(value, bool | complex | np.complexfloating):
            raise UserFunctionError(f"{self.name} returned {value!r} for rows {i + 1} and {j + 1}: a number is needed.")
        if not np.isfinite(value):
            raise UserFunctionError(f"{self.name} returned {value} for rows {i + 1} and {j + 1}.")
        return float(value)

    def _check(self, function: Any, new: Array, rows: slice, old: Array, columns: slice, D: Array) -> None:
        """Ask for some pairs of a tile the other way round."""
        random = np.random.default_rng([rows.start, columns.start])
        for i, j in zip(*(random.integers(0, size, CHECKED) for size in D.shape), strict=True):
            a, b = rows.start + int(i), columns.start + int(j)
            if a > b:
                continue
            back = self._value(function, old[b], new[a], b, a)
            if abs(back - D[i, j]) > SAME * max(abs(back), abs(D[i, j])):
                raise UserFunctionError(
                    f"{self.name} was promised to be symmetric, but gives {D[i, j]:.9g} for rows {a + 1} and {b + 1} "
                    f"and {back:.9g} for rows {b + 1} and {a + 1}: leave out --symmetric."
                )


def imported(name: str) -> Callable[[Array, Array], Any]:
    """The function that `module:function` names; the folder one works in is looked in, too."""
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise InputError(f"The metric {name} cannot be imported: {type(error).__name__}: {error}.") from error
    function = getattr(found, attribute, None)
    if not callable(function):
        raise InputError(f"The metric {name} cannot be imported: {module} has no function {attribute!r}.")
    return function  # type: ignore[no-any-return]


@dataclass(frozen=True)
class FromSimilarity:
    """bound - S or 1/S, of the entries of a square matrix; 0 on the diagonal.

    The matrix may be anything that is sliced as an array is.
    """

    name: str  # bound or inverse
    bound: float
    symmetrize: bool
    symmetric = False  # nothing is gained by a half: reading is all the work
    block = 1
    frees_lock = True

    def prepare(self, S: Any) -> Any:
        """Nothing is to be done to it."""
        return S

    def tile(self, S: Any, rows: slice, _: Any, columns: slice, own: bool) -> Array:
        """The entries of some rows and columns as distances."""
        D = self._distance(S[rows, columns])
        if self.symmetrize:
            D = (D + self._distance(S[columns, rows]).T) / 2.0
        on_it = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
        D[on_it - rows.start, on_it - columns.start] = 0.0
        return D

    def _distance(self, S: Array) -> Array:
        return self.bound - S if self.name == "bound" else 1.0 / np.maximum(S, LEAST_SIMILARITY)


class Known(Protocol):
    """What one pass over a matrix tells."""

    @property
    def lowest(self) -> float: ...

    @property
    def lowest_at(self) -> tuple[int, int]: ...

    @property
    def highest(self) -> float: ...


def from_similarity(name: str, known: Known, symmetrize: bool) -> FromSimilarity:
    """The conversion of a matrix of which so much is known; the bound is its largest entry."""
    if name == "inverse" and known.lowest < 0:
        i, j = known.lowest_at
        raise InputError(f"The similarity of rows {i + 1} and {j + 1} is {known.lowest:g}: below 0 it has no inverse.")
    return FromSimilarity(name, known.highest, symmetrize)
