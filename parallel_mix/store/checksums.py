"""Checksums of a file's bytes, behind its content.

HDF5 reads no farther than its own end, so it does not see them. They are compared before anything that is read of it
is used.

A large matrix is written in place, tile by tile, by many workers, and read by rows. So a few rows at a time have one
checksum: the sum, modulo 2^64, of the checksums of their pieces, one piece for each tile across. Whoever writes a tile
computes those of its pieces, and rank 0 adds them up. All other bytes of the file (`plain`) have a checksum for each
MiB.

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
from typing import Any, NamedTuple

import numpy as np
import xxhash

from parallel_mix.store.mapped import mapped

MARK, VERSION = b"parallel-mix sums", 1
FOOT = struct.Struct(f"<{len(MARK)}sB7Q")
BYTES = 8
"""The length of a checksum, in bytes."""
PLAIN_BYTES = 1_048_576
"""The bytes of a plain block, which has one checksum."""
LEAST_WIDTH = 512
"""Pieces of fewer bytes a row are slow to compare: they are of tiles whose distances take far longer."""
LEAST_BYTES = 262_144
"""Rows of a matrix with one checksum have pieces of at least so many bytes, where a tile is so large."""


class Grid(NamedTuple):
    """The place of a matrix in a file, and the pieces that it is cut into, some rows high and some bytes wide."""

    start: int  # its first byte
    rows: int
    row_bytes: int
    piece_rows: int
    piece_bytes: int  # of a row

    @classmethod
    def of_tiles(cls, start: int, shape: tuple[int, int], itemsize: int, height: int, width: int) -> Grid:
        """The grid of a matrix that is written in tiles of this height and width (in entries)."""
        bytes_wide = min(width, shape[1]) * itemsize
        wished = 2 ** max(math.ceil(math.log2(LEAST_BYTES / bytes_wide)), 0)
        high = wished if height >= shape[0] else math.gcd(height, wished)
        return cls(start, shape[0], shape[1] * itemsize, high, bytes_wide)

    @property
    def end(self) -> int:
        """The byte behind the matrix."""
        return self.start + self.rows * self.row_bytes

    @property
    def sums(self) -> int:
        """How many checksums the matrix has."""
        return -(-self.rows // self.piece_rows)

    def sums_of(self, values: np.ndarray, first_byte: int) -> list[int]:
        """The numbers that a tile adds to the checksums of its rows; it begins at `first_byte` of these rows."""
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


class DifferentError(Exception):
    """A file does not hold what was written to it; the message says where, and goes with the name of the file."""


@dataclass(frozen=True)
class Checksums:
    """The checksums of a file, which have been compared with their own checksum."""

    path: Path
    length: int
    plain: bytes
    grid: Grid
    of_rows: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> Checksums | None:
        """The checksums at the end of a file; None where it has none."""
        end = FOOT.size + BYTES
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < end:
                return None
            file.seek(size - end)
            foot, seal = file.read(FOOT.size), file.read(BYTES)
            mark, version, length, block, *place = FOOT.unpack(foot)
            if mark != MARK:
                return None
            grid, plain, rest = Grid(*place), 0, size - end - length
            if version == VERSION and block == PLAIN_BYTES and grid.piece_rows and grid.end <= length:
                plain = BYTES * (-(-grid.start // block) - (-(length - grid.end) // block))
            if not plain or plain + BYTES * grid.sums != rest:
                raise DifferentError("it is not as long as it was written, or was written by a later parallel-mix")
            file.seek(length)
            sums = file.read(rest)
        if xxhash.xxh3_64_digest(sums + foot) != seal:
            raise DifferentError("its checksums were changed")
        return cls(path, length, sums[:plain], grid, struct.unpack(f"<{grid.sums}Q", sums[plain:]))

    def compare_plain(self) -> None:
        """Refuse a file of which anything but the matrix is not what was written."""
        room = memoryview(bytearray(PLAIN_BYTES))
        with self.path.open("rb", buffering=0) as file:
            for number, (a, b) in enumerate(plain_blocks(self.length, self.grid)):
                if digest_at(file, a, room[: b - a]) != self.plain[number * BYTES : (number + 1) * BYTES]:
                    raise DifferentError(f"bytes {a:,} to {b:,} are not those that were written")

    def compare_rows(self, entries: Any, rows: np.ndarray) -> None:
        """Refuse a matrix of which some rows are not what was written; its `entries` are read as they are needed."""
        wanted = np.unique(rows // self.grid.piece_rows) * self.grid.piece_rows
        for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > self.grid.piece_rows) + 1):
            if len(run):
                self.compare_range(entries, int(run[0]), int(run[-1]) + 1)

    def compare_range(self, entries: Any, first: int, last: int) -> None:
        """Refuse a matrix of which one of the rows first..last - 1, or of those that share a checksum with them, is not
        what was written.
        """
        high = self.grid.piece_rows
        begin, end = first // high * high, min(-(-last // high) * high, self.grid.rows)
        step = max(PLAIN_BYTES // (high * self.grid.row_bytes), 1) * high
        for a in range(begin, end, step):
            for k, checksum in enumerate(self.grid.sums_of(entries[a : min(a + step, end)], 0), start=a // high):
                if checksum != self.of_rows[k]:
                    rows = f"{k * high + 1:,} to {min((k + 1) * high, self.grid.rows):,}"
                    raise DifferentError(f"rows {rows} of its matrix are not those that were written")

    def compare_all(self) -> None:
        """Refuse a file of which anything is not what was written."""
        self.compare_plain()
        grid = self.grid
        if grid.rows:
            entries = mapped(self.path, np.dtype(np.uint8), grid.start, (grid.rows, grid.row_bytes), "r")
            self.compare_range(entries, 0, grid.rows)


def plain_blocks(length: int, grid: Grid) -> Iterator[tuple[int, int]]:
    """The blocks (from byte, to byte) of what is not the matrix."""
    for begin, end in ((0, grid.start), (grid.end, length)):
        for a in range(begin, end, PLAIN_BYTES):
            yield a, min(a + PLAIN_BYTES, end)


def digest_at(file: Any, at: int, room: memoryview) -> bytes:
    """Fill the room with the bytes at a place of a file; return their checksum."""
    done = 0
    while done < len(room) and (count := os.preadv(file.fileno(), [room[done:]], at + done)):
        done += count
    return xxhash.xxh3_64_digest(room[:done])


def checksums_of(content: bytes) -> bytes:
    """The checksums, with foot and seal, to be written behind a content without a large matrix."""
    view = memoryview(content)
    sums = (xxhash.xxh3_64_digest(view[a:b]) for a, b in plain_blocks(len(view), NO_GRID))
    return sealed(b"".join(sums), len(view), NO_GRID)


def add_checksums(path: Path, grid: Grid, of_rows: list[int]) -> None:
    """Write the checksums, with foot and seal, behind the content of a file with a large matrix.

    Where tiles are so small that comparing rows with their pieces would be slow, rows get checksums of their own once
    they have been compared.
    """
    length, room = path.stat().st_size, memoryview(bytearray(PLAIN_BYTES))
    if grid.piece_bytes < min(LEAST_WIDTH, grid.row_bytes):
        entries = mapped(path, np.dtype(np.uint8), grid.start, (grid.rows, grid.row_bytes), "r")
        whole = Grid.of_tiles(grid.start, entries.shape, 1, *entries.shape)
        Checksums(path, length, b"", grid, tuple(of_rows)).compare_range(entries, 0, grid.rows)
        step = max(PLAIN_BYTES // (whole.piece_rows * grid.row_bytes), 1) * whole.piece_rows
        grid, sums_of_blocks = whole, [whole.sums_of(entries[a : a + step], 0) for a in range(0, grid.rows, step)]
        of_rows = [some for block in sums_of_blocks for some in block]
    with path.open("rb+", buffering=0) as file:
        sums = [digest_at(file, a, room[: b - a]) for a, b in plain_blocks(length, grid)]
        file.seek(length)
        content = memoryview(sealed(b"".join(sums) + struct.pack(f"<{grid.sums}Q", *of_rows), length, grid))
        while content:
            content = content[file.write(content) :]
        os.fsync(file)


def sealed(sums: bytes, length: int, grid: Grid) -> bytes:
    """The checksums with their foot and their own checksum."""
    foot = FOOT.pack(MARK, VERSION, length, PLAIN_BYTES, *grid)
    return sums + foot + xxhash.xxh3_64_digest(sums + foot)
