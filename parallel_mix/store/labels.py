"""Labels, written as text."""

from __future__ import annotations

import csv
import io

import numpy as np


def labels_as_csv(names: list[str] | None, columns: dict[str, np.ndarray]) -> str:
    """A csv table with a header: the row's name (or its number, from 0) and its labels."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", *columns])
    n = len(next(iter(columns.values())))
    rows = names if names is not None else range(n)
    writer.writerows(zip(rows, *(column.tolist() for column in columns.values()), strict=True))
    return text.getvalue()
