"""Tables in HDF5: `X (n, d)`, and where they are there `y`, `w`, `columns`, `rows`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from parallel_mix.errors import InputError, UnknownNameError
from parallel_mix.store.atomic import written_whole
from parallel_mix.store.checksums import checksums_of
from parallel_mix.store.damage import MEND, reading
from parallel_mix.store.guard import checksums_in, look_first
from parallel_mix.store.tables import Array, Selection, Table, as_numbers

CHECKED = "checksums"
"""The attribute of a result or checkpoint that was written with checksums at its end."""


@contextmanager
def opened(path: Path, mend: str = MEND) -> Iterator[Any]:
    """An HDF5 file, opened to be read; where it cannot be, a sentence that ends with how to `mend` it."""
    look_first(path, mend)
    try:
        file = h5py.File(path, "r", locking=False)
    except Exception as error:
        if number := getattr(error, "errno", None):
            raise InputError(f"{path} cannot be read: {os.strerror(number)}.") from error
        raise InputError(f"{path} is damaged, cut short, or no HDF5 file: {mend}.") from error
    with reading(path, mend=mend), file:
        if CHECKED in file.attrs and checksums_in(path) is None:
            raise InputError(f"{path} was changed since it was written (its checksums are missing): {mend}.")
        yield file


@contextmanager
def hdf5_written_whole(path: Path, kind: str | None = None) -> Iterator[Any]:
    """A new HDF5 file to write to, there whole or not at all; without `kind` a table, which its user may add to.

    It is made in memory and then written in one go: the HDF5 library does not survive a disk that is full.
    """
    with h5py.File(path.name, "w", driver="core", backing_store=False) as file:
        if kind is not None:
            file.attrs["kind"] = kind
            file.attrs[CHECKED] = True  # at the beginning of the file: what destroys it and its end destroys all
        yield file
        file.flush()
        image = file.id.get_file_image()
    with written_whole(path) as temporary, temporary.open("wb") as to:
        to.write(image)
        to.write(checksums_of(image))


def read_hdf5(path: Path, selection: Selection) -> Table:
    """Read the table in a dataset of an HDF5 file, with the weights, classes and names beside it."""
    with opened(path) as file:
        stamp = stamp_of(path)
        what = f"Dataset {selection.dataset!r}"
        X = as_numbers(read_dataset(file, selection.dataset, path, selection.kind), what, path, selection.kind)
        group = file[selection.dataset].parent
        fields = read_names_beside(file, group, selection, path)
        weights = beside(file, group, selection.weights, "w", path)
        if weights is not None:
            fields["weights_dataset"] = weights
            fields["w"] = as_numbers(read_dataset(file, weights, path), "The weights", path).ravel()
    return Table(X, path, dataset=selection.dataset, stamp=stamp, **fields)


def leave_in_file(path: Path, selection: Selection, from_rows: int) -> Table | None:
    """The table in a dataset of an HDF5 file, whose rows and weights stay there.

    None where it has fewer rows, or other than two dimensions.
    """
    with opened(path) as file:
        stamp = stamp_of(path)
        dataset = numbers_in(file, selection.dataset, path)
        if dataset.ndim != 2 or not dataset.shape[1] or dataset.shape[0] < from_rows:
            return None
        shape = (int(dataset.shape[0]), int(dataset.shape[1]))
        fields = read_names_beside(file, dataset.parent, selection, path)
        weights = beside(file, dataset.parent, selection.weights, "w", path)
        if weights is not None and (size := numbers_in(file, weights, path).size) != shape[0]:
            raise InputError(f"The weights of {path} are {size}: one for each of the {shape[0]} rows is needed.")
    stored = StoredRows.of(path, selection.dataset, weights, shape, stamp)
    none = np.empty((0, shape[1]))
    place = {"dataset": selection.dataset, "weights_dataset": weights, "stamp": stamp}
    return Table(none, path, stored=stored, **{**place, **fields})


def read_names_beside(file: Any, group: Any, selection: Selection, path: Path) -> dict[str, Any]:
    """The classes (y), and the names of rows and columns, that are beside the data or were asked for."""
    fields: dict[str, Any] = {}
    labels = beside(file, group, selection.labels, "y", path)
    if labels is not None:
        fields["y"] = texts_in(file, labels, path)
    for role, asked in (("rows", selection.row_names), ("columns", None)):
        name = beside(file, group, asked, role, path)
        if name is not None:
            fields[role] = [str(value) for value in texts_in(file, name, path)]
    return fields


def beside(file: Any, group: Any, asked: str | None, default: str, path: Path) -> str | None:
    """The full name of the dataset asked for, which must be there, or of the default beside X; None where it is not."""
    if asked is not None:
        if asked not in file:
            raise UnknownNameError(f"{path} has no dataset {asked!r}; it has {listing(file)}.", asked)
        return asked
    return f"{group.name}/{default}".replace("//", "/") if default in group else None


def read_dataset(file: Any, name: str, path: Path, kind: str = "numbers") -> Any:
    """All values of a dataset, which must be numbers (or categories, by `kind`)."""
    dataset = numbers_in(file, name, path, kind)
    with reading(path, f"dataset {name!r}"):
        return dataset[()]


def numbers_in(file: Any, name: str, path: Path, kind: str = "numbers") -> Any:
    """A dataset, which must be one of numbers (or categories, by `kind`)."""
    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{path} has no dataset {name!r}; it has {listing(file)}. Choose one with --dataset.")
    if kind != "categories" and (dataset.dtype == object or dataset.dtype.kind not in "biuf"):
        raise InputError(f"Dataset {name!r} of {path} holds {dataset.dtype} values: numbers are needed.")
    return dataset


def texts_in(file: Any, name: str, path: Path) -> Any:
    """All values of a dataset: texts where it has texts, else numbers."""
    dataset = file[name]
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.array(dataset.asstr()[()])
    return read_dataset(file, name, path)


def listing(file: Any) -> str:
    """The names of the first datasets of a file, for a sentence."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") if names else "none"


def write_table(path: Path, table: Table) -> None:
    """Write a table as an input file of ours."""
    with hdf5_written_whole(path) as file:
        put_table(file, table)


def put_table(group: Any, table: Table) -> None:
    """Put X, w, y, rows and columns into an HDF5 group."""
    group["X"] = table.X
    if table.w is not None:
        group["w"] = table.w
    if table.y is not None:
        group["y"] = [str(v) for v in table.y] if table.y.dtype.kind in "UO" else table.y
    for name in ("rows", "columns"):
        if (values := getattr(table, name)) is not None:
            group.create_dataset(name, data=values, dtype=h5py.string_dtype())


@dataclass(frozen=True)
class StoredRows:
    """Rows of an HDF5 file that every worker opens for itself."""

    path: str
    dataset: str
    weights_dataset: str | None
    shape: tuple[int, int]
    stamp: tuple[int, int]  # size and time of the last change

    @classmethod
    def of(
        cls,
        path: Path,
        dataset: str,
        weights_dataset: str | None,
        shape: tuple[int, int],
        stamp: tuple[int, int] | None = None,
    ) -> StoredRows:
        """Rows of the file as it was at a stamp, or as it is now."""
        return cls(str(path.absolute()), dataset, weights_dataset, shape, stamp or stamp_of(path))

    def load(self) -> StoredRows:
        """The rows themselves: as a recipe of a backend, each worker reads for itself."""
        return self

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop as float64."""
        with self._dataset(self.dataset) as dataset:
            return np.asarray(dataset[start:stop], dtype=np.float64).reshape(stop - start, self.shape[1])

    def weights(self, start: int = 0, stop: int | None = None) -> Array | None:
        """Weights of rows start..stop (of all by default), or None where all count alike."""
        if self.weights_dataset is None:
            return None
        with self._dataset(self.weights_dataset) as dataset:
            if dataset.ndim != 1:
                return np.asarray(dataset[()], dtype=np.float64).ravel()[start:stop]
            return np.asarray(dataset[start : self.shape[0] if stop is None else stop], dtype=np.float64)

    @contextmanager
    def _dataset(self, name: str) -> Iterator[Any]:
        """A dataset of the file, which must be the one that the run began with."""
        with opened(Path(self.path)) as file:
            dataset = file.get(name)
            if dataset is None or stamp_of(Path(self.path)) != self.stamp:
                raise InputError(f"{self.path} has changed since the run began: begin anew with --fresh.")
            yield dataset


def stamp_of(path: Path) -> tuple[int, int]:
    """The size of a file in bytes, and the time of its last change in nanoseconds."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
