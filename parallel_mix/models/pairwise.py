"""Distances between all pairs, tile by tile, each written where it belongs by whoever computed it."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError, TaskError
from parallel_mix.kernels import signatures
from parallel_mix.kernels.category_distances import ClassProbabilities
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.other_distances import CallableMetric, imported
from parallel_mix.kernels.signatures import Signatures
from parallel_mix.kernels.vector_distances import METRICS, vector_metric
from parallel_mix.models.points import RowSource
from parallel_mix.models.run import HowFar, QuietRun, Run, State

Tile = tuple[int, int, int, int]
"""Rows a..b, columns c..d."""


class Metric(Protocol):
    """A distance between things of one kind, with what it needs to know of all of them."""

    @property
    def symmetric(self) -> bool:
        """d(x, y) is d(y, x)."""

    @property
    def side(self) -> int:
        """Of a tile: what suits the cost of a pair. It is the same for all runs, as sums may depend on it."""

    def prepare(self, things: Any) -> Any:
        """The things as they are compared."""

    def tile(self, new: Any, rows: slice, old: Any, columns: slice, same: bool) -> Array:
        """Distances between some of the new and some of the old; `same`: these are the same things."""


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


def source_of(table: Any, rows: RowSource | None) -> ThingSource:
    """Things of a table as workers reach them."""
    if table.offsets is not None:
        return Held(Signatures(table.X, table.w, table.offsets))
    assert rows is not None  # noqa: S101
    return RowsOf(rows)


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
    def mirrored(self) -> bool:
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
        self.mirrored = recipe.mirrored


def cut(shape: tuple[int, int], symmetric: bool, side: int) -> list[Tile]:
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
    same = pairs.own and a == c
    values = pairs.metric.tile(pairs.new, slice(a, b), pairs.old, slice(c, d), same)
    if pairs.sink is None:
        return values
    place(pairs.sink, tile, values, pairs.mirrored)
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
    shape = len(recipe.new or recipe.old), len(recipe.old)
    tiles = cut(shape, recipe.mirrored, recipe.metric.side)
    state = run.restored()
    done = np.zeros(len(tiles), dtype=bool) if state is None else np.array(state["tiles"], dtype=bool)
    left = np.flatnonzero(~done)
    backend.share(recipe)

    def how_far() -> HowFar:
        return float(done.sum()), float(len(tiles)), f"{shape[0]:,} x {shape[1]:,}, tile {int(done.sum())}/{len(tiles)}"

    def ledger() -> State:
        if home is not None:  # first the tiles, then the word that they are there
            home.sync()
        return {"done": int(done.sum()), "tiles": done}

    try:
        for index, values in backend.map(distance_tile, [tiles[k] for k in left]):
            if values is not None and home is not None:
                place(home, tiles[left[index]], values, recipe.mirrored)
            done[left[index]] = True
            run.report(how_far)
            run.offer(ledger)
    except TaskError as error:
        raise error.renumbered(int((~done[: left[error.failure.task]]).sum())) from None


class SharedArray:
    """A matrix in memory that forked processes write to."""

    def __init__(self, shape: tuple[int, int]) -> None:
        room = mmap.mmap(-1, max(shape[0] * shape[1] * 8, 1))
        self.values: Array = np.frombuffer(room, dtype=np.float64, count=shape[0] * shape[1]).reshape(shape)

    def put(self, row: int, column: int, values: np.ndarray) -> None:
        m, k = values.shape
        self.values[row : row + m, column : column + k] = values

    def sync(self) -> None:
        """Memory needs none."""


def pairwise(
    X: Any,
    Y: Any = None,
    metric: str = "euclidean",
    *,
    p: float = 2.0,
    sigma: float = 1.0,
    backend: Backend | None = None,
) -> Array:
    """Distances between the rows of Y and those of X (of X to each other without Y), on all cores by default.

    For mallows and irm X and Y are `Signatures`; for vdm, give rows of class probabilities to sqeuclidean.
    """
    if input_kind(metric) != "signatures":
        X, Y = _numbers(X, "X"), None if Y is None else _numbers(Y, "Y")
    result = SharedArray((len(X if Y is None else Y), len(X)))
    own = backend is None
    used = backend or SerialBackend()
    recipe = PairsRecipe(
        Held(X),
        None if Y is None else Held(Y),
        metric_for(metric, _points(X), _points(Y), p, sigma),
        result if own else None,
    )
    try:
        compute_tiles(recipe, used, home=result)
    finally:
        if own:
            used.close()
    return result.values


def input_kind(metric: str) -> str:
    """What a metric compares: numbers, categories or signatures."""
    if ":" in metric:
        return "numbers"
    if metric in signatures.METRICS:
        return "signatures"
    if metric == "vdm":
        return "categories"
    if metric not in METRICS:
        raise InputError(
            f"There is no metric {metric!r}: use one of {', '.join((*METRICS, *signatures.METRICS, 'vdm'))}, or "
            "module:function of your own."
        )
    return "numbers"


def by_class(X: Array, y: Any, Y: Array | None) -> tuple[Array, Array | None]:
    """Rows of categories as vdm compares them: as probabilities of the classes of the (old) rows X."""
    if y is None:
        raise InputError("vdm needs the known classes of the rows: name their dataset or column with --labels.")
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise InputError(f"The two tables have {X.shape[1]} and {Y.shape[1]} columns: give the same columns.")
    known = ClassProbabilities(X, y)
    return known.rows(X), None if Y is None else known.rows(Y)


def metric_for(
    name: str, X: Array, Y: Array | None, p: float = 2.0, sigma: float = 1.0, symmetric: bool = False
) -> Metric:
    """The metric of a name, as it is on these rows."""
    kind = input_kind(name)
    if kind == "signatures":
        if Y is not None and Y.shape[1] != X.shape[1]:
            raise InputError(f"The points have {X.shape[1]} and {Y.shape[1]} coordinates: give the same.")
        return signatures.SignatureMetric(name)
    if ":" in name:
        imported(name)
        return CallableMetric(name, symmetric)
    name = "sqeuclidean" if kind == "categories" else name
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise InputError(f"The two tables have {X.shape[1]} and {Y.shape[1]} columns: give the same columns.")
    return vector_metric(name, X if Y is None else np.concatenate([X, Y]), p, sigma)


def _points(things: Any) -> Any:
    return things.values if isinstance(things, Signatures) else things


def _numbers(X: Any, name: str) -> Array:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size:
        raise InputError(f"{name} has shape {X.shape}: rows and columns are needed.")
    if not np.isfinite(X).all():
        raise InputError(f"{name} has values that are NaN or infinite.")
    return np.ascontiguousarray(X)
