"""Sums over the kernels near one point, in compiled code.

Where an ascent slows down, a few hundred kernels of thousands matter to it. They are copied once, their coordinates
about a point nearby (the centre c), and then each sum takes a microsecond:

    p_i = w_i exp(-|y - x_i|^2 / 2 - offset) = exp(base_i + (x_i - c) (y - c) - |y - c|^2 / 2 - offset)

with base_i = log w_i - |x_i - c|^2 / 2. All are in double precision and keep it however far from the origin the data
are. Coordinates are laid out a column after the other: the loops over kernels take several at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density import kernel_sums
from parallel_mix.kernels.density.kernel_sums import Array

reach = compiled(kernel_sums.reach)
KERNELS_AT_ONCE = 512
"""Kernels whose products are summed while they are in the cache."""
LIGHT = 1e-10
"""Kernels that have less than this share of p together do not matter to its covariance."""
MOST = 2
"""Where more than one kernel in so many is near, none is copied."""
WIDE = 2.0**14
"""Squared distances from the centre below this lose at most four of sixteen digits."""
LARGEST_EXPONENT, FAR = 700.0, 1e250
"""Exponents farther from 0 than the first of these count as the first. Where a sum is larger than the second, or
smaller than 1 over it, the offset is changed so that the largest exponent is 0."""
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""The logarithm of 2 in two parts, whose products with small whole numbers are exact."""


class NearKernels(NamedTuple):
    """Kernels about a centre, column by column, with room for their weights; the first of them are in use."""

    centre: Array  # (d)
    x: Array  # (d, n) from the centre, in bandwidths
    log_weights: Array  # (n)
    base: Array  # (n)
    squares: Array  # (n) |x|^2
    p: Array  # (n)
    powers: Any  # (n) int64: 2^k as the bits of a double
    which: Any  # (n) int64
    number: int  # how many are in use
    widest: float  # the largest of the squares


@compiled
def room_for(n: int, d: int) -> NearKernels:
    """Room for n kernels of d columns."""
    x, some, powers, which = np.empty((d, n)), np.empty((4, n)), np.empty(n, np.int64), np.empty(n, np.int64)
    return NearKernels(np.zeros(d), x, some[0], some[1], some[2], some[3], powers, which, n, 0.0)


@compiled
def in_use(room: NearKernels, number: int, widest: float) -> NearKernels:
    """The same room with so many kernels in it."""
    x, log_weights, base, squares, p = room.x, room.log_weights, room.base, room.squares, room.p
    return NearKernels(room.centre, x, log_weights, base, squares, p, room.powers, room.which, number, widest)


@compiled(fastmath=REORDERED)
def all_near(x: Array, log_weights: Array, centre: Array) -> NearKernels:
    """Kernels at x (n, d), laid out about a centre."""
    n, d = x.shape
    squares = np.zeros(n)
    for j in range(n):
        for k in range(d):
            squares[j] += (x[j, k] - centre[k]) ** 2
    room = in_use(room_for(n, d), n, squares.max() if n else 0.0)
    room.centre[:] = centre
    room.log_weights[:] = log_weights
    for j in range(n):
        for k in range(d):
            room.x[k, j] = x[j, k] - centre[k]
    room.squares[:] = squares
    for j in range(n):
        room.base[j] = log_weights[j] - room.squares[j] / 2.0
    return room


@compiled(fastmath=REORDERED)
def find_near(kernels: NearKernels, centre: Array, reach: float, room: NearKernels) -> tuple[int, bool]:
    """Copy the kernels no farther than `reach` from another centre into the room; how many are to be used, and whether
    these are the copied ones.

    Where they are most of the kernels, and none of these is far from the centre there, it copies none: all will do as
    they are.
    """
    d, n = len(kernels.x), kernels.number
    squares, which, count = room.p, room.which, 0
    shift = centre - kernels.centre
    squares[:n] = 0.0
    for k in range(d):
        x, at = kernels.x[k], shift[k]
        for j in range(n):
            squares[j] += (x[j] - at) ** 2
    for j in range(n):
        which[count] = j
        count += 1 if squares[j] < reach * reach else 0
    if MOST * count > n and kernels.widest < WIDE:
        return int(n), False
    room.centre[:] = centre
    for k in range(d):
        x, at, to = kernels.x[k], shift[k], room.x[k]
        for j in range(count):
            to[j] = x[which[j]] - at
    for j in range(count):
        room.squares[j] = squares[which[j]]
        room.base[j] = kernels.log_weights[which[j]] - room.squares[j] / 2.0
    return int(count), True


@compiled(fastmath=REORDERED)
def weigh(room: NearKernels, count: int, y: Array, offset: float, sums: Array) -> tuple[float, float]:
    """Leave p in the room for a point at y from the centre; its sum, and the log of the sum with the offset.

    `sums` becomes the mean of p from the centre (d), and the trace of its covariance.
    """
    d, total = len(y), 0.0
    for again in range(2):
        if again:
            offset += highest_exponent(room, count, y, offset)
        total = sum_all(room, count, y, offset, sums)
        if 1.0 / FAR < total < FAR:
            break
    sums /= total
    for k in range(d):
        sums[d] -= sums[k] ** 2
    sums[d] = max(sums[d], 0.0)
    return total, offset + np.log(total)


@compiled(fastmath=REORDERED)
def highest_exponent(room: NearKernels, count: int, y: Array, offset: float) -> float:
    """The largest logarithm of p for a point at y from the centre."""
    highest = -np.inf
    for j in range(count):
        exponent = room.base[j] - (y * y).sum() / 2.0 - offset
        for k in range(len(y)):
            exponent += y[k] * room.x[k, j]
        highest = max(highest, exponent)
    return highest


@compiled(fastmath=REORDERED)
def sum_all(room: NearKernels, count: int, y: Array, offset: float, sums: Array) -> float:
    """Leave p in the room; the sums of p x, and of p |x|^2, and that of p. Coordinates are read while in the cache."""
    d, total, shift = len(y), 0.0, offset + (y * y).sum() / 2.0
    sums[:] = 0.0
    for begin in range(0, count, KERNELS_AT_ONCE):
        end = min(begin + KERNELS_AT_ONCE, count)
        p, squares, base = room.p[begin:end], room.squares[begin:end], room.base[begin:end]
        for j in range(len(p)):
            p[j] = base[j] - shift
        for k in range(d):
            x, at = room.x[k, begin:end], y[k]
            for j in range(len(p)):
                p[j] += at * x[j]
        exponentials(p, room.powers[begin:end])
        here, square = 0.0, 0.0
        for j in range(len(p)):
            here += p[j]
            square += p[j] * squares[j]
        total += here
        sums[d] += square
        for k in range(d):
            x, of_block = room.x[k, begin:end], 0.0
            for j in range(len(p)):
                of_block += p[j] * x[j]
            sums[k] += of_block
    return total


@compiled(fastmath=REORDERED)
def covariance_of(room: NearKernels, count: int, sums: Array, total: float, covariance: Array) -> None:
    """The covariance of p about its mean, from what `weigh` left.

    Two rows by three columns at a time, of kernels that stay in the cache: a coordinate that is read serves two or
    three sums. Beyond the last row or column stands the last one again.
    """
    d = len(covariance)
    block_sums = np.zeros_like(covariance)
    covariance[:] = 0.0
    one, two = np.empty(KERNELS_AT_ONCE), np.empty(KERNELS_AT_ONCE)
    for begin in range(0, count, KERNELS_AT_ONCE):
        end = min(begin + KERNELS_AT_ONCE, count)
        p = room.p[begin:end]
        if p.sum() < LIGHT * KERNELS_AT_ONCE / count * total:
            continue
        for a in range(0, d, 2):
            also = min(a + 1, d - 1)
            x, y = room.x[a, begin:end], room.x[also, begin:end]
            for j in range(len(p)):
                one[j], two[j] = p[j] * x[j], p[j] * y[j]
            for b in range(0, also + 1, 3):
                next_b, last_b = min(b + 1, d - 1), min(b + 2, d - 1)
                u, v, w = room.x[b, begin:end], room.x[next_b, begin:end], room.x[last_b, begin:end]
                au, av, aw, bu, bv, bw = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                for j in range(len(p)):
                    au += one[j] * u[j]
                    av += one[j] * v[j]
                    aw += one[j] * w[j]
                    bu += two[j] * u[j]
                    bv += two[j] * v[j]
                    bw += two[j] * w[j]
                block_sums[a, b], block_sums[a, next_b], block_sums[a, last_b] = au, av, aw
                block_sums[also, b], block_sums[also, next_b], block_sums[also, last_b] = bu, bv, bw
        covariance += block_sums
    for a in range(d):
        for b in range(a + 1):
            covariance[a, b] = covariance[b, a] = covariance[a, b] / total - sums[a] * sums[b]


@compiled(fastmath={"contract"})
def exponentials(values: Array, powers: Any) -> None:
    """Replace values from -700 to 700 by their exponentials, to a few roundings. (`powers` is room.)

    A polynomial, so that several are made at once; the C library's function makes one. Not reordered: that would merge
    the two parts of log 2.
    """
    for j in range(len(values)):
        v = min(max(values[j], -LARGEST_EXPONENT), LARGEST_EXPONENT)
        k = np.floor(v / np.log(2.0) + 0.5)
        r = v - k * LOG_2_HIGH - k * LOG_2_LOW
        q = 1.0 / 479001600.0
        q = q * r + 1.0 / 39916800.0
        q = q * r + 1.0 / 3628800.0
        q = q * r + 1.0 / 362880.0
        q = q * r + 1.0 / 40320.0
        q = q * r + 1.0 / 5040.0
        q = q * r + 1.0 / 720.0
        q = q * r + 1.0 / 120.0
        q = q * r + 1.0 / 24.0
        q = q * r + 1.0 / 6.0
        q = q * r + 0.5
        q = q * r + 1.0
        values[j] = q * r + 1.0
        powers[j] = (np.int64(k) + 1023) << 52
    factors = powers.view(np.float64)
    for j in range(len(values)):
        values[j] *= factors[j]
