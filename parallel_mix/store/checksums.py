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

    def sums_of(self, values: np.ndarray, first_byte: int) -> list[int]:
        """What a tile adds to the checksums of its rows; it begins at this byte of its first row."""
        raw = np.ascontiguousarray(values).view(np.uint8)
        wide, high, sum_of = self.piece_bytes, self.piece_rows, xxhash.xxh3_64_intdigest
        if raw.shape[1] <= wide:
            flat, step = raw.data.cast("B"), raw.shape[1] * high
            return [sum_of(flat[at : at + step], first_byte) for at in range(0, len(flat), step)]
        columns = range(0, raw.shape[1], wide)
        return [
            sum(sum_of(np.ascontiguousarray(raw[a : a + high, c : c + wide]).data, first_byte + c) for c in columns)
            % 2**64
            for a in range(0, len(raw), high)
        ]


NO_GRID = Grid(0, 0, 0, 1, 0)


@dataclass(frozen=True)
class Checksums:
    """The checksums of a file, which are sound."""

    path: Path
    length: int
    block: int
    plain: bytes
    grid: Grid
    of_rows: tuple[int, ...]

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
        return cls(path, length, block, found[:plain], grid, struct.unpack(f"<{grid.sums}Q", found[plain:]))

    def compare_plain(self, mend: str) -> None:
        """Refuse a file of which anything but the matrix is not what was written."""
        content = mapped(self.path, np.dtype(np.uint8), 0, (self.length,), "r").data if self.length else b""
        for number, (a, b) in enumerate(spans(self.length, self.block, self.grid)):
            if xxhash.xxh3_64_digest(content[a:b]) != self.plain[number * BYTES : (number + 1) * BYTES]:
                raise UsersFaultError(
                    f"{self.path} is damaged: bytes {a:,} to {b:,} are not those that were written; {mend}."
                )

    def compare_rows(self, entries: Any, rows: np.ndarray, mend: str) -> None:
        """Refuse a matrix of which some rows are not what was written; its `entries` are read as they are needed."""
        wanted = np.unique(rows // self.grid.piece_rows) * self.grid.piece_rows
        for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > self.grid.piece_rows) + 1):
            if len(run):
                self.compare_range(entries, int(run[0]), int(run[-1]) + 1, mend)

    def compare_range(self, entries: Any, first: int, last: int, mend: str) -> None:
        """The same for the rows from `first` to `last`, and those that have a checksum with one of them."""
        grid = self.grid
        high = grid.piece_rows
        step = max(self.block // (high * grid.row_bytes), 1) * high
        for a in range(first // high * high, min(-(-last // high) * high, grid.rows), step):
            b = min(a + step, -(-last // high) * high)
            for k, found in enumerate(grid.sums_of(entries[a:b], 0), start=a // high):
                if found != self.of_rows[k]:
                    raise UsersFaultError(
                        f"{self.path} is damaged: rows {k * high + 1:,} to {min((k + 1) * high, grid.rows):,} of its "
                        f"matrix are not those that were written; {mend}."
                    )

    def compare_all(self, mend: str) -> None:
        """Refuse a file of which anything is not what was written."""
        self.compare_plain(mend)
        grid = self.grid
        if grid.rows:
            entries = mapped(self.path, np.dtype(np.uint8), grid.start, (grid.rows, grid.row_bytes), "r")
            self.compare_range(entries, 0, grid.rows, mend)


def spans(length: int, block: int, grid: Grid) -> Iterator[tuple[int, int]]:
    """The blocks (from, to) of what is no matrix."""
    for begin, end in ((0, grid.start), (grid.end, length)):
        for a in range(begin, end, block):
            yield a, min(a + block, end)


def checksums_of(content: bytes) -> bytes:
    """What is to stand behind the content of a file without a large matrix."""
    view = memoryview(content)
    sums = (xxhash.xxh3_64_digest(view[a:b]) for a, b in spans(len(view), BLOCK, NO_GRID))
    return sealed(b"".join(sums), len(view), NO_GRID)


def add_checksums(file: BinaryIO, grid: Grid, of_rows: np.ndarray) -> None:
    """Add to a file with a large matrix what is to stand behind it."""
    length = file.seek(0, 2)
    sums = []
    for a, b in spans(length, BLOCK, grid):
        file.seek(a)
        sums.append(xxhash.xxh3_64_digest(file.read(b - a)))
    file.seek(length)
    file.write(sealed(b"".join(sums) + of_rows.astype("<u8").tobytes(), length, grid))
    file.flush()


def sealed(sums: bytes, length: int, grid: Grid) -> bytes:
    """The sums with their foot and seal."""
    foot = FOOT.pack(MARK, VERSION, length, BLOCK, *grid)
    return sums + foot + xxhash.xxh3_64_digest(sums + foot)
