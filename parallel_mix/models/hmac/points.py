"""The data points as workers see them: centred, scaled, and laid out as kernels at one bandwidth."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array, ScaledKernels, scale_kernels
from parallel_mix.models.core.sources import Block, Measures, RowSource, blocks_of


@dataclass(frozen=True)
class Frame:
    """The coordinates of the analysis: (x - centre) / scale, column by column."""

    centre: Array
    scale: Array
    spread: float  # the largest standard deviation of a column (n - 1) in these coordinates
    low: Array = field(default_factory=lambda: np.zeros(0))  # (d) of the rows, in these coordinates
    high: Array = field(default_factory=lambda: np.zeros(0))  # (both of no length in the frame of a result)

    def inward(self, X: Array) -> Array:
        """Convert points from the coordinates of the data to those of the analysis."""
        result: Array = (X - self.centre) / self.scale
        return result

    def outward(self, Z: Array) -> Array:
        """Convert points from the coordinates of the analysis to those of the data."""
        result: Array = Z * self.scale + self.centre
        return result

    def over(self, source: RowSource) -> Frame:
        """The frame with the range of these rows."""
        blocks = (self.inward(source.rows(*block)) for block in blocks_of(source.shape[0]))
        ranges = [(X.min(axis=0), X.max(axis=0)) for X in blocks]
        low, high = np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)
        return replace(self, low=low, high=high)


def measure_frame(source: RowSource, standardize: bool, of_blocks: Measures | None = None) -> Frame:
    """Centre on the middle of each column's range (exact, whatever the order of rows), and measure the spread.

    Weights are counts of rows, so that the standard deviation divides by sum w - 1; weights that add to less than 2
    are proportions, and it divides by their sum. `of_blocks` lets others look at the blocks.
    """
    n, d = source.shape
    of_blocks = of_blocks or (lambda measure: (measure(source, block) for block in blocks_of(n)))
    low, high, count = np.full(d, np.inf), np.full(d, -np.inf), 0.0
    for some_low, some_high, weight in of_blocks(range_of):
        np.minimum(low, some_low, out=low)
        np.maximum(high, some_high, out=high)
        with np.errstate(over="ignore"):
            count += weight
    centre = low / 2 + high / 2
    reach = np.where(high > low, np.maximum(high - centre, centre - low), 1.0)
    if not (high > low).any():
        raise InputError(f"All {n} rows are equal: constant data have no clusters to find.")
    if not np.finfo(np.float64).tiny <= count < np.inf:
        raise InputError(
            f"The weights add to {count:g}, with which nothing can be computed: multiply them all by one number."
        )
    correction = count / (count - 1.0) if count >= 2.0 else 1.0
    scaled = partial(mean_of, centre=centre, reach=reach, count=count)
    mean = sum(of_blocks(partial(scaled, about=np.zeros(d), power=1)), start=np.zeros(d))
    square = sum(of_blocks(partial(scaled, about=mean, power=2)), start=np.zeros(d))
    deviation = reach * np.sqrt(square * correction)
    deviation[high == low] = 0.0
    scale = np.where(deviation > 0.0, deviation, 1.0) if standardize else np.ones(d)
    spread = 1.0 if standardize else float(deviation.max())
    return Frame(centre, scale, spread, (low - centre) / scale, (high - centre) / scale)


def range_of(source: RowSource, block: Block) -> tuple[Array, Array, float]:
    """The lowest and highest values of each column of a block, and its weight."""
    X, w = source.rows(*block), source.weights(*block)
    with np.errstate(over="ignore"):
        return X.min(axis=0), X.max(axis=0), float(len(X) if w is None else w.sum())


def mean_of(
    source: RowSource, block: Block, centre: Array, reach: Array, count: float, about: Array, power: int
) -> Array:
    """What a block adds to the mean of ((x - centre) / reach - about) to a power, column by column."""
    w = source.weights(*block)
    weight = np.full(block[1] - block[0], 1.0 / source.shape[0]) if w is None else w / count
    added: Array = weight @ ((source.rows(*block) - centre) / reach - about) ** power
    return added


@dataclass(frozen=True)
class PointsRecipe:
    """What a worker loads the points from: where the rows are, and their frame."""

    source: RowSource
    frame: Frame
    whole: bool = True  # whether a worker may hold all rows

    def load(self) -> Points:
        """The points as a worker holds them, none of them read yet."""
        return Points(self.source, self.frame, self.whole)


class Points:
    """The context of all approaches: of the rows, a worker holds those that it was asked for; none, if not `whole`."""

    def __init__(self, source: RowSource, frame: Frame, whole: bool = True) -> None:
        self.shape = source.shape
        self.whole = whole
        self._source = source
        self._frame = frame
        self._lock = threading.Lock()
        self._rows: dict[tuple[int, int], Array] = {}
        self._kernels: dict[tuple[int, int], ScaledKernels] = {}
        self._sigma = 0.0
        self._making = threading.RLock()
        self._kept: dict[str, tuple[Any, Any]] = {}

    @property
    def log_weights(self) -> Array:
        """The logarithm of the weight of each row, of weights that add to 1."""
        weights: Array = self.kept(("log weights",), lambda: self.log_weights_of(0, self.shape[0]))
        return weights

    def log_weights_of(self, start: int, stop: int) -> Array:
        """The logarithm of the weight of rows start..stop, of weights that add to 1."""
        w = self._source.weights(start, stop)
        if w is None:
            return np.full(stop - start, -np.log(self.shape[0]))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(w / self.kept(("weight",), self._weight)))

    def _weight(self) -> float:
        """The weight of all rows together."""
        blocks = (self._source.weights(*block) for block in blocks_of(self.shape[0]))
        return float(sum(w.sum() for w in blocks if w is not None))

    def all_rows(self) -> Array:
        """All rows in the coordinates of the analysis, which are kept."""
        rows = (0, self.shape[0])
        with self._lock:
            if rows not in self._rows:
                self._rows[rows] = self._frame.inward(self._source.rows(*rows))
            return self._rows[rows]

    def rows_of(self, start: int, stop: int) -> Array:
        """Rows start..stop in the coordinates of the analysis: of all where these are kept, else read anew."""
        return self.all_rows()[start:stop] if self.whole else self._frame.inward(self._source.rows(start, stop))

    def kept(self, name: Any, make: Callable[[], Any]) -> Any:
        """What `make` makes of the points, made once: the last thing of each name (the first part of `name`)."""
        with self._making:
            if self._kept.get(name[0], (None, None))[0] != name:
                self._kept[name[0]] = (name, make())
            return self._kept[name[0]][1]

    def kernels(self, sigma: float, start: int = 0, stop: int | None = None) -> ScaledKernels:
        """Kernels of rows start..stop (all by default) with bandwidth sigma; the last bandwidth's are kept."""
        rows = (start, self.shape[0] if stop is None else stop)
        if not self.whole:
            return scale_kernels(self.rows_of(*rows), self.log_weights_of(*rows), sigma)
        log_weights = self.log_weights[slice(*rows)]
        with self._lock:
            if sigma != self._sigma:
                self._sigma, self._kernels = sigma, {}
            if rows not in self._rows:
                self._rows[rows] = self._frame.inward(self._source.rows(*rows))
            if rows not in self._kernels:
                self._kernels[rows] = scale_kernels(self._rows[rows], log_weights, sigma)
            return self._kernels[rows]
