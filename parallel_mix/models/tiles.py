"""Distances tile by tile, each put where it belongs by whoever computed it; tiles are cut by what a pair costs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import TaskError
from parallel_mix.kernels.density import Array
from parallel_mix.models.points import RowSource
from parallel_mix.models.run import HowFar, QuietRun, Run, State

Tile = tuple[int, int, int, int]
"""Rows a..b, columns c..d."""

MIRRORED = 2e-8
"""Seconds that a pair must cost for its mirror image to be worth writing, in pieces as short as a tile is wide."""
STRIPE = (256, 16_384)
LONGEST_SIDE = 1024
TILES = 200
BRIEF, LONG = 0.005, 0.25
"""Seconds that a tile should take."""
UNKNOWN = 1e-5


class Metric(Protocol):
    """A distance between things of one kind, with what it needs to know of all of them."""

    @property
    def symmetric(self) -> bool:
        """d(x, y) is d(y, x)."""

    @property
    def block(self) -> int:
        """Tiles begin at multiples of this: then a distance is the same in all of them."""

    @property
    def frees_lock(self) -> bool:
        """Its arithmetic leaves the interpreter lock to other threads."""

    def prepare(self, things: Any) -> Any:
        """The things as they are compared."""

    def tile(self, new: Any, rows: slice, old: Any, columns: slice, own: bool) -> Array:
        """Distances between some of the new and some of the old; `own`: the new are the old."""


class ThingSource(Protocol):
    """Where the things that are compared come from."""

    def __len__(self) -> int: ...

    def things(self) -> Any:
        """All of them."""


@dataclass(frozen=True)
class Held:
    """Things in memory; they travel to the workers by value."""

    all: Any

    def __len__(self) -> int:
        return len(self.all)

    def things(self) -> Any:
        return self.all


@dataclass(frozen=True)
class RowsOf:
    """Vectors that a worker reads for itself."""

    source: RowSource

    def __len__(self) -> int:
        return self.source.shape[0]

    def things(self) -> Array:
        return self.source.rows(0, self.source.shape[0])


class Sink(Protocol):
    """Where workers put their tiles."""

    def put(self, row: int, column: int, values: np.ndarray) -> None:
        """Keep a tile whose first entry is at (row, column)."""

    def sync(self) -> None:
        """Make sure of all that was put from rank 0's host."""


@dataclass(frozen=True)
class PairsRecipe:
    """What a worker needs: the things, the new ones where there are any, the metric, and where the tiles go."""

    old: ThingSource
    new: ThingSource | None
    metric: Metric
    sink: Sink | None  # None: back to rank 0

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return len(self.new or self.old), len(self.old)

    @property
    def symmetric(self) -> bool:
        """True where one half of the matrix is the other's mirror image."""
        return self.new is None and self.metric.symmetric

    def load(self) -> Pairs:
        return Pairs(self)


class Pairs:
    """Things ready to be compared."""

    def __init__(self, recipe: PairsRecipe) -> None:
        self.metric, self.sink = recipe.metric, recipe.sink
        self.old = self.metric.prepare(recipe.old.things())
        self.new = self.old if recipe.new is None else self.metric.prepare(recipe.new.things())
        self.own = recipe.new is None


@dataclass(frozen=True)
class Layout:
    """How a matrix is cut into tiles."""

    height: int
    width: int
    halved: bool = False  # tiles on and above the diagonal only; the others are their mirror images

    def tiles(self, shape: tuple[int, int]) -> list[Tile]:
        """All tiles, row after row."""
        n, m = shape
        return [
            (a, min(a + self.height, n), c, min(c + self.width, m))
            for a in range(0, n, self.height)
            for c in range(a if self.halved else 0, m, self.width)
        ]

    def as_numbers(self) -> list[int]:
        """As a checkpoint keeps it: a run that goes on has the tiles of the one before."""
        return [self.height, self.width, int(self.halved)]

    @classmethod
    def from_numbers(cls, kept: Any) -> Layout:
        """The layout of a checkpoint."""
        height, width, halved = (int(k) for k in kept)
        return cls(height, width, bool(halved))

    @classmethod
    def of_matrix(cls, shape: tuple[int, int], symmetric: bool, block: int, seconds: float) -> Layout:
        """Squares; or where pairs are cheap (`seconds` each) stripes, which are written in long pieces."""
        if seconds < MIRRORED:
            return cls(*STRIPE)
        pairs = shape[0] * shape[1] / (2 if symmetric else 1)
        side = 2 ** round(math.log2(task_seconds(pairs * seconds) / seconds) / 2)
        side = max(min(side, LONGEST_SIDE), block)
        return cls(side, side, symmetric)

    @classmethod
    def of_neighbours(cls, shape: tuple[int, int], block: int, seconds: float) -> Layout:
        """A task is all tiles of the same rows."""
        n, m = shape
        rows = round(task_seconds(n * m * seconds) / (m * seconds * block)) * block
        return cls(max(min(rows, LONGEST_SIDE), block), STRIPE[1])


def task_seconds(total: float) -> float:
    """How long a task should take, of a job of so many seconds."""
    return min(max(total / TILES, BRIEF), LONG)


def seconds_a_pair(pairs: Pairs, _: None) -> float:
    """What a pair costs here: by squares, ever larger until their time can be told.

    Where a function raises it will do so again in its tile, and be named there.
    """
    random = np.random.default_rng(0)
    counts = len(pairs.new), len(pairs.old)
    side, most, seconds = 1, min(*counts, LONGEST_SIDE), 0.0
    try:
        for warm in (False, *[True] * (1 + int(math.log2(most)))):
            a, c = (int(random.integers(0, count - side + 1)) for count in counts)
            began = time.perf_counter()
            pairs.metric.tile(pairs.new, slice(a, a + side), pairs.old, slice(c, c + side), False)
            seconds = time.perf_counter() - began
            if warm and (seconds > BRIEF or 2 * side > most):
                break
            side *= 2 if warm else 1
    except Exception:
        return UNKNOWN
    return seconds / side**2


def measured(backend: Backend) -> float:
    """What a pair costs on some worker."""
    return float(dict(backend.map(seconds_a_pair, [None]))[0])


def distance_tile(pairs: Pairs, tile: Tile, halved: bool) -> Array | None:
    """One tile: computed, and put in its place (and its mirror image in its own), or sent back."""
    a, b, c, d = tile
    values = pairs.metric.tile(pairs.new, slice(a, b), pairs.old, slice(c, d), pairs.own)
    if pairs.sink is None:
        return values
    place(pairs.sink, tile, values, halved)
    return None


def place(sink: Sink, tile: Tile, values: Array, halved: bool) -> None:
    """Put a tile in its place, and its mirror image in its own."""
    a, _, c, _ = tile
    sink.put(a, c, values)
    if halved and a != c:
        sink.put(c, a, values.T)


def compute_tiles(recipe: PairsRecipe, backend: Backend, run: Run | None = None, home: Sink | None = None) -> None:
    """All tiles that an earlier attempt has not finished; those that are sent back go to `home`."""
    run = run or QuietRun()
    shape, state = recipe.shape, run.restored()
    backend.share(recipe)
    if state is None:
        layout = Layout.of_matrix(shape, recipe.symmetric, recipe.metric.block, measured(backend))
    else:
        layout = Layout.from_numbers(state["layout"])
    tiles = layout.tiles(shape)
    done = np.zeros(len(tiles), dtype=bool) if state is None else np.array(state["tiles"], dtype=bool)
    left = np.flatnonzero(~done)

    def how_far() -> HowFar:
        return float(done.sum()), float(len(tiles)), f"{shape[0]:,} x {shape[1]:,}, tile {int(done.sum())}/{len(tiles)}"

    def ledger() -> State:
        if home is not None:  # first the tiles, then the word that they are there
            home.sync()
        return {"done": int(done.sum()), "tiles": done, "layout": layout.as_numbers()}

    run.offer(ledger)
    try:
        for index, values in backend.map(partial(distance_tile, halved=layout.halved), [tiles[k] for k in left]):
            if values is not None and home is not None:
                place(home, tiles[left[index]], values, layout.halved)
            done[left[index]] = True
            run.report(how_far)
            run.offer(ledger)
    except TaskError as error:
        raise error.renumbered(int((~done[: left[error.failure.task]]).sum())) from None
