"""Square matrices (distances, similarities) that are read in parts, as they may be larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
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
BYTES_AT_ONCE = 2**19


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix in an HDF5 file that every worker opens for itself; slices of it are read as they are asked for."""

    path: str
    dataset: str
    shape: tuple[int, int]
    stamp: tuple[int, int]  # size and time of the last change
    compared: bool = False  # all rows with their checksums, by whoever looked at it first

    @classmethod
    def of(cls, path: Path, dataset: str) -> StoredMatrix:
        """The matrix as it is now."""
        with opened(path) as file:
            return cls(str(path.absolute()), dataset, file[dataset].shape, stamp_of(path))

    def __len__(self) -> int:
        return self.shape[0]

    def load(self) -> StoredMatrix:
        """As what workers share."""
        return self

    def check_unchanged(self) -> None:
        """Refuse what is not the matrix any more that it was."""
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
        """The dataset, of which these rows are as they were written, if anything tells how that was."""
        path = Path(self.path)
        with opened(path) as file:
            self.check_unchanged()
            dataset = file[self.dataset]
            if len(rows) and (sums := self._sums_of(dataset)):
                entries = mapped_entries(dataset, self.path, "r")
                sums.compare_rows(dataset if entries is None else entries, np.asarray(rows))
            yield dataset

    def _sums_of(self, dataset: Any) -> Checksums | None:
        """The checksums of its rows, where there are any and nobody has compared them."""
        sums = None if self.compared else checksums_in(Path(self.path))
        return sums if sums and dataset.id.get_offset() == sums.grid.start else None

    def __getitem__(self, key: Any) -> Array:
        rows = np.atleast_1d(np.arange(len(self))[key[0] if isinstance(key, tuple) else key])
        with self._opened(rows) as dataset:
            return floating(dataset[key])

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, Array]]:
        """Some rows after the other, to be looked at and not to be written to; each part fits into a core's cache."""
        with self._opened() as dataset:
            mapped_ones = mapped_entries(dataset, self.path, "r")
            entries = dataset if mapped_ones is None else mapped_ones
            sums = self._sums_of(dataset)
            step = rows_at_once(dataset.nbytes // max(len(dataset), 1), sums.grid.piece_rows if sums else 1)
            for a in range(start, stop, step):
                b = min(a + step, stop)
                if sums:
                    sums.compare_range(entries, a, b)
                yield a, floating(entries[a:b])
        self.check_unchanged()  # a file that was cut short meanwhile reads as zeros

    @property
    def is_mapped(self) -> bool:
        """True where workers of one host that hold it whole share its entries in memory."""
        with self._opened() as dataset:
            return mapped_entries(dataset, self.path, "c") is not None

    @property
    def rounding(self) -> float:
        """Of its entries, relative, some over."""
        with self._opened() as dataset:
            kind = dataset.dtype
        return 4.0 * float(np.finfo(kind).eps) if kind.kind == "f" else 1e-15

    def rows(self, start: int, stop: int) -> Array:
        """Rows start..stop, in double precision."""
        return np.asarray(self[start:stop], dtype=np.float64)

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns, in rising order."""
        whole = len(rows) == len(columns) == self.shape[0] == self.shape[1]
        with self._opened(rows) as dataset:
            entries = mapped_entries(dataset, self.path, "c" if whole else "r")
            if whole:
                return floating(dataset[()]) if entries is None else entries
            if entries is not None:
                found = np.asarray(entries[np.ix_(rows, columns)])
                self.check_unchanged()
                return found
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
    """Numbers as they are stored, float32 or float64; others as float64."""
    return np.asarray(values, dtype=values.dtype if values.dtype in (np.float32, np.float64) else np.float64)


@dataclass(frozen=True)
class Survey:
    """What one pass over all entries tells, or over some rows."""

    digest: str
    finite: bool
    lowest: float
    lowest_at: tuple[int, int]
    highest: float
    diagonal: float = 0.0  # largest magnitude on it, where the matrix is square
    diagonal_at: int = 0


Look = Callable[[Any, Path], Survey]


def stripes_of(shape: tuple[int, int]) -> list[tuple[int, int]]:
    """Rows (from, to) that are looked at together: whole lines of the digest, whoever looks."""
    n, m = shape
    step = max(ENTRIES_AT_ONCE // max(m, 1), 1)
    return [(a, min(a + step, n)) for a in range(0, n, step)]


def rows_at_once(row_bytes: int, multiple: int = 1) -> int:
    """Rows that fit into a core's cache together."""
    return max(BYTES_AT_ONCE // max(row_bytes * multiple, 1), 1) * multiple


def parts_of(matrix: Array, start: int, stop: int) -> Iterator[tuple[int, Array]]:
    """Some rows after the other of an array."""
    step = rows_at_once(matrix.nbytes // max(len(matrix), 1))
    for a in range(start, stop, step):
        yield a, np.ascontiguousarray(matrix[a : min(a + step, stop)])


def survey_stripe(matrix: Any, stripe: tuple[int, int]) -> Survey:
    """What some rows tell."""
    (a, b), (n, m) = stripe, matrix.shape
    sha, finite, lows, highs, own = hashlib.sha256(), True, [], [], [(0.0, a)]
    for first, rows in matrix.parts(a, b) if isinstance(matrix, StoredMatrix) else parts_of(matrix, a, b):
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


def joined_surveys(matrix: Any, path: Path, parts: Sequence[Survey]) -> Survey:
    """What all rows tell, from those of `stripes_of` in their order; what is NaN or infinite is refused."""
    for (a, b), part in zip(stripes_of(matrix.shape), parts, strict=True):
        if not part.finite:
            check_finite(np.asarray(matrix[a:b]), path, first_row=a)
    sha = hashlib.sha256(repr(tuple(matrix.shape)).encode())
    for part in parts:
        sha.update(part.digest.encode())
    lowest, diagonal = min(parts, key=lambda part: part.lowest), max(parts, key=lambda part: part.diagonal)
    highest = max(part.highest for part in parts)
    return Survey(
        sha.hexdigest(), True, lowest.lowest, lowest.lowest_at, highest, diagonal.diagonal, diagonal.diagonal_at
    )


def survey(matrix: Any, path: Path) -> Survey:
    """Look at all entries, as they are stored, here and now."""
    return joined_surveys(matrix, path, [survey_stripe(matrix, stripe) for stripe in stripes_of(matrix.shape)])


def read_matrix(path: Path, selection: Selection, least_rows: int = 2, look: Look | None = None) -> Table:
    """A square matrix and what belongs to its rows; from HDF5 it is not read before it is needed."""
    if path.suffix.lower() not in HDF5_ENDINGS:
        plain = Selection(selection.dataset, selection.weights, selection.labels, selection.row_names, square=True)
        table = read_table(path, plain, least_rows)
        matrix: Array | StoredMatrix = table.X
        parts: dict[str, Any] = {"y": table.y, "rows": table.rows, "w": table.w, "columns": table.columns}
        if selection.kind == "matrix" and table.rows is None:
            parts["rows"] = table.columns  # the names of a header
    else:
        with opened(path) as file:
            name = matrix_in(file, selection.dataset, path)
            group = file[name].parent
            parts = read_names_beside(file, group, selection, path)
            weights = beside(file, group, selection.weights, "w", path)
            if weights is not None:
                parts["w"] = as_numbers(read_dataset(file, weights, path), "The weights", path).ravel()
                check_weights(parts["w"], file[name].shape[0], path)
        matrix = StoredMatrix.of(path, name)
        parts.pop("columns", None)  # of what the distances were made from
    if not all(matrix.shape):
        raise InputError(f"The matrix of {path} has {matrix.shape[0]} x {matrix.shape[1]} entries: it is empty.")
    if selection.kind == "matrix" and matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"The matrix of {path} has {matrix.shape[0]} x {matrix.shape[1]} entries: it is not square.")
    found = (look or survey)(matrix, path)
    if isinstance(matrix, StoredMatrix):
        matrix = replace(matrix, compared=True)
    return Table(np.empty((len(matrix), 0)), path, matrix=matrix, survey=found, **parts)


@dataclass(frozen=True)
class Side:
    """What belongs to the rows of a result, or to its columns."""

    y: np.ndarray | None
    rows: list[str] | None


def read_sides(path: Path) -> tuple[Side, Side | None]:
    """Classes and names of the rows, and of the columns where these are other things."""
    with opened(path) as file:
        sides = [read_names_beside(file, file[name], Selection(), path) for name in ("/", "old") if name in file]
    known = [Side(None if "y" not in side else side["y"].astype(str), side.get("rows")) for side in sides]
    return known[0], known[1] if known[1:] else None


def matrix_at(path: Path, dataset: str) -> Any:
    """The matrix of a file, without a look at its entries: stored, or in memory as (n, m)."""
    if path.suffix.lower() in HDF5_ENDINGS:
        with opened(path) as file:
            name = matrix_in(file, dataset, path)
        return StoredMatrix.of(path, name)
    return InMemory(read_table(path, Selection(dataset)).X)


def holds(path: Path, dataset: str) -> bool:
    """True where an HDF5 or npz file has a dataset of this name, and one of two dimensions."""
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
        n, m = self.values.shape
        return n, m

    def among(self, rows: np.ndarray, columns: np.ndarray) -> Array:
        """Some rows and columns."""
        return np.asarray(self.values[np.ix_(rows, columns)])


def matrix_in(file: Any, wanted: str, path: Path) -> str:
    """The dataset asked for; where it is not there, the only one of two dimensions."""
    found: list[str] = []
    file.visititems(
        lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
    )
    name = wanted if wanted in found or len(found) != 1 else found[0]
    if name not in found:
        listed = ", ".join(found) or "none"
        raise InputError(f"{path} has no matrix {wanted!r}; it has {listed}. Choose one with --dataset.")
    if file[name].dtype.kind not in "biuf":
        raise InputError(f"Dataset {name!r} of {path} holds {file[name].dtype} values: numbers are needed.")
    return name
