"""Tables in npy, npz and parquet. Pickled objects are refused, never loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError, UnknownNameError
from parallel_mix.extras import need
from parallel_mix.store.columns import choose, is_unnamed
from parallel_mix.store.tables import Selection, Table, as_numbers, without_counting_columns


def read_npy(path: Path, selection: Selection) -> Table:
    """Read the array of an npy file as a table."""
    for asked in (selection.labels, selection.row_names, selection.weights):
        if asked:
            raise UnknownNameError(
                f"{path} has no {asked!r}: an npy file holds one array alone; use npz or HDF5.", asked
            )
    return Table(as_numbers(load(path), "The array", path, selection.kind), path)


def read_npz(path: Path, selection: Selection) -> Table:
    """Read the arrays X (or the one asked for), w, y, rows and columns of an npz file as a table."""
    archive = load(path)
    names = list(archive.files)
    data = selection.dataset if selection.dataset in names else only_array(names, selection.dataset, path)
    fields: dict[str, Any] = {}
    for role, name in (("w", selection.weights or "w"), ("y", selection.labels or "y")):
        asked = selection.weights if role == "w" else selection.labels
        if name in names:
            fields[role] = member(archive, name, path)
        elif asked:
            raise UnknownNameError(f"{path} has no array {name!r}; it has {', '.join(names)}.", name)
    for role, name in (("rows", selection.row_names or "rows"), ("columns", "columns")):
        if name in names:
            fields[role] = [str(value) for value in member(archive, name, path)]
    if "w" in fields:
        fields["w"] = as_numbers(fields["w"], "The weights", path).ravel()
    return Table(as_numbers(member(archive, data, path), f"The array {data!r}", path, selection.kind), path, **fields)


def only_array(names: list[str], wanted: str, path: Path) -> str:
    """The name of the only array, where the one that is wanted is not there."""
    if len(names) == 1:
        return names[0]
    raise InputError(f"{path} has no array {wanted!r}; it has {', '.join(names) or 'none'}. Choose one with --dataset.")


def load(path: Path) -> Any:
    """The array of an npy file or the archive of an npz file; a damaged one is refused in a sentence."""
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(_why(path, error)) from error
    except (OSError, EOFError) as error:
        raise InputError(f"{path} is damaged or no NumPy file: {error}.") from error
    except Exception as error:  # zipfile.BadZipFile, and what else a damaged archive brings about
        raise InputError(f"{path} is damaged: {error}.") from error


def member(archive: Any, name: str, path: Path) -> Any:
    """An array of an npz archive; a damaged one is refused in a sentence."""
    try:
        return archive[name]
    except ValueError as error:
        raise InputError(_why(path, error, name)) from error
    except Exception as error:  # a truncated member of the zip archive
        raise InputError(f"The array {name!r} of {path} is damaged: {error}.") from error


def _why(path: Path, error: ValueError, name: str = "") -> str:
    what = f"The array {name!r} of {path}" if name else str(path)
    if "pickle" in str(error).lower() or "object" in str(error).lower():
        return (
            f"{what} is damaged, or holds pickled Python objects, which are never loaded: save plain numbers instead."
        )
    return f"{what} is damaged: {error}."


def parquet_table(path: Path) -> Any:
    """The content of a parquet file."""
    need("parquet", "Reading parquet")
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is damaged or no parquet file: {str(error).rstrip('.')}.") from error


def read_parquet(path: Path, selection: Selection) -> Table:
    """Read the columns of a parquet file as a table."""
    content = parquet_table(path)
    names = list(content.column_names)
    chosen: dict[str, str] = {}
    for role, name in (("w", selection.weights), ("y", selection.labels), ("rows", selection.row_names)):
        if name is not None:
            if name not in names:
                raise UnknownNameError(f"{path} has no column {name!r}; it has {', '.join(names)}.", name)
            chosen[role] = name
    reserved = [names.index(name) for name in chosen.values()]
    choice = choose(names, True, selection, reserved, path, [names.index(name) for name in pandas_index(content)])
    if choice.index and "rows" not in chosen:
        chosen["rows"] = names[choice.index[0]]
    kept = [names[k] for k in choice.data]
    columns = [as_numbers(content[name].to_numpy(), f"Column {name!r}", path, selection.kind) for name in kept]
    fields: dict[str, Any] = {}
    if "w" in chosen:
        fields["w"] = as_numbers(content[chosen["w"]].to_numpy(), "The weights", path)
    if "y" in chosen:
        fields["y"] = np.array([str(value) for value in content[chosen["y"]].to_pylist()])
    if "rows" in chosen:
        fields["rows"] = [str(value) for value in content[chosen["rows"]].to_pylist()]
    X = np.column_stack(columns) if columns else np.empty((content.num_rows, 0))
    return without_counting_columns(Table(X, path, **fields), choice, names, True, selection)


def pandas_index(content: Any) -> list[str]:
    """The columns that pandas wrote as the index of its table."""
    try:
        known = json.loads((content.schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
    except (KeyError, TypeError, ValueError):
        known = []
    return [name for name in content.column_names if name in known or is_unnamed(name)]
