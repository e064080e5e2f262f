"""Texts to compare: lines of a .txt file, a column of csv or parquet, a one-dimensional array of npy, npz or HDF5."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from parallel_mix.errors import InputError, UnknownNameError
from parallel_mix.store.array_files import load, member, only_array, parquet_table
from parallel_mix.store.columns import column_number
from parallel_mix.store.csv_tables import lines_of, separator_of
from parallel_mix.store.hdf5_tables import listing, opened, read_names_beside, texts_in
from parallel_mix.store.tables import Selection, Table

Fields = dict[str, Any]


def read_texts(path: Path, selection: Selection, format: str) -> Table:
    """Read texts with the classes and names that belong to them, from a file of this format."""
    read: dict[str, Callable[[Path, Selection], tuple[Any, Fields]]] = {
        "csv": _from_lines if path.suffix.lower() == ".txt" else _from_csv,
        "npy": lambda path, _: (load(path), {}),
        "npz": _from_npz,
        "parquet": _from_parquet,
        "hdf5": _from_hdf5,
    }
    values, fields = read[format](path, selection)
    array = np.asarray(values)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    texts = array.dtype.kind in "UT" or (array.dtype == object and all(isinstance(text, str) for text in array.flat))
    if array.ndim != 1 or (array.size and not texts):
        what = f"{array.dtype} values of shape {array.shape}"
        raise InputError(f"{path} holds {what}: a list of texts is needed.")
    for name, those in fields.items():
        if len(those) != len(array):
            raise InputError(f"{path} has {len(array)} texts, but {len(those)} {name}.")
    return Table(np.empty((len(array), 0)), path, texts=[str(text) for text in array], **fields)


def _from_lines(path: Path, selection: Selection) -> tuple[Any, Fields]:
    if selection.labels or selection.row_names:
        raise InputError(f"{path} has nothing but a text a line: for classes or names take csv.")
    return lines_of(path, plain=True), {}


def _from_csv(path: Path, selection: Selection) -> tuple[Any, Fields]:
    lines = lines_of(path, plain=True)  # a text may well begin with #
    rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator_of(lines[0]))  # or go over several lines
    names, *body = ([cell.strip() for cell in cells] for cells in rows if cells)
    for k, cells in enumerate(body):
        if len(cells) != len(names):
            raise InputError(f"Row {k + 1} of {path} has {len(cells)} cells, {len(names)} were expected.")
    column, roles = _columns(names, selection, path)
    return [cells[column] for cells in body], {
        role: np.array([cells[k] for cells in body]) if role == "y" else [cells[k] for cells in body]
        for role, k in roles.items()
    }


def _from_parquet(path: Path, selection: Selection) -> tuple[Any, Fields]:
    content = parquet_table(path)
    column, roles = _columns(list(content.column_names), selection, path)
    texts = content[column].to_pylist()
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"Column {content.column_names[column]!r} of {path} holds other things than texts.")
    fields: Fields = {role: [str(value) for value in content[k].to_pylist()] for role, k in roles.items()}
    return texts, fields | ({"y": np.array(fields["y"])} if "y" in fields else {})


def _columns(names: list[str], selection: Selection, path: Path) -> tuple[int, dict[str, int]]:
    """The column of texts (the one asked for, or the only one that is nothing else) and those of classes and names."""
    asked = {"y": selection.labels, "rows": selection.row_names}
    roles = {role: column_number(name, names, path) for role, name in asked.items() if name is not None}
    if selection.dataset in names or selection.dataset != Selection.dataset:
        return column_number(selection.dataset, names, path), roles
    left = [k for k in range(len(names)) if k not in roles.values()]
    if len(left) != 1:
        raise InputError(f"{path} has the columns {', '.join(names)}: choose that of the texts with --dataset.")
    return left[0], roles


def _from_npz(path: Path, selection: Selection) -> tuple[Any, Fields]:
    archive = load(path)
    names = list(archive.files)
    data = selection.dataset if selection.dataset in names else only_array(names, selection.dataset, path)
    fields: Fields = {}
    for role, asked in (("y", selection.labels), ("rows", selection.row_names)):
        if asked is not None and asked not in names:
            raise UnknownNameError(f"{path} has no array {asked!r}; it has {', '.join(names)}.", asked)
        if (asked or role) in names:
            fields[role] = member(archive, asked or role, path)
    return member(archive, data, path), fields


def _from_hdf5(path: Path, selection: Selection) -> tuple[Any, Fields]:
    with opened(path) as file:
        dataset = file.get(selection.dataset)
        if not isinstance(dataset, h5py.Dataset):
            raise InputError(
                f"{path} has no dataset {selection.dataset!r}; it has {listing(file)}. Choose one with --dataset."
            )
        fields = read_names_beside(file, dataset.parent, selection, path)
        fields.pop("columns", None)
        return texts_in(file, selection.dataset, path), fields
