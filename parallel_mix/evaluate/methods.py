"""Classifiers by name: those that families register, or module:class of one's own."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.models.core.methods import ANYTHING, Method
from parallel_mix.registry import FAMILIES


def known_methods() -> dict[str, Method]:
    """The classifiers of all families by name."""
    modules = [import_module(family.classifiers) for family in FAMILIES.values() if family.classifiers]
    return {method.name: method for module in modules for method in module.METHODS}


def method_named(name: str) -> Method:
    """The classifier of this name, or of one's own as module:class."""
    known = known_methods()
    if name in known:
        return known[name]
    if ":" in name:
        method = Method(name, name, takes=ANYTHING, title=name.partition(":")[2])
        made = _instance(method)
        method = replace(method, takes=getattr(made, "input", getattr(made, "takes", ANYTHING)))
        missing = [what for what in ("fit", "predict", "get_params", "set_params") if not hasattr(made, what)]
        if missing:
            raise InputError(f"{name} is no scikit-learn classifier: it has no {missing[0]}().")
        return method
    near = difflib.get_close_matches(name, known, 1)
    guess = f" Perhaps {near[0]}?" if near else ""
    raise InputError(f"There is no classifier {name!r}: use some of {', '.join(known)}, or module:Class.{guess}")


def with_grid(method: Method, grid: Mapping[str, Any]) -> Method:
    """The classifier with another grid; single values are fixed parameters."""
    valid = _instance(method).get_params()
    for key in grid:
        if key not in valid:
            raise InputError(f"{method.name} has no parameter {key!r} (in the grid). Valid ones: {', '.join(valid)}.")
    several = {key: tuple(values) for key, values in grid.items() if isinstance(values, list | tuple)}
    empty = [key for key, values in several.items() if not values]
    if empty:
        raise InputError(f"The grid of {method.name} has no value for {empty[0]!r}.")
    single = {key: value for key, value in grid.items() if key not in several}
    kept = {key: several.get(key, values) for key, values in method.grid.items() if key not in single}
    fixed = {key: value for key, value in method.fixed.items() if key not in grid}
    changed = replace(method, grid=kept | several, fixed=fixed | single)
    for setting in changed.settings:
        made = changed.make().set_params(**changed.fixed, **setting)
        try:
            if hasattr(made, "check_parameters"):
                made.check_parameters()
        except ValueError as error:
            raise InputError(f"The grid of {method.name}: {error}") from error
    return changed


def check_kinds(methods: Sequence[Method], kind: str) -> None:
    """Refuse classifiers that cannot take rows of this kind."""
    for method in methods:
        if method.takes != ANYTHING and (method.takes == "vectors") != (kind == "vectors"):
            hint = " Distances of vectors are made by `parallel-mix distances`." if kind == "vectors" else ""
            raise InputError(
                f"{method.name} takes {method.takes}, and the input holds {kind} (--kind says what it is).{hint}"
            )


def _instance(method: Method) -> Any:
    try:
        return method.make()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{method.where} cannot be made: {type(error).__name__}: {error}.") from error
