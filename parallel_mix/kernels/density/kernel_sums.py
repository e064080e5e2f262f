"""Sums of Gaussian kernels in log space.

Lengths are in units of the bandwidth, so a kernel is exp(-|y - x|^2 / 2) and a Gaussian's normalising constant is
left to whoever reports a density. Everything an ascent needs of a point y against a set of kernels x_i with
weights w_i comes from two matrix products and one `exp`:

    exponents   E = [1, y, -|y|^2/2 - o] @ [log w - |x|^2/2, x, 1]^T      (o: an offset a row, near log f(y))
    sums        exp(E) @ [x, 1, |x|^2]  =  (sum p x, sum p, sum p |x|^2)

Both take their columns from one table. A second table in single precision gives the same sums to four digits in half
the time: good enough while an ascent is far from its end.

Sums of disjoint sets of kernels add (`add_sums`): that is Approach I.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROWS_AT_ONCE = 256
"""Start points of a block whose sums come from one pair of products."""
PAIRS_AT_ONCE = 262_144
"""Pairs of a start point and a kernel whose exponents are in memory together."""
FEW_KERNELS = 512
"""Among fewer kernels than these, none is left out: looking costs as much as summing."""
EXPANSION_LIMIT = 2.0**26
"""Largest |x|^2/2 for which the expansion of |y - x|^2 keeps eight digits; beyond it differences are taken directly."""
SINGLE_LIMIT = 2.0**12
"""Largest |x|^2/2 at which single precision keeps three or four digits of a kernel's weight."""
SINGLE_ERROR = 0.01
"""The largest error of an exponent in single precision, by which more kernels are kept than must be."""
ROWS_FOR_PRODUCTS = 8
"""Second moments of few start points, at most one for so many columns, are summed without a table of products."""
MOST_PRODUCTS = 16_777_216
"""Products of coordinates that are kept for the next sums (64 MB); more are made again, a tile at a time."""
LEFT_OUT = 23.0
"""Kernels are left out where they add less than e^-LEFT_OUT of the density."""
NEGLIGIBLE = 1e-14
"""Share of the density below which a kernel does not matter to its curvature."""


@dataclass(frozen=True)
class ScaledKernels:
    """Kernels at one bandwidth, laid out for the two products."""

    table: Array  # (n, d + 3): log w - |x|^2/2, x, 1, |x|^2
    single: NDArray[np.float32] | None  # the table in single precision, where that is precise enough
    log_weights: Array
    direct: bool  # far from the origin: take differences instead of expanding the square

    def __len__(self) -> int:
        return len(self.table)

    @property
    def x(self) -> Array:
        """Where the kernels are, (n, d) in bandwidths."""
        return self.table[:, 1:-2]

    def products(self, some: slice) -> Array:
        """The products of any two coordinates of some kernels, (k, d (d + 1)/2); all are kept where they are few."""
        n, d = self.x.shape
        return self._all_products[some] if n * d * d <= MOST_PRODUCTS else self._products_of(self.x[some])

    @cached_property
    def _all_products(self) -> Array:
        return self._products_of(self.x)

    @staticmethod
    def _products_of(x: Array) -> Array:
        n, d = x.shape
        products = np.empty((n, d * (d + 1) // 2))
        for k, columns in triangle_rows(d):
            np.multiply(x[:, [k]], x[:, k:], out=products[:, columns])
        return products

    def only(self, which: np.ndarray) -> ScaledKernels:
        """The kernels of these numbers alone."""
        single = None if self.single is None else self.single[which]
        return ScaledKernels(self.table[which], single, self.log_weights[which], self.direct)


def scale_kernels(points: Array, log_weights: Array, sigma: float) -> ScaledKernels:
    """Lay out kernels at `points` (centred data) with bandwidth `sigma`."""
    n, d = points.shape
    table = np.empty((n, d + 3))
    x = np.divide(points, sigma, out=table[:, 1 : d + 1])
    table[:, d + 1] = 1.0
    squares = table[:, d + 2] = np.einsum("ij,ij->i", x, x)
    table[:, 0] = log_weights - squares / 2
    farthest = squares.max(initial=0.0) / 2
    single = table.astype(np.float32) if farthest < SINGLE_LIMIT else None
    return ScaledKernels(table, single, log_weights, bool(farthest > EXPANSION_LIMIT))


def kernel_sums(
    starts: Array, offset: Array, kernels: ScaledKernels, coarse: bool = False, curved: bool = False
) -> Array:
    """Sums over the kernels for each start point y: (m, d + 3) = sum p (x - y), sum p, sum p |x - y|^2, offset.

    p_i = w_i exp(-|y - x_i|^2/2 - offset). An offset at most a few hundred from log f(y) will do (few tens where
    `coarse`, where four digits are enough); where it proves too far off (sums that overflow or vanish) the largest
    exponent takes its place. Where `curved`, which Approach I alone asks for, the upper triangle of
    sum p (x - y)(x - y)^T stands before the offset.
    """
    if kernels.direct or (curved and len(starts) * ROWS_FOR_PRODUCTS <= starts.shape[1]):
        sums = _direct_sums(starts, offset, kernels, curved)
    else:
        blocks = [slice(a, a + ROWS_AT_ONCE) for a in range(0, len(starts), ROWS_AT_ONCE)]
        sums_of_blocks = [_expanded_sums(starts[rows], offset[rows], kernels, coarse, curved) for rows in blocks]
        sums = sums_of_blocks[0] if len(sums_of_blocks) == 1 else np.concatenate(sums_of_blocks)
    lost = _lost(sums, starts.shape[1])
    if lost.size and coarse:  # too far away for the range of single precision
        sums[lost] = kernel_sums(starts[lost], offset[lost], kernels, curved=curved)
    elif lost.size:
        sums[lost] = _direct_sums(starts[lost], _highest_exponents(starts[lost], kernels), kernels, curved)
    return sums


def triangle_rows(d: int) -> Iterator[tuple[int, slice]]:
    """The number of each row of a d x d matrix, and the place of its part of the upper triangle, laid out in a line."""
    stop = 0
    for k in range(d):
        start, stop = stop, stop + d - k
        yield k, slice(start, stop)


def unpack_moments(sums: Array, d: int) -> Array:
    """The matrices sum p (x - y)(x - y)^T, (m, d, d), of sums that were `curved`."""
    triangles = sums[:, d + 2 : -1]
    moments = np.empty((len(sums), d, d))
    for k, columns in triangle_rows(d):
        moments[:, k, k:] = moments[:, k:, k] = triangles[:, columns]
    return moments


def _lost(sums: Array, d: int) -> np.ndarray:
    """The numbers of the rows whose sums overflowed or vanished."""
    total = sums[:, d]
    return np.flatnonzero(~(np.isfinite(sums[:, : d + 2]).all(axis=1) & (total > 0.0)))


def reach(most: float, log_density: Any) -> Any:
    """How far a kernel may be, in bandwidths, and matter: all beyond add less than e^-23 (1e-10) of the density.

    `most` is the log of the number of kernels times the largest weight.
    """
    return np.sqrt(2.0 * np.maximum(LEFT_OUT + most - log_density, 0.0))


def nearby_kernels(points: Array, log_density: Array, kernels: ScaledKernels, slack: float) -> ScaledKernels:
    """The kernels that matter to any of the points while they move by no more than `slack`.

    `log_density` is a lower bound; it does not fall along an ascent.
    """
    n = len(kernels)
    if kernels.direct or n < FEW_KERNELS or not np.isfinite(log_density).all():
        return kernels
    farthest = slack + reach(np.log(n) + kernels.log_weights.max(), log_density)
    squares = np.einsum("ij,ij->i", points, points)
    table = kernels.table if kernels.single is None else kernels.single
    augmented = np.column_stack([np.ones(len(points)), points, (farthest**2 - squares) / 2.0]).astype(table.dtype)
    least = (kernels.log_weights - SINGLE_ERROR).astype(table.dtype)
    near = np.zeros(n, dtype=bool)
    width = PAIRS_AT_ONCE // ROWS_AT_ONCE
    for a in range(0, n, width):
        left = table[a : a + width, :-1]
        for b in range(0, len(points), ROWS_AT_ONCE):
            rows = augmented[b : b + ROWS_AT_ONCE]
            inside = _scratch(len(rows), len(left), table.dtype)
            np.matmul(rows, left.T, out=inside)
            near[a : a + width] |= inside.max(axis=0) >= least[a : a + width]
    if 2 * np.count_nonzero(near) > n:
        return kernels
    return kernels.only(near)


def add_sums(one: Array, other: Array) -> Array:
    """Add sums over two disjoint sets of kernels, whose offsets may differ."""
    if np.array_equal(one[:, -1], other[:, -1]):
        same: Array = one + other
        same[:, -1] = one[:, -1]
        return same
    offset = np.maximum(one[:, -1], other[:, -1])
    result: Array = one * np.exp(one[:, -1] - offset)[:, None]
    result += other * np.exp(other[:, -1] - offset)[:, None]
    result[:, -1] = offset
    return result


_room = threading.local()


def _scratch(rows: int, columns: int, dtype: np.dtype[Any]) -> np.ndarray:
    """A matrix to write into. Each thread has its own memory for it: fresh memory a tile costs more than the tile."""
    if not hasattr(_room, "memory"):
        _room.memory = np.empty(PAIRS_AT_ONCE)
    memory: np.ndarray = _room.memory.view(dtype)[: rows * columns]
    return memory.reshape(rows, columns)


def _expanded_sums(starts: Array, offset: Array, kernels: ScaledKernels, coarse: bool, curved: bool) -> Array:
    """The sums over all kernels by the two products: about the origin first, then moved to the start points."""
    m, d = starts.shape
    table = kernels.single if coarse and kernels.single is not None else kernels.table
    squares = np.einsum("ij,ij->i", starts, starts)
    augmented = np.empty((m, d + 2), dtype=table.dtype)
    augmented[:, 0] = 1.0
    augmented[:, 1 : d + 1] = starts
    augmented[:, d + 1] = -0.5 * squares - offset
    about_origin = np.zeros((m, d + 2 + (d * (d + 1) // 2 if curved else 0)))
    out = np.empty((m, about_origin.shape[1] + 1))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        width = PAIRS_AT_ONCE // m
        for a in range(0, len(table), width):
            tile = table[a : a + width]
            p = _scratch(m, len(tile), table.dtype)
            np.matmul(augmented, tile[:, :-1].T, out=p)
            np.exp(p, out=p)
            about_origin[:, : d + 2] += p @ tile[:, 1:]
            if curved:
                about_origin[:, d + 2 :] += p @ kernels.products(slice(a, a + width))
        first, total = about_origin[:, :d], about_origin[:, [d]]
        out[:, :d] = first - total * starts
        out[:, d] = total[:, 0]
        cross = np.einsum("ij,ij->i", starts, first)
        out[:, d + 1] = about_origin[:, d + 1] - 2.0 * cross + squares * total[:, 0]
        if curved:
            out[:, d + 2 : -1] = about_origin[:, d + 2 :]
            for k, columns in triangle_rows(d):
                moved = starts[:, [k]] * first[:, k:]
                moved += out[:, [k]] * starts[:, k:]
                out[:, d + 2 : -1][:, columns] -= moved
    out[:, -1] = offset
    return out


def _direct_sums(starts: Array, offset: Array, kernels: ScaledKernels, curved: bool) -> Array:
    """The sums over all kernels, from plain differences and a start point at a time: slow, and exact far from 0."""
    m, d = starts.shape
    upper = np.triu_indices(d)
    out = np.empty((m, d + 3 + (len(upper[0]) if curved else 0)))
    out[:, -1] = offset
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for row, start in enumerate(starts):
            differences = kernels.x - start
            squares = np.einsum("ij,ij->i", differences, differences)
            p = np.exp(kernels.log_weights - squares / 2 - offset[row])
            squares[p == 0.0] = 0.0  # 0 times infinity would be NaN
            out[row, :d] = p @ differences
            out[row, d] = p.sum()
            out[row, d + 1] = p @ squares
            if curved:
                heavy = p > NEGLIGIBLE * p.sum()
                close = differences[heavy] * np.sqrt(p[heavy])[:, None]
                out[row, d + 2 : -1] = (close.T @ close)[upper]
    return out


def _highest_exponents(starts: Array, kernels: ScaledKernels) -> Array:
    """The largest of log w - |y - x|^2/2 for each start point, from plain differences."""
    highest = np.empty(len(starts))
    with np.errstate(over="ignore"):
        for row, start in enumerate(starts):
            differences = kernels.x - start
            squares = np.einsum("ij,ij->i", differences, differences)
            highest[row] = (kernels.log_weights - squares / 2).max()
    return highest
