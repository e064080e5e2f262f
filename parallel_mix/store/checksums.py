"""Checksums of a file's bytes, behind its content.

HDF5 reads no farther than its own end, so it does not see them. They are compared before any library touches the file:
what was changed on the way is told, and no library has to survive it.

A large matrix, which is written in place by many and read in parts, has checksums of its own, one for some rows at a
time: the sum of those of their pieces, each of which somebody wrote. All else (`plain`) has one for each MiB.

    content | sums of plain blocks | sums of the matrix's rows | foot (mark, version, bytes of the content and of a
    block, where the matrix is) | checksum of the sums and the foot
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import xxhash

from parallel_mix.errors import UsersFaultError
from parallel_mix.store.mapped import mapped

MARK, VERSION = b"parallel-mix sums", 1
FOOT = struct.Struct(f"<{len(MARK)}sB7Q")
BYTES = 8
"""Of a checksum."""
BLOCK = 1_048_576
"""Bytes of plain content with one checksum."""
LEAST_BYTES = 65_536
"""Rows of a matrix with one checksum have pieces of at least so many bytes, where a tile is so large."""


class Grid(NamedTuple):
    """A matrix in a file, as it is written: in tiles of whole pieces, which are some rows high and some bytes wide."""

    start: int  # its first byte
    rows: int
    row_bytes: int
    piece_rows: int
    piece_bytes: int  # of a row

    @classmethod
    def of_tiles(cls, start: int, shape: tuple[int, int], itemsize: int, height: int, width: int) -> Grid:
        """A matrix that is written in tiles of this height and width."""
        bytes_wide = min(width, shape[1]) * itemsize
        wished = 2 ** max(math.ceil(math.log2(LEAST_BYTES / bytes_wide)), 0)
        return cls(start, shape[0], shape[1] * itemsize, math.gcd(height, wished), bytes_wide)

    @property
    def end(self) -> int:
        """The byte behind the matrix."""
        return self.start + self.rows * self.row_bytes

    @property
    def sums(self) -> int:
        """How many checksums it has."""
        return -(-self.rows // self.piece_rows)

    def sums_of(self, values: np.ndarray, first_byte: int) -> np.ndarray:
        """What a tile adds to the checksums of its rows; it begins at this byte of its first row."""
        raw = np.ascontiguousarray(values).view(np.uint8)
        parts = [raw[a : a + self.piece_rows] for a in range(0, len(raw), self.piece_rows)]
        sums = [0] * len(parts)
        for begin in range(0, raw.shape[1], self.piece_bytes):
            for k, part in enumerate(parts):
                piece = part[:, begin : begin + self.piece_bytes]
                sums[k] += xxhash.xxh3_64_intdigest(np.ascontiguousarray(piece).data, first_byte + begin)
        return np.array([some % 2**64 for some in sums], np.uint64)


NO_GRID = Grid(0, 0, 0, 1, 0)


@dataclass(frozen=True)
class Checksums:
    """The checksums of a file, which are sound."""

    path: Path
    length: int
    block: int
    plain: bytes
    grid: Grid
    of_rows: np.ndarray

    @classmethod
    def of(cls, path: Path, mend: str) -> Checksums | None:
        """Those at the end of a file; None where it has none."""
        with path.open("rb") as file:
            size = file.seek(0, 2)
            end = FOOT.size + BYTES
            if size < end:
                return None
            file.seek(size - end)
            foot, seal = file.read(FOOT.size), file.read(BYTES)
            mark, version, length, block, *place = FOOT.unpack(foot)
            grid = Grid(*place)
            if mark != MARK:
                return None
            if version > VERSION:
                raise UsersFaultError(f"{path} is damaged, or has checksums of a later parallel-mix: {mend}.")
            sums = size - end - length
            if not (0 <= sums <= size and block and grid.piece_rows and grid.end <= length):
                raise UsersFaultError(f"{path} is damaged: it is not as long as it was written; {mend}.")
            file.seek(length)
            found = file.read(sums)
        plain = sum(1 for _ in spans(length, block, grid)) * BYTES
        if xxhash.xxh3_64_digest(found + foot) != seal or len(found) != plain + grid.sums * BYTES:
            raise UsersFaultError(f"{path} is damaged: its checksums were changed; {mend}.")
        return cls(path, length, block, found[:plain], grid, np.frombuffer(found[plain:], "<u8"))

    def compare_plain(self, mend: str) -> None:
        """Refuse a file of which anything but the matrix is not what was written."""
        room = memoryview(bytearray(self.block))
        with self.path.open("rb", buffering=0) as file:
            for number, (a, b) in enumerate(spans(self.length, self.block, self.grid)):
                if read_at(file, a, room[: b - a]) != self.plain[number * BYTES : (number + 1) * BYTES]:
                    raise UsersFaultError(
                        f"{self.path} is damaged: bytes {a:,} to {b:,} are not those that were written; {mend}."
                    )

    def compare_rows(self, entries: Any, rows: np.ndarray, mend: str) -> None:
        """Refuse a matrix of which some rows are not what was written; its `entries` are read as they are needed."""
        grid = self.grid
        wanted = np.unique(rows // grid.piece_rows)
        most = max(self.block // (grid.piece_rows * grid.row_bytes), 1)
        ends = np.flatnonzero(np.diff(wanted) > 1) + 1
        for run in np.split(wanted, ends) if len(wanted) else []:
            for some in np.split(run, range(most, len(run), most)):
                a, b = int(some[0]) * grid.piece_rows, (int(some[-1]) + 1) * grid.piece_rows
                wrong = grid.sums_of(entries[a:b], 0) != self.of_rows[some]
                if wrong.any():
                    a += int(wrong.argmax()) * grid.piece_rows
                    raise UsersFaultError(
                        f"{self.path} is damaged: rows {a + 1:,} to {min(a + grid.piece_rows, grid.rows):,} of its "
                        f"matrix are not those that were written; {mend}."
                    )

    def compare_all(self, mend: str) -> None:
        """Refuse a file of which anything is not what was written."""
        self.compare_plain(mend)
        grid = self.grid
        if grid.rows:
            entries = mapped(self.path, np.dtype(np.uint8), grid.start, (grid.rows, grid.row_bytes), "r")
            self.compare_rows(entries, np.arange(grid.rows), mend)


def spans(length: int, block: int, grid: Grid) -> Iterator[tuple[int, int]]:
    """The blocks (from, to) of what is no matrix."""
    for begin, end in ((0, grid.start), (grid.end, length)):
        for a in range(begin, end, block):
            yield a, min(a + block, end)


def read_at(file: Any, at: int, room: memoryview) -> bytes:
    """Fill the room from a place of a file; the checksum of what came."""
    done = 0
    while done < len(room) and (count := os.preadv(file.fileno(), [room[done:]], at + done)):
        done += count
    return xxhash.xxh3_64_digest(room[:done])


def checksums_of(content: bytes) -> bytes:
    """What is to stand behind the content of a file without a large matrix."""
    view = memoryview(content)
    sums = (xxhash.xxh3_64_digest(view[a:b]) for a, b in spans(len(view), BLOCK, NO_GRID))
    return sealed(b"".join(sums), len(view), NO_GRID)


def add_checksums(file: BinaryIO, grid: Grid, of_rows: np.ndarray) -> None:
    """Add to a file with a large matrix what is to stand behind it."""
    length = file.seek(0, 2)
    room = memoryview(bytearray(BLOCK))
    sums = [read_at(file, a, room[: b - a]) for a, b in spans(length, BLOCK, grid)]
    file.write(sealed(b"".join(sums) + of_rows.astype("<u8").tobytes(), length, grid))
    file.flush()


def sealed(sums: bytes, length: int, grid: Grid) -> bytes:
    """The sums with their foot and seal."""
    foot = FOOT.pack(MARK, VERSION, length, BLOCK, *grid)
    return sums + foot + xxhash.xxh3_64_digest(sums + foot)
