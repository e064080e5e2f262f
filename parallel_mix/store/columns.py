"""Which columns of a table are data: those asked for, those of a model, or all but an index, classes and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parallel_mix.errors import InputError, UnknownNameError
from parallel_mix.progress import plural

if TYPE_CHECKING:
    from parallel_mix.store.tables import Array, Selection

SHOWN = 12
"""How many names a sentence lists."""
LEAST_TO_COUNT = 5
"""Fewer rows may well rise by one without counting anything."""
NO_NAME = re.compile(r"\s*|Unnamed: \d+(\.\d+)*|__index_level_\d+__")
"""The header of a column that a program wrote without a name."""


@dataclass(frozen=True)
class Choice:
    """Columns by their places in the file, and the sentences to be said of the choice."""

    data: list[int]
    index: list[int]  # the first holds the names of the rows
    notes: tuple[str, ...] = ()
    ignored: tuple[int, ...] = ()  # those that a model does not know


def listed(names: Iterable[str], most: int = SHOWN) -> str:
    """The first few of some names."""
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def column_number(name: str, names: Sequence[str], path: Path) -> int:
    """The place of the column of this name, or of the one that a number, counted from 1, stands for."""
    if name in names:
        if list(names).count(name) > 1:
            raise InputError(f"Two columns of {path} are called {name!r}: choose one by its number, counted from 1.")
        return list(names).index(name)
    if name.isascii() and name.isdigit() and 1 <= int(name) <= len(names):
        return int(name) - 1
    counted = name.isascii() and name.isdigit()
    what = f"{plural(len(names), 'column')}, counted from 1" if counted else listed(names)
    raise UnknownNameError(f"{path} has no column {name!r}; it has {what}.", name)


def columns_of_words(words: Sequence[str], names: Sequence[str], path: Path, reserved: Iterable[int] = ()) -> list[int]:
    """The places of the columns that words stand for: a name, a number from 1, or a range of either (3..15).

    Ranges leave out what is `reserved` for something else.
    """
    columns: list[int] = []
    for word in words:
        first, dots, last = word.partition("..")
        if word in names or not dots:
            columns.append(column_number(word, names, path))
            continue
        low, high = (column_number(end, names, path) for end in (first, last))
        if low > high:
            raise InputError(f"{word} of {path} runs backwards: give the column that comes first in the table first.")
        columns += [k for k in range(low, high + 1) if k not in reserved]
    if len(set(columns)) < len(columns):
        twice = next(k for n, k in enumerate(columns) if k in columns[:n])
        raise InputError(f"Column {names[twice]!r} of {path} is asked for twice.")
    return columns


def choose(
    names: Sequence[str],
    named: bool,
    selection: Selection,
    reserved: Iterable[int],
    path: Path,
    index: Sequence[int] = (),
) -> Choice:
    """Choose the columns of data; `named`: the file has names for them; `reserved` are classes, weights, row names.

    `index` are columns that the file itself marks as an index, or gives no name.
    """
    reserved = set(reserved)
    if selection.columns:
        columns = columns_of_words(selection.columns, names, path, reserved)
        return Choice(_without_dropped(columns, names, selection, path), [])
    counted = all(name.isdigit() for name in selection.model_columns or ())
    wanted = selection.model_columns or ()
    if (
        wanted and not selection.drop and (named or counted) and len(set(wanted)) == len(wanted)
    ):  # names that are there twice say nothing
        return _of_model(names, selection, reserved, path, index)
    index = [k for k in index if k not in reserved]
    data = [k for k in range(len(names)) if k not in reserved and k not in index]
    if not data:
        data, index = index, []
    notes = _notes_on(names, index, path, "", selection.row_names is not None)
    return Choice(_without_dropped(data, names, selection, path), index, notes)


def _of_model(
    names: Sequence[str], selection: Selection, reserved: set[int], path: Path, index: Sequence[int]
) -> Choice:
    wanted = selection.model_columns or ()
    missing = [name for name in wanted if name not in names]
    if missing:
        raise InputError(
            f"{path} lacks {plural(len(missing), 'column')} of the {len(wanted)} that the model was made from: "
            f"{listed(missing)}. It has {listed(names)}."
        )
    data = [column_number(name, names, path) for name in wanted]
    more = tuple(k for k in range(len(names)) if k not in data and k not in reserved and k not in index)
    unknown = listed(names[k] for k in more)
    notes = (f"{path}: ignored, as the model does not know them: {unknown}.",) if more else ()
    return Choice(data, [k for k in index if k not in reserved and k not in data], notes, more)


def _without_dropped(data: list[int], names: Sequence[str], selection: Selection, path: Path) -> list[int]:
    dropped = columns_of_words(selection.drop or (), names, path)
    left = [k for k in data if k not in dropped]
    if not left:
        raise InputError(f"No column of {path} is left: --columns and --drop choose none that is data.")
    return left


def without_counting(choice: Choice, X: Array, names: Sequence[str], selection: Selection, path: Path) -> Choice:
    """The choice without columns that do nothing but count the rows up by one; X (n, d) are the columns chosen."""
    if selection.columns or selection.model_columns or selection.width == X.shape[1]:
        return choice
    index = [k for k, column in zip(choice.data, X.T, strict=True) if counts_rows(column)]
    data = [k for k in choice.data if k not in index]
    if not index or not data:
        return choice
    notes = _notes_on(names, index, path, "does nothing but count the rows", bool(choice.index or selection.row_names))
    return Choice(data, [*choice.index, *index], (*choice.notes, *notes))


def counts_rows(column: Array | None) -> bool:
    """Whether a column of whole numbers rises by one from row to row, and so is no data."""
    if column is None or len(column) < LEAST_TO_COUNT:
        return False
    column = column.ravel()
    return bool(column[0] == np.round(column[0]) and (column[1:] - column[:-1] == 1.0).all())


def _notes_on(
    names: Sequence[str], index: Sequence[int], path: Path, why: str, second: bool = False
) -> tuple[str, ...]:
    """A sentence on each column that is no data; the first one gives the names of the rows."""
    notes = []
    for number, k in enumerate(index):
        name = f"column {k + 1}" if NO_NAME.fullmatch(names[k]) or names[k] == str(k + 1) else f"column {names[k]!r}"
        what = "is left out" if number or second else "is taken as row names"
        reason = why or ("has no name" if is_unnamed(names[k]) else "is the index of the table")
        notes.append(f"{path}: {name} {reason} and {what}; --columns brings it back.")
    return tuple(notes)


def is_unnamed(name: str) -> bool:
    """Whether the header of a column is one that a program wrote in place of a name."""
    return NO_NAME.fullmatch(name) is not None


def used(columns: Sequence[str] | None, count: int) -> str:
    """A line on the columns that are data, such as: columns used (2): height, weight."""
    if columns is None:
        return f"columns used: all {count}, which have no names" if count > 1 else "columns used: the only one"
    return f"columns used ({count}): {listed(columns, 8)}"
