"""The data points as workers see them: centred, scaled, and laid out as kernels at one bandwidth."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array, ScaledKernels, scale_kernels
from parallel_mix.models.core.sources import ROWS_A_BLOCK, RowSource, blocks_of_rows


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
        ranges = [(X.min(axis=0), X.max(axis=0)) for X in map(self.inward, blocks_of_rows(source))]
        low, high = np.min([low for low, _ in ranges], axis=0), np.max([high for _, high in ranges], axis=0)
        return replace(self, low=low, high=high)


def measure_frame(source: RowSource, standardize: bool) -> Frame:
    """Centre on the middle of each column's range (exact, whatever the order of rows), and measure the spread.

    Weights are counts of rows, so that the standard deviation divides by sum w - 1; weights that add to less than 2
    are proportions, and it divides by their sum.
    """
    n, d = source.shape
    w = source.weights()
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for X in blocks_of_rows(source):
        np.minimum(low, X.min(axis=0), out=low)
        np.maximum(high, X.max(axis=0), out=high)
    centre = low / 2 + high / 2
    reach = np.where(high > low, np.maximum(high - centre, centre - low), 1.0)
    if not (high > low).any():
        raise InputError(f"All {n} rows are equal: constant data have no clusters to find.")
    with np.errstate(over="ignore"):
        count = float(n) if w is None else float(w.sum())
    if not np.finfo(np.float64).tiny <= count < np.inf:
        raise InputError(
            f"The weights add to {count:g}, with which nothing can be computed: multiply them all by one number."
        )
    weight = np.full(n, 1.0 / n) if w is None else w / count
    correction = count / (count - 1.0) if count >= 2.0 else 1.0
    first, second = np.zeros(d), np.zeros(d)
    for start, X in zip(range(0, n, ROWS_A_BLOCK), blocks_of_rows(source), strict=True):
        first += weight[start : start + len(X)] @ ((X - centre) / reach)
    for start, X in zip(range(0, n, ROWS_A_BLOCK), blocks_of_rows(source), strict=True):
        second += weight[start : start + len(X)] @ ((X - centre) / reach - first) ** 2
    deviation = reach * np.sqrt(second * correction)
    deviation[high == low] = 0.0
    scale = np.where(deviation > 0.0, deviation, 1.0) if standardize else np.ones(d)
    spread = 1.0 if standardize else float(deviation.max())
    return Frame(centre, scale, spread, (low - centre) / scale, (high - centre) / scale)


@dataclass(frozen=True)
class PointsRecipe:
    """What a worker loads the points from: where the rows are, and their frame."""

    source: RowSource
    frame: Frame

    def load(self) -> Points:
        """The points as a worker holds them, none of them read yet."""
        return Points(self.source, self.frame)


class Points:
    """The context of both approaches: of the rows, a worker holds those that it was asked for."""

    def __init__(self, source: RowSource, frame: Frame) -> None:
        self.shape = source.shape
        self._source = source
        self._frame = frame
        self._lock = threading.Lock()
        self._rows: dict[tuple[int, int], Array] = {}
        self._kernels: dict[tuple[int, int], ScaledKernels] = {}
        self._sigma = 0.0
        self._making = threading.RLock()
        self._kept: dict[str, tuple[Any, Any]] = {}
        w = source.weights()
        with np.errstate(divide="ignore"):
            self.log_weights = np.full(self.shape[0], -np.log(self.shape[0])) if w is None else np.log(w / w.sum())

    def all_rows(self) -> Array:
        """All rows in the coordinates of the analysis."""
        rows = (0, self.shape[0])
        with self._lock:
            if rows not in self._rows:
                self._rows[rows] = self._frame.inward(self._source.rows(*rows))
            return self._rows[rows]

    def kept(self, name: Any, make: Callable[[], Any]) -> Any:
        """What `make` makes of the points, made once: the last thing of each name (the first part of `name`)."""
        with self._making:
            if self._kept.get(name[0], (None, None))[0] != name:
                self._kept[name[0]] = (name, make())
            return self._kept[name[0]][1]

    def kernels(self, sigma: float, start: int = 0, stop: int | None = None) -> ScaledKernels:
        """Kernels of rows start..stop (all by default) with bandwidth sigma; the last bandwidth's are kept."""
        rows = (start, self.shape[0] if stop is None else stop)
        with self._lock:
            if sigma != self._sigma:
                self._sigma, self._kernels = sigma, {}
            if rows not in self._rows:
                self._rows[rows] = self._frame.inward(self._source.rows(*rows))
            if rows not in self._kernels:
                self._kernels[rows] = scale_kernels(self._rows[rows], self.log_weights[slice(*rows)], sigma)
            return self._kernels[rows]
