"""Reading the user's tables: csv, npy, npz, parquet and HDF5, each checked before any work begins."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parallel_mix.errors import InputError
from parallel_mix.store.columns import Choice, choose, without_counting
from parallel_mix.store.damage import reading

if TYPE_CHECKING:
    from parallel_mix.store.stored_matrix import Surveyor

Array = NDArray[np.float64]

FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "csv",
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
}
HDF5_ENDINGS = tuple(ending for ending, kind in FORMATS.items() if kind == "hdf5")
TEXT_ENDINGS = tuple(ending for ending, kind in FORMATS.items() if kind == "csv")
ROWS_A_CHECK = 65_536
"""Rows that go into a digest at a time."""
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
"""The cells, in small letters, that stand for a missing value."""
MISSING_CATEGORY = -(2.0**52)
"""The number that stands for a missing category."""


@dataclass
class Table:
    """Rows of numbers with what belongs to them: weights, classes, names; or signatures, texts or a matrix."""

    X: Array
    path: Path
    w: Array | None = None
    y: NDArray[Any] | None = None
    rows: list[str] | None = None
    columns: list[str] | None = None
    dataset: str | None = None  # where X and w are in an HDF5 file
    weights_dataset: str | None = None
    stamp: tuple[int, int] | None = None  # size and time of the last change of that file when it was read
    offsets: NDArray[Any] | None = None  # where X and w are the points of signatures: where each begins
    texts: list[str] | None = None  # what is compared instead of rows of numbers; X has no columns then
    matrix: Any = None  # a matrix instead of rows of numbers: an array, or a `StoredMatrix`; X has no columns then
    survey: Any = None  # the `Survey` of the matrix
    stored: Any = None  # the source of rows that stay in their file and are read in parts; X has none of them then
    notes: tuple[str, ...] = ()  # sentences to be said of the columns

    @property
    def count(self) -> int:
        """How many rows, or signatures, there are."""
        if self.stored is not None:
            return int(self.stored.shape[0])
        return len(self.X) if self.offsets is None else len(self.offsets) - 1

    def parts(self) -> Iterator[tuple[int, Array]]:
        """The rows of numbers, part by part: the number of the first one, and the rows."""
        rows = len(self.X) if self.stored is None else self.count
        for start in range(0, rows, ROWS_A_CHECK):
            stop = min(start + ROWS_A_CHECK, rows)
            yield start, self.X[start:stop] if self.stored is None else self.stored.rows(start, stop)

    def parts_of_weights(self) -> Iterator[Array]:
        """The weights, part by part; none where all rows count alike."""
        if self.stored is None:
            yield from [] if self.w is None else [self.w]
        elif self.weights_dataset is not None:
            for start in range(0, self.count, ROWS_A_CHECK):
                yield self.stored.weights(start, min(start + ROWS_A_CHECK, self.count))


@dataclass(frozen=True)
class Selection:
    """What of a file is asked for: names of datasets (HDF5, npz) or of columns (csv, parquet)."""

    dataset: str = "X"
    weights: str | None = None
    labels: str | None = None
    row_names: str | None = None
    kind: str = "numbers"  # or categories (any text, missing ones too), signatures, texts, matrix (square), rectangle
    columns: tuple[str, ...] | None = None  # only these columns of numbers, by name, number or range
    drop: tuple[str, ...] | None = None  # all but these
    model_columns: tuple[str, ...] | None = None  # those of a model, in its order, where the file has names

    width: int | None = None  # how many columns a model without names has
    square: bool = False  # rows and columns are the same things, so that none is an index

    @property
    def things(self) -> str:
        """The word for one of the things in the file: row, signature or text."""
        return {"signatures": "signature", "texts": "text"}.get(self.kind, "row")


def read_table(
    path: Path,
    selection: Selection | None = None,
    least_rows: int = 2,
    surveyor: Surveyor | None = None,
    *,
    leave_from: int | None = None,
) -> Table:
    """Read a table and check it; `surveyor` makes the survey of a matrix that stays in its file.

    From `leave_from` rows on those in HDF5 stay in their file, too, where all columns are used.
    """
    table = _read(path, selection or Selection(), least_rows, surveyor, leave_from)
    for values, what in ((table.y, "classes"), (table.rows, "row names")):
        if values is not None and np.shape(values) != (table.count,):
            shape = " x ".join(map(str, np.shape(values)))
            raise InputError(f"{path} has {table.count} rows, but {shape} {what}: one for each row is needed.")
        if values is not None and any("\0" in str(value) for value in values):
            raise InputError(f"The {what} of {path} have characters that are no text (zeros).")
    return table


def _read(
    path: Path, selection: Selection, least_rows: int, surveyor: Surveyor | None, leave_from: int | None
) -> Table:
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give a file of the format {', '.join(sorted(FORMATS))}.")
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"{path} has an unknown format {path.suffix or '(no ending)'!r}: use one of {', '.join(sorted(FORMATS))}."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} cannot be read: no permission.")
    table: Table
    if selection.kind == "signatures":
        from parallel_mix.store.signature_files import read_signatures

        with reading(path):
            return read_signatures(path, selection)
    if selection.kind in ("matrix", "rectangle"):
        from parallel_mix.store.stored_matrix import read_matrix

        table = read_matrix(path, selection, least_rows, surveyor)
        check_count(table.count, least_rows, path)
        return table
    if selection.kind == "texts":
        from parallel_mix.store.text_files import read_texts

        with reading(path):
            table = read_texts(path, selection, kind)
        check_count(table.count, least_rows, path)
        return table
    if (
        leave_from is not None
        and kind == "hdf5"
        and not (selection.columns or selection.drop or selection.model_columns)
    ):
        from parallel_mix.store.hdf5_tables import leave_in_file

        if (left := leave_in_file(path, selection, leave_from)) is not None:
            check_parts(left, least_rows)
            return left
    with reading(path):
        table = _reader(kind)(path, selection)
    if kind not in ("csv", "parquet"):
        table = only_chosen(table, selection)
    if selection.kind == "categories":
        table.X = np.where(np.isnan(table.X), MISSING_CATEGORY, table.X)
    check_table(table, least_rows)
    return table


def only_chosen(table: Table, selection: Selection) -> Table:
    """The table with the columns that were asked for alone, where it was read whole."""
    X = table.X[:, None] if table.X.ndim == 1 else table.X
    if X.ndim != 2 or not (selection.columns or selection.drop or selection.model_columns):
        return table
    names = table.columns or [str(k + 1) for k in range(X.shape[1])]
    choice = choose(names, table.columns is not None, selection, (), table.path)
    if choice.data == list(range(X.shape[1])):
        return table
    X, columns = np.ascontiguousarray(X[:, choice.data]), [names[k] for k in choice.data]
    return replace(table, X=X, columns=columns, dataset=None, notes=choice.notes)


def as_names(numbers: Array) -> list[str]:
    """Whole numbers as texts, to be names of rows."""
    return [str(number) for number in numbers.astype(np.int64).tolist()]


def without_counting_columns(
    table: Table, choice: Choice, names: list[str], named: bool, selection: Selection
) -> Table:
    """The table without columns that only count its rows, and with the names of the others."""
    final = choice if selection.square else without_counting(choice, table.X, names, selection, table.path)
    if len(final.data) < len(choice.data):
        if table.rows is None:
            place = choice.data.index(final.index[len(choice.index)])
            table.rows = as_names(table.X[:, place])
        table.X = table.X[:, [choice.data.index(k) for k in final.data]]
    table.X = np.ascontiguousarray(table.X)
    table.columns = [names[k] for k in final.data] if named or final.data != list(range(len(names))) else None
    table.notes = final.notes
    return table


def _reader(kind: str) -> Any:
    if kind == "csv":
        from parallel_mix.store.csv_tables import read_csv

        return read_csv
    if kind == "hdf5":
        from parallel_mix.store.hdf5_tables import read_hdf5

        return read_hdf5
    from parallel_mix.store import array_files

    return {"npy": array_files.read_npy, "npz": array_files.read_npz, "parquet": array_files.read_parquet}[kind]


def category_code(cell: str) -> float:
    """The number that a cell holds, or one made of its text, the same in every file; NaN where the cell is empty."""
    if cell.strip().lower() in MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        return float(int.from_bytes(hashlib.sha256(cell.encode()).digest()[:6], "big"))


def as_categories(values: Any) -> Array:
    """The texts of an array as numbers (`category_code`)."""
    array = np.asarray(values)
    texts = [
        value.decode() if isinstance(value, bytes) else "" if value is None else str(value) for value in array.flat
    ]
    return np.array([category_code(text) for text in texts]).reshape(array.shape)


def as_numbers(values: Any, what: str, path: Path, kind: str = "numbers") -> Array:
    """The values as float64 (categories as codes); refused in a sentence where they are no numbers."""
    array = np.asarray(values)
    if kind == "categories" and array.dtype.kind in "OUST":
        return as_categories(array)
    if array.dtype == object or array.dtype.kind not in "biuf":
        raise InputError(f"{what} of {path} holds {array.dtype} values: numbers are needed.")
    return np.asarray(array, dtype=np.float64, order="C")


def check_table(table: Table, least_rows: int = 2) -> None:
    """Refuse a table without rows and columns of finite numbers, or with weights that cannot be used."""
    X, path = table.X, table.path
    if X.ndim == 1:
        table.X = X = X[:, None]
    if X.ndim != 2:
        raise InputError(f"{path} holds a {X.ndim}-dimensional array of shape {X.shape}: rows and columns are needed.")
    n, d = X.shape
    check_count(n, least_rows, path)
    if d < 1:
        raise InputError(f"{path} has no columns of numbers.")
    check_finite(X, path, table.columns)
    if table.w is not None:
        check_weights(table.w, n, path)


def check_parts(table: Table, least_rows: int = 2) -> None:
    """Refuse a table that stays in its file as `check_table` would."""
    check_count(table.count, least_rows, table.path)
    for start, rows in table.parts():
        check_finite(rows, table.path, table.columns, first_row=start)
    some = False
    for number, weights in enumerate(table.parts_of_weights()):
        check_some_weights(weights, table.path, first_row=number * ROWS_A_CHECK)
        some = some or bool((weights > 0).any())
    if table.weights_dataset is not None and not some:
        raise InputError(f"The weights of {table.path} are all zero.")


def check_count(n: int, least: int, path: Path) -> None:
    """Refuse a file with fewer rows than needed."""
    if n < least:
        raise InputError(f"{path} has {n} row{'s' if n != 1 else ''}: at least {least} are needed.")


def check_finite(X: Array, path: Path | str, columns: list[str] | None = None, first_row: int = 0) -> None:
    """Refuse numbers that are NaN or infinite; the first is named by row and column."""
    bad = ~np.isfinite(X)
    count = int(bad.sum())
    if count:
        row, column = (int(k) for k in np.argwhere(bad)[0])
        name = f"{columns[column]!r}" if columns else f"{column + 1}"
        some = "value that is" if count == 1 else "values that are"
        raise InputError(
            f"{path} has {count:,} {some} NaN or infinite, the first in row {first_row + row + 1}, column {name}. "
            "Remove or fill them first."
        )


def check_weights(w: Array, n: int, path: Path | str) -> None:
    """Refuse weights that are not n finite numbers of 0 or more, or are all 0."""
    if w.shape != (n,):
        raise InputError(f"The weights of {path} have shape {w.shape}: one for each of the {n} rows is needed.")
    check_some_weights(w, path)
    if not (w > 0).any():
        raise InputError(f"The weights of {path} are all zero.")


def check_some_weights(w: Array, path: Path | str, first_row: int = 0) -> None:
    """Refuse weights that are not finite numbers of 0 or more."""
    if not np.isfinite(w).all():
        row = first_row + int(np.flatnonzero(~np.isfinite(w))[0]) + 1
        raise InputError(f"The weights of {path} are not all finite numbers, first in row {row}.")
    if (w < 0).any():
        row = int(np.flatnonzero(w < 0)[0])
        raise InputError(f"The weights of {path} must not be negative; row {first_row + row + 1} has {w[row]:g}.")


def digest(table: Table) -> str:
    """The digest of a table's numbers, which does not depend on the file that they came in."""
    sha = hashlib.sha256(repr(table.X.shape if table.stored is None else table.stored.shape).encode())
    if table.survey is not None:
        sha.update(table.survey.digest.encode())
    for text in table.texts or []:
        sha.update(f"{len(text)}:{text}".encode())
    for _, rows in table.parts():
        sha.update(np.ascontiguousarray(rows, dtype="<f8").tobytes())
    for weights in table.parts_of_weights():
        sha.update(np.ascontiguousarray(weights, dtype="<f8").tobytes())
    if table.offsets is not None:
        sha.update(np.ascontiguousarray(table.offsets, dtype="<i8").tobytes())
    return sha.hexdigest()
