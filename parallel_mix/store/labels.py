"""Labels, written as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

import numpy as np

ROWS_A_PART = 65_536
"""Rows that are made text of at a time."""


def labels_as_csv(names: list[str] | None, columns: dict[str, np.ndarray]) -> Iterator[str]:
    """The parts of a csv table with a header: the row's name (or its number, from 0) and its labels."""
    n = len(next(iter(columns.values())))
    rows = names if names is not None else range(n)
    yield _lines([["row", *columns]])
    for a in range(0, n, ROWS_A_PART):
        some = [column[a : a + ROWS_A_PART].tolist() for column in columns.values()]
        yield _lines(zip(rows[a : a + ROWS_A_PART], *some, strict=True))


def _lines(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
