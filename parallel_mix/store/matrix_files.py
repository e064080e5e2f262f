"""Large matrices in HDF5, written in place by all workers.

The file is laid out once: the dataset's room is allocated, so that a full disk shows at once, and where it begins is
asked of HDF5. From then on workers write their tiles at byte offsets, with no HDF5 between; at last rank 0 adds what
else belongs to the result, and the file gets its name. Until then it is called after what it will hold (its identity),
so that a late write of an earlier attempt is either of the same bytes or goes to another file.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np

from parallel_mix.errors import InputError, UsersFaultError
from parallel_mix.store.atomic import explain, sync_folder
from parallel_mix.store.checksums import DifferentError, Grid, add_checksums
from parallel_mix.store.hdf5_tables import CHECKED
from parallel_mix.store.results import FORMAT, Tree, put_tree

DATASET = "distances"
RESERVE = 2**18
"""Room for what is added at last, names and classes apart: the HDF5 library does not survive a disk that is full."""


class TileSize(Protocol):
    """The size of tiles, but for smaller ones at the edges."""

    @property
    def height(self) -> int:
        """The rows of a tile."""

    @property
    def width(self) -> int:
        """The columns of a tile."""


@dataclass(frozen=True)
class MatrixFile:
    """The place of a matrix that is being written, as workers need to know it."""

    path: str
    offset: int
    shape: tuple[int, int]
    dtype: str
    host: str  # rank 0's

    def put(self, row: int, column: int, values: np.ndarray, layout: TileSize) -> tuple[int, np.ndarray]:
        """Write a tile in its place; from another host than rank 0's, also to disk.

        Returned are the number of the first checksum of rows that the tile adds to, and what it adds to that one and
        the next ones.
        """
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(values, dtype=self.dtype)
        if not np.isfinite(values.sum()) and not np.isfinite(values).all():
            raise UsersFaultError(
                f"There are distances that {self.dtype} cannot hold: leave out --single, or scale the data."
            )
        content, width = values.data.cast("B"), values.shape[1] * values.itemsize
        with self._opened() as file:
            if values.shape[1] == self.shape[1]:
                _write(file, content, self._at(row, 0))
            else:
                for k in range(len(values)):
                    _write(file, content[k * width : (k + 1) * width], self._at(row + k, column))
            if socket.gethostname() != self.host:
                os.fdatasync(file)
        grid = self.grid(layout)
        return row // grid.piece_rows, np.array(grid.sums_of(values, column * values.itemsize), np.uint64)

    def grid(self, layout: TileSize) -> Grid:
        """The grid of pieces by which the matrix gets its checksums, where tiles are of this size."""
        return Grid.of_tiles(self.offset, self.shape, np.dtype(self.dtype).itemsize, layout.height, layout.width)

    def sync(self) -> None:
        """Write to disk what this host has written."""
        with self._opened() as file:
            os.fdatasync(file)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            file = os.open(self.path, os.O_WRONLY)
            try:
                yield file
            finally:
                os.close(file)
        except FileNotFoundError as error:
            raise UsersFaultError(
                f"{self.path}, which the run writes to, is gone: removed by hand, or by a later run of the same output."
            ) from error
        except OSError as error:
            raise UsersFaultError(explain(error, Path(self.path))) from error

    def _at(self, row: int, column: int) -> int:
        return self.offset + (row * self.shape[1] + column) * np.dtype(self.dtype).itemsize


def _write(file: int, content: memoryview, at: int) -> None:
    while content:
        written = os.pwrite(file, content, at)
        content, at = content[written:], at + written


def staging_path(output: Path, identity: dict[str, Any]) -> Path:
    """The path of the unfinished file: it is named by the result and by a digest of what decides it."""
    text = json.dumps(identity, sort_keys=True)
    return output.with_name(f".{output.name}.{hashlib.sha256(text.encode()).hexdigest()[:12]}.part")


def sweep(output: Path) -> None:
    """Remove unfinished files of this output that runs without a checkpoint have left."""
    for path in output.absolute().parent.glob(f".{glob.escape(output.name)}.*"):
        if re.search(r"\.([0-9a-f]{12}\.part|[0-9]+\.plan)$", path.name):
            path.unlink(missing_ok=True)


def check_room(output: Path, shape: tuple[int, int], dtype: str, more: int) -> None:
    """Refuse a matrix that the disk has no room for, with `more` bytes beside it."""
    needed = shape[0] * shape[1] * np.dtype(dtype).itemsize + RESERVE + more
    disk = os.statvfs(output.absolute().parent)
    free = disk.f_bavail * disk.f_frsize
    if needed > free:
        raise InputError(
            f"A matrix of {shape[0]:,} x {shape[1]:,} {dtype} needs {as_bytes(needed)}, and the disk of "
            f"{output.absolute().parent} has {as_bytes(free)} free. "
            + ("Take --single, --knn, or another folder." if dtype == "float64" else "Take --knn, or another folder.")
        )


def as_bytes(count: int) -> str:
    """A number of bytes in KiB, MiB or GiB, as text."""
    unit = next((unit for unit in ("GiB", "MiB") if count >= 2 ** {"GiB": 30, "MiB": 20}[unit]), "KiB")
    return f"{count / 2 ** {'GiB': 30, 'MiB': 20, 'KiB': 10}[unit]:,.1f} {unit}"


def plan(output: Path, shape: tuple[int, int], dtype: str) -> tuple[int, bytes]:
    """The byte at which the matrix begins in a file of its own, and all bytes before it."""
    trial = output.with_name(f".{output.name}.{os.getpid()}.plan")
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.CONTIGUOUS)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    layout.set_obj_track_times(False)  # the same file each time
    try:
        with h5py.File(trial, "w", libver="earliest", locking=False) as file:  # nothing but its header is on the disk
            kind, space = h5py.h5t.py_create(np.dtype(dtype)), h5py.h5s.create_simple(shape)
            offset = int(h5py.h5d.create(file.id, DATASET.encode(), kind, space, dcpl=layout).get_offset())
        with trial.open("rb") as raw:
            return offset, raw.read(offset)
    except RuntimeError as error:  # HDF5 could not make it so long
        raise InputError(f"{output} cannot be made so large: {error}.") from error
    except OSError as error:
        raise InputError(explain(error, output)) from error
    finally:
        trial.unlink(missing_ok=True)


def lay_out(matrix: MatrixFile, header: bytes, more: int) -> None:
    """Make the unfinished file, with room for the matrix and `more` bytes beside it."""
    path = Path(matrix.path)
    size = matrix.offset + matrix.shape[0] * matrix.shape[1] * np.dtype(matrix.dtype).itemsize
    try:
        path.unlink(missing_ok=True)
        with path.open("xb") as file:
            file.write(header)
            file.flush()
            os.posix_fallocate(file.fileno(), 0, size + RESERVE + more)  # HDF5 cuts off what it does not use
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(explain(error, path)) from error


def is_whole(matrix: MatrixFile) -> bool:
    """Whether the unfinished file is there, with room for the whole matrix."""
    path = Path(matrix.path)
    size = matrix.offset + matrix.shape[0] * matrix.shape[1] * np.dtype(matrix.dtype).itemsize
    return path.exists() and path.stat().st_size >= size


def take_up(matrix: MatrixFile, header: bytes) -> None:
    """Go on with an unfinished file; its header is written again, as a run killed at its end may have changed it."""
    try:
        with Path(matrix.path).open("r+b") as file:
            file.write(header)
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(explain(error, Path(matrix.path))) from error


def finish(
    matrix: MatrixFile,
    output: Path,
    kind: str,
    tree: Tree,
    layout: TileSize,
    sums: np.ndarray,
    still_ours: Callable[[], None],
) -> None:
    """Add what else belongs to the result and give the file its name, unless it belongs to a later attempt by then."""
    path = Path(matrix.path)
    try:
        with h5py.File(path, "r+", locking=False) as file:
            file.attrs["kind"] = kind
            file.attrs["format"] = FORMAT
            file.attrs[CHECKED] = True
            put_tree(file, tree)
        grid = matrix.grid(layout)
        add_checksums(path, grid, sums[: grid.sums].tolist())
        still_ours()
        path.replace(output)
        sync_folder(output.absolute().parent)
    except DifferentError as error:
        raise UsersFaultError(f"{path} was changed while it was written: {error}. Begin anew with --fresh.") from None
    except OSError as error:
        raise InputError(explain(error, output)) from error
