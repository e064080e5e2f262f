"""Result files: HDF5, with an attribute `kind` at the root, the data, the result, and the record of the run.

A result is a tree of named values: a dict is a group, a key that begins with "@" an attribute, anything else a dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import h5py

from parallel_mix.errors import InputError, ParallelMixError, UsersFaultError
from parallel_mix.registry import FAMILIES
from parallel_mix.store.damage import MEND
from parallel_mix.store.guard import checksums_in
from parallel_mix.store.hdf5_tables import hdf5_written_whole, opened, put_table, read_hdf5
from parallel_mix.store.tables import HDF5_ENDINGS, Selection, Table, digest, read_table

FORMAT = 1
"""The number of the format of results; files of later formats are refused."""
Tree = dict[str, Any]


def write_tree(path: Path, kind: str, tree: Tree) -> None:
    """Write a result file of a kind, whole or not at all."""
    with hdf5_written_whole(path, kind) as file:
        file.attrs["format"] = FORMAT
        put_tree(file, tree)


def read_result(path: Path, kind: str) -> Tree:
    """The tree of the result in a file, which must be of this kind."""
    if (actual := kind_of(path)) != kind:
        raise InputError(f"{path} is a result of the kind {actual!r}; this needs one of the kind {kind!r}.")
    with opened(path) as file:
        return _get(file[place_of(kind)])


def read_group(path: Path, name: str) -> Tree:
    """The tree of a group of a file."""
    with opened(path) as file:
        return _get(file[name])


@contextmanager
def making_sense_of(*paths: Path) -> Iterator[None]:
    """Say of a result without checksums that it is damaged where what it holds cannot be worked with.

    What comes of a result with sound checksums is what we wrote: an error would be ours.
    """
    try:
        yield
    except (ParallelMixError, OSError):
        raise
    except Exception as error:
        for path in paths:
            if path.suffix.lower() in HDF5_ENDINGS and is_result(path) and checksums_in(path) is None:
                reason = f"what it holds makes no sense ({type(error).__name__}: {error})"
                raise UsersFaultError(f"{path} is damaged: {reason}; {MEND}.") from error
        raise


def place_of(kind: str) -> str:
    """The name of the group (or dataset) that holds a result of a kind."""
    return FAMILIES[kind].place if kind in FAMILIES else kind


def is_result(path: Path) -> bool:
    """Whether a file is a result of parallel-mix."""
    try:
        with opened(path) as file:
            return place_of(str(file.attrs.get("kind", ""))) in file
    except InputError:
        return False


def kind_of(path: Path) -> str:
    """The kind of a result file; any other file is refused."""
    with opened(path) as file:
        kind = file.attrs.get("kind")
        if kind is None or place_of(str(kind)) not in file:
            raise InputError(f"{path} is no result of parallel-mix.")
        if (version := int(file.attrs.get("format", FORMAT))) > FORMAT:
            raise InputError(f"{path} has format {version}, written by a later parallel-mix: this one reads {FORMAT}.")
        return str(kind)


def read_attribute(path: Path, name: str) -> str:
    """An attribute at the root of a result file, as text."""
    with opened(path) as file:
        return str(file.attrs[name])


def learnt_from_classes(path: Path) -> bool:
    """Whether a file holds distances that were learnt from the known classes of its rows (vdm)."""
    if path.suffix.lower() not in HDF5_ENDINGS or not is_result(path):
        return False
    with opened(path) as file:
        return bool(file.attrs.get("metric", "") == "vdm")


def read_record(path: Path) -> Tree:
    """The record of the run that made a result: command line, versions, host, seconds, attempts."""
    with opened(path) as file:
        return {key: _plain(value) for key, value in file["run"].attrs.items()} if "run" in file else {}


def data_tree(table: Table, selection: Selection, known: str, keep: bool) -> Tree:
    """The data of a result: a copy of them, or with `keep` false only where they are and what they were."""
    tree: Tree = {
        "@digest": known,
        "@path": str(table.path.absolute()),
        "@selection": json.dumps(asdict(selection)),
    }
    tree["@kept"] = keep
    names = Table(table.X[:0], table.path, y=table.y, rows=table.rows, columns=table.columns)
    return {**tree, "": table if keep else names}


def read_data(path: Path, whole: bool = True) -> Table:
    """The data that a result was made from: its own copy, or the input file if that is unchanged.

    Where they need not be read `whole`, rows of an input file in HDF5 stay there.
    """
    with opened(path) as file:
        data = file["data"]
        kept = bool(data.attrs["kept"])
        source, known = Path(data.attrs["path"]), str(data.attrs["digest"])
        selection = Selection(**json.loads(data.attrs["selection"]))
    if kept:
        return read_hdf5(path, Selection("data/X"))
    if not source.exists():
        raise InputError(f"{path} was written without its data, and {source} is not there any more.")
    table = read_table(source, selection, leave_from=None if whole else 0)
    if digest(table) != known:
        raise InputError(f"{source} has changed since {path} was made from it: make the result again.")
    return table


def read_source(path: Path) -> tuple[Path, str]:
    """The path of the file that a result was made from, and the dataset in it."""
    with opened(path) as file:
        return Path(str(file["data"].attrs["path"])), str(file["data"].attrs.get("dataset", ""))


def read_classes(path: Path) -> list[str] | None:
    """The known classes that are kept with a result, as texts; None where there are none."""
    with opened(path) as file:
        if "data" not in file or "y" not in file["data"]:
            return None
        y = file["data/y"]
        return [str(v) for v in (y.asstr()[()] if h5py.check_string_dtype(y.dtype) else y[()])]


def read_names(path: Path) -> tuple[list[str] | None, list[str] | None]:
    """The names of rows and of columns that are kept with a result, each None where there are none."""
    with opened(path) as file:
        data = file["data"]
        rows, columns = (
            [str(v) for v in data[name].asstr()[()]] if name in data else None for name in ("rows", "columns")
        )
    return rows, columns


def check_columns(path: Path, table: Table, wanted: int) -> None:
    """Refuse a table whose columns are not those of a result, by number and, where both have them, by name."""
    if (count := table.X.shape[1]) != wanted:
        raise InputError(f"{table.path} has {count} columns, {path} was made from {wanted}: give the same columns.")
    for number, (new, old) in enumerate(zip(table.columns or [], read_names(path)[1] or [], strict=False), start=1):
        if str(new) != old:
            raise InputError(f"Column {number} of {table.path} is {new!r}, of {path} {old!r}: order them so.")


def put_tree(group: Any, tree: Tree) -> None:
    """Put a tree into an HDF5 group: dicts as groups, keys with @ as attributes, tables and arrays as datasets."""
    for key, value in tree.items():
        if key.startswith("@"):
            group.attrs[key[1:]] = value if isinstance(value, str | int | float | bool) else json.dumps(value)
        elif isinstance(value, dict):
            put_tree(group.create_group(key), value)
        elif isinstance(value, Table):
            put_table(group, value)
        else:
            group[key] = value


def _get(group: Any) -> Tree:
    tree: Tree = {f"@{key}": _plain(value) for key, value in group.attrs.items()}
    for key, item in group.items():
        tree[key] = _get(item) if isinstance(item, h5py.Group) else item[()]
    return tree


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
