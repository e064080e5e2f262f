"""Tables in text: with or without a header; separated by comma, semicolon, tab or blanks; text columns by name."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.store.columns import Choice, choose, column_number, counts_rows, is_unnamed
from parallel_mix.store.tables import (
    MISSING,
    Array,
    Selection,
    Table,
    category_code,
    without_counting_columns,
)

SEPARATORS = ",;\t "


def read_csv(path: Path, selection: Selection) -> Table:
    """Read a csv file: numbers fast, anything else cell by cell so that the error can name the cell."""
    lines = lines_of(path)
    separator = separator_of(lines[0])
    first = cells_of(lines[0], separator)
    header = first if _is_header(first) else None
    body = lines[1:] if header else lines
    names = header or [str(k + 1) for k in range(len(first))]
    chosen = {
        role: column_number(name, names, path)
        for role, name in (("w", selection.weights), ("y", selection.labels), ("rows", selection.row_names))
        if name is not None
    }
    if not body:
        raise InputError(f"{path} has a header and no rows.")
    categories = selection.kind == "categories"
    index = [k for k, name in enumerate(names) if header and is_unnamed(name)]
    choice = choose(names, header is not None, selection, chosen.values(), path, index)
    if choice.ignored and not choice.index and "rows" not in chosen:
        counting = (k for k in choice.ignored if counts_rows(_fast(body, separator, [k], len(names))))
        choice = replace(choice, index=list(counting)[:1])
    if not chosen and not categories:
        numbers = _fast(body, separator, choice.data, len(names))
        if numbers is not None:
            table = Table(numbers, path, rows=_texts_of(body, separator, choice.index[:1]))
            return without_counting_columns(table, choice, names, header is not None, selection)
    number = category_code if categories else float
    table = _by_cell(path, body, separator, names, chosen, choice, number)
    return without_counting_columns(table, choice, names, header is not None, selection)


def _texts_of(body: list[str], separator: str, columns: list[int]) -> list[str] | None:
    """The cells of a column as they are written; None where there is no column, or nothing in it."""
    texts = [cells_of(line, separator)[columns[0]] for line in body] if columns else []
    return texts if any(texts) else None


def lines_of(path: Path, plain: bool = False) -> list[str]:
    """The lines of a file without blank ones and remarks (#); with `plain`, all lines as they are."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 (byte {error.start}): save it as UTF-8.") from error
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    if not plain:
        lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not any(lines):
        raise InputError(f"{path} is empty.")
    return lines


def separator_of(line: str) -> str:
    """The separator that parts a line into the most cells."""
    return max(SEPARATORS, key=lambda s: (line.count(s) if s != " " else len(line.split()) - 1, -SEPARATORS.index(s)))


def cells_of(line: str, separator: str) -> list[str]:
    """The cells of a line, without blanks around them."""
    if separator == " ":
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_header(cells: list[str]) -> bool:
    """A first line without a single number is a header; a lone text among numbers is not.

    One of an empty cell, 0, 1, 2, ... is that of a table of pandas with an index, and columns without names.
    """
    if len(cells) > 1 and not cells[0] and cells[1:] == [str(k) for k in range(len(cells) - 1)]:
        return True
    return not any(_is_number(cell) for cell in cells)


def _fast(body: list[str], separator: str, kept: list[int], width: int) -> Array | None:
    """The columns `kept` as numbers by NumPy's own reader; None where it cannot read them."""
    try:
        numbers = np.loadtxt(
            io.StringIO("\n".join(body)),
            delimiter=None if separator == " " else separator,
            ndmin=2,
            comments=None,
            usecols=None if kept == list(range(width)) else kept,  # in the order asked for
        )
    except ValueError:
        return None
    return numbers if numbers.shape[1] == len(kept) else None


def _by_cell(
    path: Path,
    body: list[str],
    separator: str,
    names: list[str],
    chosen: dict[str, int],
    choice: Choice,
    number: Callable[[str], float],
) -> Table:
    table = [cells_of(line, separator) for line in body]
    for k, cells in enumerate(table):
        if len(cells) != len(names):
            raise InputError(f"Row {k + 1} of {path} has {len(cells)} values, {len(names)} were expected.")
    numeric = [*choice.data, *(chosen[role] for role in ("w",) if role in chosen)]
    numbers = np.empty((len(table), len(names)))
    for k, cells in enumerate(table):
        for j in numeric:
            cell = cells[j]
            try:
                numbers[k, j] = np.nan if cell.lower() in MISSING else number(cell)
            except ValueError:
                if separator != "," and _is_number(cell.replace(",", ".")):
                    raise InputError(
                        f"Row {k + 1}, column {names[j]!r} of {path} is {cell!r}: write decimals with a point."
                    ) from None
                raise InputError(
                    f"Row {k + 1}, column {names[j]!r} of {path} is {cell!r}, which is no number. If the column holds "
                    "names or classes, say so: --row-names or --labels; --columns chooses others."
                ) from None
    fields: dict[str, Any] = {}
    if "w" in chosen:
        fields["w"] = numbers[:, chosen["w"]]
    if "y" in chosen:
        fields["y"] = np.array([cells[chosen["y"]] for cells in table])
    naming = [chosen["rows"]] if "rows" in chosen else choice.index[:1]
    if naming:
        texts = [cells[naming[0]] for cells in table]
        fields["rows"] = texts if any(texts) else None
    return Table(numbers[:, choice.data], path, **fields)
