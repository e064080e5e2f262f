"""The layout of a matrix of distances: the tiles that it is cut into, by the seconds that a pair costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Tile = tuple[int, int, int, int]
"""Rows a..b, columns c..d."""

MIRRORED = 2e-8
"""Seconds that a pair must cost for its mirror image to be worth writing, in runs as short as a tile is wide."""
WIDE_TILE = (256, 16_384)
"""Rows and columns of a tile where pairs are cheap: wide, as it is written row by row."""
LONGEST_SIDE = 1024
"""The most rows (and, of a square tile, columns) of a tile of other pairs."""
TILES = 200
"""How many tiles a matrix should have, as far as `BRIEF` and `LONG` allow."""
BRIEF, LONG = 0.005, 0.25
"""Seconds that a tile should take, at least and at most."""


@dataclass(frozen=True)
class Layout:
    """The size of the tiles that a matrix is cut into."""

    height: int
    width: int
    halved: bool = False  # tiles on and above the diagonal only; the others are their mirror images

    def as_numbers(self) -> list[int]:
        """The numbers that a checkpoint keeps: a run that goes on has the tiles of the one before."""
        return [self.height, self.width, int(self.halved)]

    @classmethod
    def from_numbers(cls, kept: Any) -> Layout:
        """The layout whose numbers a checkpoint kept."""
        height, width, halved = (int(k) for k in kept)
        return cls(height, width, bool(halved))

    @classmethod
    def of_matrix(cls, shape: tuple[int, int], symmetric: bool, block: int, seconds: float) -> Layout:
        """Square tiles; or, where a pair costs few `seconds`, wide ones, whose rows are written in long runs.

        Squares have sides that are multiples of `block`, a power of two.
        """
        if seconds < MIRRORED:
            return cls(*WIDE_TILE)
        pairs = shape[0] * shape[1] / (2 if symmetric else 1)
        side = 2 ** round(math.log2(task_seconds(pairs * seconds) / seconds) / 2)
        side = max(min(side, LONGEST_SIDE), block)
        return cls(side, side, symmetric)

    @classmethod
    def of_neighbours(cls, shape: tuple[int, int], block: int, seconds: float) -> Layout:
        """The layout for nearest neighbours, where a task is a whole stripe: all tiles of some rows.

        A pair costs so many `seconds`, and the rows of a stripe are a multiple of `block`.
        """
        n, m = shape
        rows = round(task_seconds(n * m * seconds) / (m * seconds * block)) * block
        return cls(max(min(rows, LONGEST_SIDE), block), WIDE_TILE[1])


def task_seconds(total: float) -> float:
    """How many seconds a task should take, of a job of so many seconds in all."""
    return min(max(total / TILES, BRIEF), LONG)


class Tiles:
    """All tiles of a matrix, row after row; there may be millions, so each is made when it is asked for."""

    def __init__(self, layout: Layout, shape: tuple[int, int]) -> None:
        self.layout, self.shape = layout, shape
        rows, columns = -(-shape[0] // layout.height), -(-shape[1] // layout.width)
        in_row = columns - np.arange(rows) if layout.halved else np.full(rows, columns)
        self._ends = np.cumsum(in_row)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, k: int) -> Tile:
        (n, m), height, width = self.shape, self.layout.height, self.layout.width
        if not 0 <= k < len(self):
            raise IndexError(k)
        row = int(np.searchsorted(self._ends, k, side="right"))
        column = k - (int(self._ends[row - 1]) if row else 0) + (row if self.layout.halved else 0)
        a, c = row * height, column * width
        return a, min(a + height, n), c, min(c + width, m)
