"""Sums of Gaussian kernels in log space.

Lengths are in units of the bandwidth, so a kernel is exp(-|y - x|^2 / 2) and a Gaussian's normalising constant is
left to whoever reports a density. Everything an ascent needs of a point y against a set of kernels x_i with
weights w_i comes from two matrix products and one `exp`:

    exponents   E = [y, 1, -|y|^2/2 - o] @ [x, log w - |x|^2/2, 1]^T      (o: an offset a row, near log f(y))
    sums        exp(E) @ [x, 1, |x|^2]  =  (sum p x, sum p, sum p |x|^2)

Sums of disjoint sets of kernels add (`add_sums`): that is Approach I.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROWS_AT_ONCE = 256
PAIRS_AT_ONCE = 262_144
FEW_KERNELS = 512
EXPANSION_LIMIT = 2.0**26
"""Largest |x|^2/2 for which the expansion of |y - x|^2 keeps eight digits; beyond it differences are taken directly."""


@dataclass(frozen=True)
class ScaledKernels:
    """Kernels at one bandwidth, laid out for the two products."""

    left: Array  # (n, d + 2): x, log w - |x|^2/2, 1
    right: Array  # (n, d + 2): x, 1, |x|^2
    log_weights: Array
    direct: bool  # far from the origin: take differences instead of expanding the square


def scale_kernels(points: Array, log_weights: Array, sigma: float) -> ScaledKernels:
    """Lay out kernels at `points` (centred data) with bandwidth `sigma`."""
    n, d = points.shape
    left = np.empty((n, d + 2))
    right = np.empty((n, d + 2))
    np.divide(points, sigma, out=left[:, :d])
    squares = np.einsum("ij,ij->i", left[:, :d], left[:, :d])
    left[:, d] = log_weights - squares / 2
    left[:, d + 1] = 1.0
    right[:, :d] = left[:, :d]
    right[:, d] = 1.0
    right[:, d + 1] = squares
    return ScaledKernels(left, right, log_weights, bool(squares.max(initial=0.0) / 2 > EXPANSION_LIMIT))


def kernel_sums(starts: Array, offset: Array, kernels: ScaledKernels) -> Array:
    """Sums over the kernels for each start point y: (m, d + 3) = sum p (x - y), sum p, sum p |x - y|^2, offset.

    p_i = w_i exp(-|y - x_i|^2/2 - offset). An offset at most a few hundred from log f(y) will do; where it proves too
    far off (sums that overflow or vanish) the largest exponent takes its place.
    """
    m, d = starts.shape
    sums = np.empty((m, d + 3))
    one_pass = _direct_sums if kernels.direct else _expanded_sums
    for a in range(0, m, ROWS_AT_ONCE):
        rows = slice(a, a + ROWS_AT_ONCE)
        one_pass(starts[rows], offset[rows], kernels, sums[rows])
        total = sums[rows, d]
        lost = ~(np.isfinite(total) & (total > 0.0))
        if lost.any():
            which = a + np.flatnonzero(lost)
            again = np.empty((len(which), d + 3))
            _direct_sums(starts[which], _highest_exponents(starts[which], kernels), kernels, again)
            sums[which] = again
    return sums


def nearby_kernels(points: Array, log_density: Array, kernels: ScaledKernels, slack: float) -> ScaledKernels:
    """The kernels that matter to any of the points while they move by no more than `slack`.

    All that are left out add less than a rounding, e^-37, to the sum of any point. `log_density` is a lower bound; it
    does not fall along an ascent.
    """
    n = len(kernels.left)
    if kernels.direct or n < FEW_KERNELS or not np.isfinite(log_density).all():
        return kernels
    negligible = np.log(n) + 37.0
    reach = slack + np.sqrt(2.0 * np.maximum(negligible + kernels.log_weights.max() - log_density, 0.0))
    squares = np.einsum("ij,ij->i", points, points)
    augmented = np.column_stack([points, np.ones(len(points)), (reach**2 - squares) / 2.0])
    near = np.zeros(n, dtype=bool)
    width = PAIRS_AT_ONCE // ROWS_AT_ONCE
    for a in range(0, n, width):
        left = kernels.left[a : a + width]
        for b in range(0, len(points), ROWS_AT_ONCE):
            rows = augmented[b : b + ROWS_AT_ONCE]
            inside = _scratch(len(rows), len(left))
            np.matmul(rows, left.T, out=inside)
            near[a : a + width] |= inside.max(axis=0) >= kernels.log_weights[a : a + width]
    if 2 * np.count_nonzero(near) > n:
        return kernels
    return ScaledKernels(kernels.left[near], kernels.right[near], kernels.log_weights[near], kernels.direct)


def near_weights(point: Array, least: float, kernels: ScaledKernels) -> tuple[np.ndarray, Array]:
    """Kernels whose log w - |x - point|^2/2 is above `least`, and e to that less `least`."""
    d = len(point)
    if kernels.direct:
        differences = kernels.left[:, :d] - point
        exponents = kernels.log_weights - 0.5 * np.einsum("ij,ij->i", differences, differences)
    else:
        exponents = kernels.left @ np.concatenate([point, [1.0, -0.5 * (point @ point)]])
    near = np.flatnonzero(exponents > least)
    return near, np.exp(exponents[near] - least)


def add_sums(one: Array, other: Array) -> Array:
    """Add sums over two disjoint sets of kernels, whose offsets may differ."""
    offset = np.maximum(one[:, -1], other[:, -1])
    result: Array = one * np.exp(one[:, -1] - offset)[:, None]
    result += other * np.exp(other[:, -1] - offset)[:, None]
    result[:, -1] = offset
    return result


_room = threading.local()


def _scratch(rows: int, columns: int) -> Array:
    """A matrix to write into. Each thread has its own memory for it: fresh memory a tile costs more than the tile."""
    if not hasattr(_room, "memory"):
        _room.memory = np.empty(PAIRS_AT_ONCE)
    memory: Array = _room.memory[: rows * columns]
    return memory.reshape(rows, columns)


def _expanded_sums(starts: Array, offset: Array, kernels: ScaledKernels, out: Array) -> None:
    """The two products; the sums about the origin are moved to the start points at the end."""
    d = starts.shape[1]
    squares = np.einsum("ij,ij->i", starts, starts)
    augmented = np.empty((len(starts), d + 2))
    augmented[:, :d] = starts
    augmented[:, d] = 1.0
    augmented[:, d + 1] = -0.5 * squares - offset
    about_origin = np.zeros((len(starts), d + 2))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        width = PAIRS_AT_ONCE // len(starts)
        for a in range(0, len(kernels.left), width):
            left = kernels.left[a : a + width]
            p = _scratch(len(starts), len(left))
            np.matmul(augmented, left.T, out=p)
            np.exp(p, out=p)
            about_origin += p @ kernels.right[a : a + width]
        total = about_origin[:, d]
        out[:, :d] = about_origin[:, :d] - total[:, None] * starts
        out[:, d] = total
        cross = np.einsum("ij,ij->i", starts, about_origin[:, :d])
        out[:, d + 1] = about_origin[:, d + 1] - 2.0 * cross + squares * total
    out[:, d + 2] = offset


def _direct_sums(starts: Array, offset: Array, kernels: ScaledKernels, out: Array) -> None:
    """The same from plain differences, a start point at a time: slow, and exact far from the origin."""
    d = starts.shape[1]
    out[:, d + 2] = offset
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for row, start in enumerate(starts):
            differences = kernels.left[:, :d] - start
            squares = np.einsum("ij,ij->i", differences, differences)
            p = np.exp(kernels.log_weights - squares / 2 - offset[row])
            squares[p == 0.0] = 0.0  # 0 times infinity would be NaN
            out[row, :d] = p @ differences
            out[row, d] = p.sum()
            out[row, d + 1] = p @ squares


def _highest_exponents(starts: Array, kernels: ScaledKernels) -> Array:
    """The largest of log w - |y - x|^2/2 for each start point, from plain differences."""
    d = starts.shape[1]
    highest = np.empty(len(starts))
    with np.errstate(over="ignore"):
        for row, start in enumerate(starts):
            differences = kernels.left[:, :d] - start
            squares = np.einsum("ij,ij->i", differences, differences)
            highest[row] = (kernels.log_weights - squares / 2).max()
    return highest
