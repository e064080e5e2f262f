"""A classifier that cross-validation can compare: its name, where it is, and the settings it is chosen among."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parallel_mix.errors import InputError

Setting = dict[str, Any]
ANYTHING, EITHER = "anything", "distances or similarities"
"""What classifiers take that are content with rows as they are, or with a matrix of either kind: they learn which."""


@dataclass(frozen=True)
class Method:
    """A classifier to compare: where its class is, its fixed parameters and grid, its kind of input, its title."""

    name: str
    where: str  # module:class
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    takes: str = "similarities"  # distances, vectors, EITHER, or ANYTHING
    title: str = ""
    prototype: Any = None  # an estimator, instead of where it is

    @property
    def settings(self) -> list[Setting]:
        """All combinations of the grid, the last parameter changing fastest; one empty setting without a grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def make(self) -> Any:
        """A new estimator with its fixed parameters."""
        if self.prototype is not None:
            from sklearn.base import clone

            return clone(self.prototype)
        return imported_class(self.where)(**self.fixed)


def method_of(name: str, title: str, where: str, takes: str = "similarities", **parameters: Any) -> Method:
    """A classifier of ours: of `parameters` the tuples are its grid, and single values its fixed parameters."""
    grid = {key: value for key, value in parameters.items() if isinstance(value, tuple)}
    fixed = {key: value for key, value in parameters.items() if key not in grid}
    return Method(name, where, fixed, grid, takes, title)


def imported_class(where: str) -> Any:
    """The class that `module:class` names; the folder one works in is looked in, too."""
    module, _, name = where.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        named = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:
        raise InputError(f"The classifier {where} cannot be imported: {type(error).__name__}: {error}.") from error
    if not callable(named):
        raise InputError(f"The classifier {where} cannot be imported: {module} has no class {name!r}.")
    return named
