"""Distances, tile by tile: the worker that computes a tile puts it in its place."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import UsersFaultError
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.core.run import QuietRun, Run, State
from parallel_mix.models.core.sources import RowSource
from parallel_mix.models.core.tasks import Arrays, ResumableMap
from parallel_mix.models.distances.tile_layout import BRIEF, LONGEST_SIDE, Layout, Tile, Tiles

UNKNOWN = 1e-5
"""Seconds that a pair is taken to cost where that could not be measured."""


class Metric(Protocol):
    """A distance between things of one kind, with what it needs to know of all of them."""

    @property
    def symmetric(self) -> bool:
        """Whether d(x, y) is d(y, x)."""

    @property
    def block(self) -> int:
        """Tiles begin at rows and columns that are multiples of this number: so a distance is equal in all layouts."""

    @property
    def frees_lock(self) -> bool:
        """Whether its arithmetic leaves the interpreter lock to other threads."""

    def prepare(self, things: Any) -> Any:
        """The things in the form in which `tile` compares them."""

    def tile(self, new: Any, rows: slice, old: Any, columns: slice, own: bool) -> Array:
        """Distances between some of the new and some of the old; `own`: the new are the old."""


class ThingSource(Protocol):
    """Where the things that are compared come from."""

    def __len__(self) -> int: ...

    def things(self) -> Any:
        """All things, in memory."""


@dataclass(frozen=True)
class Held:
    """Things in memory; they travel to the workers by value."""

    all: Any

    def __len__(self) -> int:
        return len(self.all)

    def things(self) -> Any:
        """All things."""
        return self.all


@dataclass(frozen=True)
class RowsOf:
    """Vectors that a worker reads for itself."""

    source: RowSource

    def __len__(self) -> int:
        return self.source.shape[0]

    def things(self) -> Array:
        """All rows, read now."""
        return self.source.rows(0, self.source.shape[0])


Sums = tuple[int, np.ndarray]
"""The number of the first checksum that a tile adds to, and what it adds to that one and the next ones."""


class Sink(Protocol):
    """The place that workers put their tiles in."""

    def put(self, row: int, column: int, values: np.ndarray, layout: Layout) -> Sums | None:
        """Keep a tile whose first entry is at (row, column).

        Returned is what it adds to the checksums of the matrix's rows, or None where the sink has none.
        """

    def sync(self) -> None:
        """Write to disk all that was put from rank 0's host."""


@dataclass(frozen=True)
class PairsRecipe:
    """What a worker makes `Pairs` of: old things, new ones if there are any, the metric, and where the tiles go."""

    old: ThingSource
    new: ThingSource | None
    metric: Metric
    sink: Sink | None  # None: back to rank 0

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows (new things) and columns (old things) the matrix has."""
        return len(self.new or self.old), len(self.old)

    @property
    def symmetric(self) -> bool:
        """Whether one half of the matrix is the other's mirror image."""
        return self.new is None and self.metric.symmetric

    def load(self) -> Pairs:
        """The things ready to be compared, as a worker holds them."""
        return Pairs(self)


class Pairs:
    """Things ready to be compared."""

    def __init__(self, recipe: PairsRecipe) -> None:
        self.metric, self.sink = recipe.metric, recipe.sink
        self.old = self.metric.prepare(recipe.old.things())
        self.new = self.old if recipe.new is None else self.metric.prepare(recipe.new.things())
        self.own = recipe.new is None

    def tile(self, tile: Tile) -> Array:
        """The distances of a tile; those that are too large for a number are refused."""
        a, b, c, d = tile
        with np.errstate(over="ignore", invalid="ignore"):
            D = self.metric.tile(self.new, slice(a, b), self.old, slice(c, d), self.own)
            if not np.isfinite(D.sum()) and not np.isfinite(D).all():
                i, j = (int(k) for k in np.argwhere(~np.isfinite(D))[0])
                raise UsersFaultError(
                    f"The distance of rows {a + i + 1} and {c + j + 1} is too large for a number: scale the data."
                )
        return D


def seconds_a_pair(pairs: Pairs, _: None) -> float:
    """How many seconds a pair costs on this worker, from ever larger squares until one takes long enough to measure.

    Where a function raises it will do so again in its tile, and be named there.
    """
    random = np.random.default_rng(0)
    counts = len(pairs.new), len(pairs.old)
    side, most, seconds = 1, min(*counts, LONGEST_SIDE), 0.0
    try:
        for warm in (False, *[True] * (1 + int(math.log2(most)))):
            a, c = (int(random.integers(0, count - side + 1)) for count in counts)
            began = time.perf_counter()
            with np.errstate(all="ignore"):
                pairs.metric.tile(pairs.new, slice(a, a + side), pairs.old, slice(c, c + side), False)
            seconds = time.perf_counter() - began
            if warm and (seconds > BRIEF or 2 * side > most):
                break
            side *= 2 if warm else 1
    except Exception:
        return UNKNOWN
    return seconds / side**2


def measured(backend: Backend) -> float:
    """How many seconds a pair costs on one of the workers."""
    return float(dict(backend.map(seconds_a_pair, [None]))[0])


def distance_tile(pairs: Pairs, tile: Tile, layout: Layout) -> Array | list[Sums]:
    """Compute one tile and put it in its place (and its mirror image in its own); without a sink, send it back.

    Returned are what the tile adds to the checksums of the matrix's rows, or its distances.
    """
    values = pairs.tile(tile)
    return values if pairs.sink is None else place(pairs.sink, tile, values, layout)


def place(sink: Sink, tile: Tile, values: Array, layout: Layout) -> list[Sums]:
    """Put a tile in its place, and its mirror image in its own; returned is what both add to the rows' checksums."""
    a, _, c, _ = tile
    sums = [sink.put(a, c, values, layout)]
    if layout.halved and a != c:
        sums.append(sink.put(c, a, values.T, layout))
    return [some for some in sums if some is not None]


def compute_tiles(
    recipe: PairsRecipe, backend: Backend, run: Run | None = None, home: Sink | None = None
) -> tuple[Layout, np.ndarray]:
    """Compute all tiles that an earlier attempt has not finished; those that are sent back go to `home`.

    Returned are the layout of the tiles, and the checksums of the rows (zeros where the sink has none).
    """
    run = run or QuietRun()
    shape, state = recipe.shape, run.restored()
    backend.share(recipe)
    if state is None:
        layout = Layout.of_matrix(shape, recipe.symmetric, recipe.metric.block, measured(backend))
    else:
        layout = Layout.from_numbers(state["layout"])
    flush = (lambda: None) if home is None else partial(backend.patiently, home.sync)
    tiles = MapOfTiles(shape, layout, state, home, flush)
    tiles.work_off(backend, run, partial(distance_tile, layout=layout))
    return layout, tiles.sums


class MapOfTiles(ResumableMap):
    """The tiles of a matrix, which go straight to its file; what is kept here are the checksums of its rows."""

    def __init__(
        self, shape: tuple[int, int], layout: Layout, state: State | None, home: Sink | None, flush: Callable[[], None]
    ) -> None:
        super().__init__(Tiles(layout, shape), f"{shape[0]:,} x {shape[1]:,}, tile", state)
        self.layout, self.home, self.flush = layout, home, flush
        self.sums = np.zeros(shape[0], np.uint64) if state is None else np.array(state["sums"], np.uint64)

    def keep(self, number: int, result: Array | list[Sums]) -> None:
        """Put a tile that was sent back in its place, and add what tiles add to the checksums of the rows."""
        if isinstance(result, np.ndarray):
            result = [] if self.home is None else place(self.home, self.tasks[number], result, self.layout)
        for first, added in result:
            self.sums[first : first + len(added)] += added

    def arrays(self) -> Arrays:
        """The layout and the checksums, after the tiles are on disk: a checkpoint names no tile that is not there."""
        self.flush()
        return {"layout": self.layout.as_numbers(), "sums": self.sums}
