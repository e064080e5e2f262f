"""Distances between all pairs, tile by tile, each written where it belongs by whoever computed it."""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError, TaskError
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.vector_distances import METRICS, VectorMetric, vector_metric
from parallel_mix.models.points import ArraySource, RowSource
from parallel_mix.models.run import HowFar, QuietRun, Run, State

TILE = 1024

Tile = tuple[int, int, int, int]
"""Rows a..b, columns c..d."""


class Sink(Protocol):
    """Where workers put their tiles."""

    def put(self, row: int, column: int, values: np.ndarray) -> None:
        """Keep a tile whose first entry is at (row, column)."""


@dataclass(frozen=True)
class PairsRecipe:
    """What a worker needs: the rows, the new rows where there are any, the metric, and where the tiles go."""

    old: RowSource
    new: RowSource | None
    metric: VectorMetric
    sink: Sink | None  # None: back to rank 0

    def load(self) -> Pairs:
        return Pairs(self)


class Pairs:
    """Rows ready to be compared."""

    def __init__(self, recipe: PairsRecipe) -> None:
        self.metric, self.sink = recipe.metric, recipe.sink
        self.old = self.metric.prepare(_all(recipe.old))
        self.new = self.old if recipe.new is None else self.metric.prepare(_all(recipe.new))
        self.symmetric = recipe.new is None


def _all(source: RowSource) -> Array:
    return source.rows(0, source.shape[0])


def cut(shape: tuple[int, int], symmetric: bool, side: int = TILE) -> list[Tile]:
    """Tiles of a matrix, those on and above the diagonal where it is symmetric."""
    n, m = shape
    return [
        (a, min(a + side, n), c, min(c + side, m))
        for a in range(0, n, side)
        for c in range(a if symmetric else 0, m, side)
    ]


def distance_tile(pairs: Pairs, tile: Tile) -> Array | None:
    """One tile: computed, and put in its place (and its mirror image in its own), or sent back."""
    a, b, c, d = tile
    same = pairs.symmetric and a == c
    values = pairs.metric.tile(pairs.new[a:b], pairs.old[c:d], same)
    if pairs.sink is None:
        return values
    place(pairs.sink, tile, values, pairs.symmetric)
    return None


def place(sink: Sink, tile: Tile, values: Array, symmetric: bool) -> None:
    """Put a tile in its place, and its mirror image in its own."""
    a, _, c, _ = tile
    sink.put(a, c, values)
    if symmetric and a != c:
        sink.put(c, a, values.T)


def compute_tiles(recipe: PairsRecipe, backend: Backend, run: Run | None = None, home: Sink | None = None) -> None:
    """All tiles that an earlier attempt has not finished; those that are sent back go to `home`."""
    run = run or QuietRun()
    shape = ((recipe.new or recipe.old).shape[0], recipe.old.shape[0])
    tiles = cut(shape, recipe.new is None)
    state = run.restored()
    done = np.zeros(len(tiles), dtype=bool) if state is None else np.array(state["tiles"], dtype=bool)
    left = np.flatnonzero(~done)
    backend.share(recipe)

    def how_far() -> HowFar:
        return float(done.sum()), float(len(tiles)), f"{shape[0]:,} x {shape[1]:,}, tile {int(done.sum())}/{len(tiles)}"

    def ledger() -> State:
        return {"done": int(done.sum()), "tiles": done}

    try:
        for index, values in backend.map(distance_tile, [tiles[k] for k in left]):
            if values is not None and home is not None:
                place(home, tiles[left[index]], values, recipe.new is None)
            done[left[index]] = True
            run.report(how_far)
            run.offer(ledger)
    except TaskError as error:  # by its number among those that are left, as a run that goes on will count
        before = int((~done[: left[error.failure.task]]).sum())
        raise TaskError(replace(error.failure, task=before)) from None


class SharedArray:
    """A matrix in memory that forked processes write to."""

    def __init__(self, shape: tuple[int, int]) -> None:
        room = mmap.mmap(-1, max(shape[0] * shape[1] * 8, 1))
        self.values: Array = np.frombuffer(room, dtype=np.float64, count=shape[0] * shape[1]).reshape(shape)

    def put(self, row: int, column: int, values: np.ndarray) -> None:
        m, k = values.shape
        self.values[row : row + m, column : column + k] = values


def pairwise(
    X: Any,
    Y: Any = None,
    metric: str = "euclidean",
    *,
    p: float = 2.0,
    sigma: float = 1.0,
    backend: Backend | None = None,
) -> Array:
    """Distances between the rows of Y and those of X (of X to each other without Y), on all cores by default."""
    X = _numbers(X, "X")
    Y = None if Y is None else _numbers(Y, "Y")
    result = SharedArray((len(X if Y is None else Y), len(X)))
    own = backend is None
    used = backend or SerialBackend()
    recipe = PairsRecipe(
        ArraySource(X),
        None if Y is None else ArraySource(Y),
        metric_for(metric, X, Y, p, sigma),
        result if own else None,
    )
    try:
        compute_tiles(recipe, used, home=result)
    finally:
        if own:
            used.close()
    return result.values


def metric_for(name: str, X: Array, Y: Array | None, p: float = 2.0, sigma: float = 1.0) -> VectorMetric:
    """The metric of a name, as it is on these rows."""
    if name not in METRICS:
        raise InputError(f"There is no metric {name!r}: use one of {', '.join(METRICS)}.")
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise InputError(f"The two tables have {X.shape[1]} and {Y.shape[1]} columns: give the same columns.")
    return vector_metric(name, X if Y is None else np.concatenate([X, Y]), p, sigma)


def _numbers(X: Any, name: str) -> Array:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size:
        raise InputError(f"{name} has shape {X.shape}: rows and columns are needed.")
    if not np.isfinite(X).all():
        raise InputError(f"{name} has values that are NaN or infinite.")
    return np.ascontiguousarray(X)
