"""Square matrices (distances, similarities) that are read block by block, as they may be larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import h5py
import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.store.checksums import Checksums
from parallel_mix.store.guard import checksums_in
from parallel_mix.store.hdf5_tables import beside, opened, read_dataset, read_names_beside, stamp_of
from parallel_mix.store.mapped import mapped
from parallel_mix.store.tables import (
    HDF5_ENDINGS,
    Array,
    Selection,
    Table,
    as_numbers,
    check_finite,
    check_weights,
    read_table,
)

ENTRIES_AT_ONCE = 2**22
"""Entries of a stripe that is surveyed by one worker."""
BYTES_AT_ONCE = 2**19
"""Bytes of a block that fits into a core's cache."""
STRIPE_BYTES = 2**25
"""Bytes that are compared with their checksums at a time, while blocks of them are looked at."""


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix in an HDF5 file that every worker opens for itself; slices of it are read as they are asked for."""

    path: str
    dataset: str
    shape: tuple[int, int]
    stamp: tuple[int, int]  # size and time of the last change
    compared: bool = False  # whether all rows have been compared with their checksums, by the survey

    @classmethod
    def of(cls, path: Path, dataset: str) -> StoredMatrix:
        """The matrix in a dataset of a file, as it is now."""
        with opened(path) as file:
            return cls(str(path.absolute()), dataset, file[dataset].shape, stamp_of(path))

    def __len__(self) -> int:
        return self.shape[0]

    def load(self) -> StoredMatrix:
        """The matrix itself: as a recipe of a backend, each worker reads for itself."""
        return self

    def check_unchanged(self) -> None:
        """Refuse to go on where the file is gone, or has changed since the run began."""
        try:
            same = stamp_of(Path(self.path)) == self.stamp
        except OSError:
            raise InputError(f"{self.path} is gone: put it back, and give the same command again.") from None
        if not same:
            raise InputError(
                f"{self.path} has changed since the run began: give the same command again, or begin anew with --fresh."
            )

    @contextmanager
    def _opened(self, rows: Any = ()) -> Iterator[Any]:
        """The dataset, opened to be read; the rows asked for are compared with their checksums, where there are any."""
        path = Path(self.path)
        with opened(path) as file:
            self.check_unchanged()
            dataset = file[self.dataset]
            if len(rows) and (sums := self._sums_of(dataset)):
                entries = mapped_entries(dataset, self.path, "r")
                sums.compare_rows(dataset if entries is None else entries, np.asarray(rows))
            yield dataset

    def _sums_of(self, dataset: Any) -> Checksums | None:
        """The checksums of the dataset's rows, where there are any and nobody has compared all of them."""
        sums = None if self.compared else checksums_in(Path(self.path))
        return sums if sums and dataset.id.get_offset() == sums.grid.start else None

    def __getitem__(self, key: Any) -> Array:
        rows = np.atleast_1d(np.arange(len(self))[key[0] if isinstance(key, tuple) else key])
        with self._opened(rows) as dataset:
            return floating(dataset[key])

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Array]]:
        """The rows start..stop, in blocks (number of the first row, entries) that fit into a core's cache.

        The entries are to be read and not to be written to. Stripe by stripe they are compared with their checksums
        meanwhile: nothing that was made of them is to be believed before the last block.
        """
        with self._opened() as dataset, ThreadPoolExecutor(1) as other_thread:
            mapped_ones = mapped_entries(dataset, self.path, "r")
            entries = dataset if mapped_ones is None else mapped_ones
            sums = self._sums_of(dataset)
            row_bytes = dataset.nbytes // max(len(dataset), 1)
            step, stripe = rows_at_once(row_bytes), max(STRIPE_BYTES // max(row_bytes, 1), 1)
            for first in range(start, stop, stripe):
                last = min(first + stripe, stop)
                compared = other_thread.submit(sums.compare_range, entries, first, last) if sums else None
                for a in range(first, last, step):
                    yield a, floating(entries[a : min(a + step, last)])
                if compared:
                    compared.result()
        self.check_unchanged()  # a file that was cut short meanwhile reads as zeros

    @property
    def is_mapped(self) -> bool:
        """Whether workers of one host that hold the matrix whole share its entries in memory."""
        with self._opened() as dataset:
            return mapped_entries(dataset, self.path, "c") is not None

    @property
    def rounding(self) -> float:
        """The relative error of an entry by rounding, rounded up."""
        with self._opened() as dataset:
            kind = dataset.dtype
        return 4.0 * float(np.finfo(kind).eps) if kind.kind == "f" else 1e-15

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop, in double precision."""
        return np.asarray(self[start:stop], dtype=np.float64)

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """The entries of some rows at some columns; both are numbers in rising order."""
        whole = len(rows) == len(columns) == self.shape[0] == self.shape[1]
        with self._opened(rows) as dataset:
            entries = mapped_entries(dataset, self.path, "c" if whole else "r")
            if whole:
                return floating(dataset[()]) if entries is None else entries
            if entries is not None:
                chosen = np.asarray(entries[np.ix_(rows, columns)])
                self.check_unchanged()
                return chosen
            return np.stack([floating(dataset[int(k)])[columns] for k in rows])


def mapped_entries(dataset: Any, path: str, mode: Literal["r", "c"]) -> Array | None:
    """The entries of a dataset that lie in the file as they do in memory; None where they do not, or cannot be mapped.

    With "c" what is written to them stays here. Nobody writes, but compiled code takes those that are only to be read
    for another kind of array. The system grants "c" for as much as its memory would hold.
    """
    kind, offset = dataset.dtype, dataset.id.get_offset()
    if kind not in (np.float32, np.float64) or offset is None or offset % kind.itemsize:
        return None
    if dataset.id.get_storage_size() != dataset.size * kind.itemsize:
        return None
    try:
        return cast("Array", mapped(Path(path), kind, offset, dataset.shape, mode))
    except (OSError, ValueError):
        return None


def floating(values: Any) -> Array:
    """The values as float32 or float64, as they are stored; values of other types as float64."""
    return np.asarray(values, dtype=values.dtype if values.dtype in (np.float32, np.float64) else np.float64)


@dataclass(frozen=True)
class Survey:
    """What one pass over all entries of a matrix tells, or over those of some rows."""

    digest: str
    finite: bool
    lowest: float
    lowest_at: tuple[int, int]
    highest: float
    diagonal: float = 0.0  # largest magnitude on it, where the matrix is square
    diagonal_at: int = 0


Surveyor = Callable[[Any, Path], Survey]


def stripes_of(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """The stripes (from row, to row) that are surveyed one by one: whoever surveys them, the digest is one for each."""
    n, m = shape
    step = max(ENTRIES_AT_ONCE // max(m, 1), 1)
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def rows_at_once(row_bytes: int, multiple: int = 1) -> int:
    """How many rows, a multiple of `multiple`, fit into a core's cache together."""
    return max(BYTES_AT_ONCE // max(row_bytes * multiple, 1), 1) * multiple


def blocks_of_array(matrix: Array, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """The rows start..stop of an array, in blocks (number of the first row, entries) that fit into a core's cache."""
    step = rows_at_once(matrix.nbytes // max(len(matrix), 1))
    for a in range(start, stop, step):
        yield a, np.ascontiguousarray(matrix[a : min(a + step, stop)])


def survey_stripe(matrix: Any, stripe: tuple[int, int]) -> Survey:
    """The survey of a stripe (from row, to row) of a matrix."""
    (a, b), (n, m) = stripe, matrix.shape
    sha, finite, lows, highs, own = hashlib.sha256(), True, [], [], [(0.0, a)]
    for first, rows in matrix.blocks(a, b) if isinstance(matrix, StoredMatrix) else blocks_of_array(matrix, a, b):
        sha.update(rows.data)
        with np.errstate(over="ignore", invalid="ignore"):
            finite = finite and bool(np.isfinite(rows.sum()) or np.isfinite(rows).all())
        k = int(rows.argmin())
        lows.append((float(rows.flat[k]), (first + k // m, k % m)))
        highs.append(float(rows.max()))
        if n == m:
            diagonal = np.abs(np.diagonal(rows, first))
            own.append((float(diagonal[at := int(diagonal.argmax())]), first + at))
    least, most = min(lows, key=lambda low: low[0]), max(own, key=lambda entry: entry[0])
    return Survey(sha.hexdigest(), finite, *least, max(highs), *most)


def joined_surveys(matrix: Any, path: Path, surveys: Sequence[Survey]) -> Survey:
    """The survey of a whole matrix, from those of `stripes_of` in their order; NaN or infinite entries are refused."""
    for (a, b), one in zip(stripes_of(matrix.shape), surveys, strict=True):
        if not one.finite:
            check_finite(np.asarray(matrix[a:b]), path, first_row=a)
    sha = hashlib.sha256(repr(tuple(matrix.shape)).encode())
    for one in surveys:
        sha.update(one.digest.encode())
    lowest, diagonal = min(surveys, key=lambda one: one.lowest), max(surveys, key=lambda one: one.diagonal)
    highest = max(one.highest for one in surveys)
    return Survey(
        sha.hexdigest(), True, lowest.lowest, lowest.lowest_at, highest, diagonal.diagonal, diagonal.diagonal_at
    )


def survey(matrix: Any, path: Path) -> Survey:
    """The survey of a whole matrix, by this process."""
    return joined_surveys(matrix, path, [survey_stripe(matrix, stripe) for stripe in stripes_of(matrix.shape)])


def read_matrix(path: Path, selection: Selection, least_rows: int = 2, surveyor: Surveyor | None = None) -> Table:
    """A square matrix and what belongs to its rows; from HDF5 it is not read before it is needed.

    `surveyor` makes the survey of its entries; by default this process does.
    """
    if path.suffix.lower() not in HDF5_ENDINGS:
        plain = Selection(selection.dataset, selection.weights, selection.labels, selection.row_names, square=True)
        table = read_table(path, plain, least_rows)
        matrix: Array | StoredMatrix = table.X
        fields: dict[str, Any] = {"y": table.y, "rows": table.rows, "w": table.w, "columns": table.columns}
        if selection.kind == "matrix" and table.rows is None:
            fields["rows"] = table.columns  # the names of a header
    else:
        with opened(path) as file:
            name = matrix_in(file, selection.dataset, path)
            group = file[name].parent
            fields = read_names_beside(file, group, selection, path)
            weights = beside(file, group, selection.weights, "w", path)
            if weights is not None:
                fields["w"] = as_numbers(read_dataset(file, weights, path), "The weights", path).ravel()
                check_weights(fields["w"], file[name].shape[0], path)
        matrix = StoredMatrix.of(path, name)
        fields.pop("columns", None)  # of what the distances were made from
    if not all(matrix.shape):
        raise InputError(f"The matrix of {path} has {matrix.shape[0]} x {matrix.shape[1]} entries: it is empty.")
    if selection.kind == "matrix" and matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"The matrix of {path} has {matrix.shape[0]} x {matrix.shape[1]} entries: it is not square.")
    surveyed = (surveyor or survey)(matrix, path)
    if isinstance(matrix, StoredMatrix):
        matrix = replace(matrix, compared=True)
    return Table(np.empty((len(matrix), 0)), path, matrix=matrix, survey=surveyed, **fields)


@dataclass(frozen=True)
class Side:
    """The known classes and the names of the rows of a result, or of its columns."""

    y: np.ndarray | None
    rows: list[str] | None


def read_sides(path: Path) -> tuple[Side, Side | None]:
    """Classes and names of the rows, and of the columns where these are other things."""
    with opened(path) as file:
        sides = [read_names_beside(file, file[name], Selection(), path) for name in ("/", "old") if name in file]
    known = [Side(None if "y" not in side else side["y"].astype(str), side.get("rows")) for side in sides]
    return known[0], known[1] if known[1:] else None


def matrix_at(path: Path, dataset: str) -> Any:
    """The matrix of a file, whose entries are not surveyed: stored, or in memory as (n, m)."""
    if path.suffix.lower() in HDF5_ENDINGS:
        with opened(path) as file:
            name = matrix_in(file, dataset, path)
        return StoredMatrix.of(path, name)
    return InMemory(read_table(path, Selection(dataset)).X)


def holds(path: Path, dataset: str) -> bool:
    """Whether an HDF5 file has a matrix of this name, or an npz file an array of it."""
    if path.suffix.lower() in HDF5_ENDINGS and path.exists():
        with opened(path) as file:
            return dataset in file and getattr(file[dataset], "ndim", 0) == 2
    if path.suffix.lower() == ".npz" and path.exists():
        from parallel_mix.store.array_files import load

        return dataset in load(path).files
    return False


@dataclass(frozen=True)
class InMemory:
    """A matrix that was read whole."""

    values: Array

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        n, m = self.values.shape
        return n, m

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """The entries of some rows at some columns."""
        return np.asarray(self.values[np.ix_(rows, columns)])


def matrix_in(file: Any, wanted: str, path: Path) -> str:
    """The name of the dataset asked for; where it is not there, of the only one of two dimensions."""
    matrices: list[str] = []
    file.visititems(
        lambda name, item: matrices.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
    )
    name = wanted if wanted in matrices or len(matrices) != 1 else matrices[0]
    if name not in matrices:
        listed = ", ".join(matrices) or "none"
        raise InputError(f"{path} has no matrix {wanted!r}; it has {listed}. Choose one with --dataset.")
    if file[name].dtype.kind not in "biuf":
        raise InputError(f"Dataset {name!r} of {path} holds {file[name].dtype} values: numbers are needed.")
    return name
