"""Distances that somebody else's function gives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parallel_mix.errors import InputError, UsersFaultError
from parallel_mix.kernels.density.kernel_sums import Array

Function = Callable[[Any, Any], float]

CHECKED = 16
"""Where symmetry was promised, one pair of so many is asked for both ways, and at most so many pairs of a tile."""
SAME = 1e-9
"""The relative difference up to which two distances count as equal."""


@dataclass(frozen=True)
class CallableMetric:
    """A function of the user, module:function, that is called with two rows and returns their distance."""

    name: str
    symmetric: bool
    function: Function | None = None  # instead of one that is imported by its name
    block = 1
    frees_lock = False

    def prepare(self, X: Array) -> Array:
        """The rows as they are; a function must not change them."""
        X = X.view()
        X.flags.writeable = False
        return X

    def tile(self, new: Array, rows: slice, old: Array, columns: slice, own: bool) -> Array:
        """Distances between some of the new rows and some of the old; `own`: the new are the old."""
        function = self.function or imported(self.name)
        mirrored = own and self.symmetric
        D = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for i, a in enumerate(range(rows.start, rows.stop)):
            for j, b in enumerate(range(columns.start, columns.stop)):
                if mirrored and rows == columns and a > b:
                    D[i, j] = D[j, i]
                elif mirrored and a > b:  # as it is called where all tiles on and above the diagonal are taken
                    D[i, j] = self._value(function, old[b], new[a], b, a)
                else:
                    D[i, j] = self._value(function, new[a], old[b], a, b)
        if mirrored:
            self._check(function, new, rows, columns, D)
        return D

    def _value(self, function: Function, x: Array, y: Array, i: int, j: int) -> float:
        try:
            value = function(x, y)
        except BaseException as error:
            error.add_note(f"{self.name} was called with rows {i + 1} and {j + 1}.")
            raise
        if not isinstance(value, int | float | np.number) or isinstance(value, bool | complex | np.complexfloating):
            raise UsersFaultError(f"{self.name} returned {value!r} for rows {i + 1} and {j + 1}: a number is needed.")
        try:
            value = float(value)
        except OverflowError:
            value = np.inf
        if not np.isfinite(value):
            raise UsersFaultError(f"{self.name} returned {value} for rows {i + 1} and {j + 1}.")
        return value

    def _check(self, function: Function, X: Array, rows: slice, columns: slice, D: Array) -> None:
        """Ask the function for some pairs of a tile the other way round; refuse it where it is not symmetric."""
        random = np.random.default_rng([rows.start, columns.start])
        count = min(CHECKED, int(D.size / CHECKED + random.random()))
        for i, j in zip(*(random.integers(0, size, count) for size in D.shape), strict=True):
            a, b = sorted((rows.start + int(i), columns.start + int(j)))
            back = self._value(function, X[b], X[a], b, a)
            if abs(back - D[i, j]) > SAME * max(abs(back), abs(D[i, j])):
                raise UsersFaultError(
                    f"{self.name} was promised to be symmetric, but gives {D[i, j]:.9g} for rows {a + 1} and {b + 1} "
                    f"and {back:.9g} for rows {b + 1} and {a + 1}: leave out --symmetric."
                )


def imported(name: str) -> Function:
    """The function that `module:function` names; the folder one works in is looked in, too."""
    module, _, attribute = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        imported_module = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(f"The metric {name} cannot be imported: {type(error).__name__}: {error}.") from error
    function = getattr(imported_module, attribute, None)
    if not callable(function):
        raise InputError(f"The metric {name} cannot be imported: {module} has no function {attribute!r}.")
    return function  # type: ignore[no-any-return]
