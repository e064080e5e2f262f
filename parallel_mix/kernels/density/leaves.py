"""Kernels in leaves of nearby ones, of which a sum takes those that matter: for many kernels in many columns.

A point's sum leaves out the farthest leaves, as long as all that they could add, each with all its weight where its box
is nearest to the point, is under a stated share of the density. Sums in single precision go by coordinates from each
leaf's centre; their errors go by how wide the leaves are, which each sum tells:

    p_i = w_i exp(-|y - x_i|^2 / 2 - offset) = exp(base_i + (x_i - c) (y - c) - |y - c|^2 / 2 - offset)

with base_i = log w_i - |x_i - c|^2 / 2. Weights are shares of the heaviest one's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.locality import groups_of_nearby
from parallel_mix.kernels.density.near_sums import NearKernels, in_use

Single = NDArray[np.float32]

LEAF = 128
"""Kernels of a leaf, at most."""
SHARE_LEFT_OUT = 1e-6
"""The share of the density that sums in single precision may leave out."""
BIN, BINS = 0.25, 64
"""Leaves are left out by what they could add, in steps of this factor's logarithm."""
ROUNDING = 2.0**-22
"""The error of an exponent in single precision, over the squares of the distances from the leaf's centre to the point
and to the farthest kernel of the leaf."""
NOTHING = np.float32(-1e30)
"""The logarithm of the weight of a place of a leaf where no kernel is."""
LARGEST = np.float32(86.0)
"""Exponents farther from 0 than this count as this."""
LOG2_E = np.float32(1.0 / np.log(2.0))
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693145751953125), np.float32(1.42860677e-06)
"""The logarithm of 2 in two parts, whose products with small whole numbers are exact."""
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
SERIES = tuple(
    np.float32(c) for c in (1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1)
)
"""The exponential's series near 0, the highest power first; its last terms are 1/2, 1 and 1."""
C7, C6, C5, C4, C3 = SERIES


class Tree(NamedTuple):
    """Points leaf after leaf, whatever the bandwidth."""

    order: Any  # (n) int64: the number of each in the data
    first: Any  # (l + 1) int64: where each leaf begins
    rows: Array  # (n, d)
    log_weights: Array  # (n)
    low: Array  # (d, l) the box of each leaf
    high: Array  # (d, l)


class Leaves(NamedTuple):
    """Kernels at one bandwidth; lengths are in bandwidths, but for the rows."""

    sigma: float
    heaviest: float  # the largest log weight
    first: Any  # (l + 1) int64
    rows: Array  # (n, d) in the coordinates of the analysis
    log_weights: Array  # (n)
    low: Array  # (d, l)
    high: Array  # (d, l)
    most: Array  # (l) the log of the weight of all kernels of a leaf, at most
    centre: Array  # (l, d)
    x: Single  # (l, d, LEAF) from the centre
    base: Single  # (l, LEAF)
    squares: Single  # (l, LEAF) |x|^2
    widest: Array  # (l) the largest of these


class Room(NamedTuple):
    """Memory for the sums of a few points."""

    which: Any  # (l) int64: the leaves near any of them
    low: Array  # (d, l) their boxes
    high: Array  # (d, l)
    could: Array  # (q, l) the log of what each leaf could add to each sum
    least: Array  # (q) leaves that could add less are left out
    pairs: Array  # (q) how many kernels each sum was over


def tree_of(rows: Array, log_weights: Array) -> Tree:
    """Put points into leaves."""
    groups = groups_of_nearby(rows, LEAF)
    order = np.concatenate(groups)
    first = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    rows = rows[order]
    low, high = (np.ascontiguousarray(f.reduceat(rows, first[:-1]).T) for f in (np.minimum, np.maximum))
    return Tree(order, first, rows, log_weights[order], low, high)


def leaves_of(tree: Tree, sigma: float) -> Leaves:
    """The kernels of a tree's points at a bandwidth."""
    heaviest = float(tree.log_weights.max())
    most = np.maximum.reduceat(tree.log_weights, tree.first[:-1]) - heaviest + np.log(np.diff(tree.first))
    low, high = tree.low / sigma, tree.high / sigma
    centre = np.ascontiguousarray((low / 2.0 + high / 2.0).T)
    leaves, d = centre.shape
    x, base, squares = np.zeros((leaves, d, LEAF), np.float32), *np.zeros((2, leaves, LEAF), np.float32)
    lay_out(tree.first, tree.rows, tree.log_weights - heaviest, sigma, centre, x, base, squares)
    about, widest = (sigma, heaviest, tree.first, tree.rows, tree.log_weights), squares.max(axis=1).astype(np.float64)
    return Leaves(*about, low, high, most, centre, x, base, squares, widest)


@compiled
def lay_out(
    first: Any, rows: Array, log_weights: Array, sigma: float, centre: Array, x: Single, base: Single, squares: Single
) -> None:
    """Write the coordinates of the kernels from their leaves' centres, and what goes with them."""
    d = rows.shape[1]
    for leaf in range(len(centre)):
        count = first[leaf + 1] - first[leaf]
        base[leaf] = NOTHING
        for j in range(count):
            i, square = first[leaf] + j, 0.0
            for k in range(d):
                value = rows[i, k] / sigma - centre[leaf, k]
                x[leaf, k, j] = value
                square += value * value
            squares[leaf, j] = square
            base[leaf, j] = max(log_weights[i] - square / 2.0, NOTHING)


@compiled
def room_for_sums(leaves: Leaves, most: int) -> Room:
    """Room for the sums of so many points at a time."""
    d, count = leaves.low.shape
    boxes = np.empty((2, d, count))
    return Room(np.empty(count, np.int64), boxes[0], boxes[1], np.empty((most, count)), np.empty(most), np.empty(most))


@compiled(fastmath=REORDERED)
def could_add(low: Array, high: Array, most: Array, from_here: Array, to_here: Array, could: Array) -> None:
    """The log of what each leaf could add at a point of the box from `from_here` to `to_here`."""
    could[:] = most
    for k in range(len(from_here)):
        a, b, below, above = from_here[k], to_here[k], low[k], high[k]
        for leaf in range(len(could)):
            gap = max(max(below[leaf] - b, a - above[leaf]), 0.0)
            could[leaf] -= gap * gap / 2.0


@compiled
def find_leaves(leaves: Leaves, points: Array, which: Any, density: Array, share: float, room: Room) -> int:
    """Find the leaves that matter to any of some points, and for each point what a leaf must add to matter to it; how
    many they are.

    `density` is a lower bound of the log of the density at each.
    """
    count, d = 0, points.shape[1]
    from_here, to_here, lowest = np.full(d, np.inf), np.full(d, -np.inf), np.inf
    for i in which:
        lowest = min(lowest, density[i] - leaves.heaviest)
        for k in range(d):
            from_here[k], to_here[k] = min(from_here[k], points[i, k]), max(to_here[k], points[i, k])
    could, never = room.could[0], np.log(share / 2.0 / len(leaves.most))
    could_add(leaves.low, leaves.high, leaves.most, from_here, to_here, could)
    for leaf in range(len(could)):
        room.which[count] = leaf
        count += 0 if could[leaf] < lowest + never else 1
    for k in range(d):
        for s in range(count):
            room.low[k, s], room.high[k, s] = leaves.low[k, room.which[s]], leaves.high[k, room.which[s]]
    most = leaves.most[room.which[:count]]
    for q in range(len(which)):
        i = which[q]
        could = room.could[q, :count]
        could_add(room.low[:, :count], room.high[:, :count], most, points[i], points[i], could)
        room.least[q] = least_that_matters(could, density[i] - leaves.heaviest, share, never)
    return count


@compiled
def least_that_matters(could: Array, density: float, share: float, never: float) -> float:
    """What a leaf must add to a sum to matter: all that add less do not add the share of the density together.

    Leaves that add less than e^`never` of it add no more than half the share together.
    """
    bins = np.zeros(BINS)
    for value in could:
        place = int((value - density - never) / BIN)
        if 0 <= place < BINS:
            bins[place] += 1.0
    added, place = 0.0, 0
    while place < BINS:
        added += bins[place] * np.exp(never + (place + 1) * BIN)
        if not added < share / 2.0:
            break
        place += 1
    return density + never + place * BIN


@compiled(fastmath=REORDERED)
def sums_from_leaves(leaves: Leaves, points: Array, which: Any, density: Array, share: float, room: Room) -> Array:
    """The sums of p (x - y), p, p |x - y|^2 and p e, (q, d + 3), for nearby points, but for a share of the density.

    e is about the error of a kernel's exponent.
    The `density`, a lower bound of its log at each point, is the offset. Four points at a time go through a leaf: a
    coordinate that is read serves four sums. (Compiled code for memory that is nobody else's is half as fast again.)
    """
    count, d, most = find_leaves(leaves, points, which, density, share, room), points.shape[1], len(which)
    wanting, y, shift = (
        np.empty(most + 3, np.int64),
        np.zeros((most + 1, d), np.float32),
        np.zeros(most + 1, np.float32),
    )
    p, powers, part = np.empty((4, LEAF), np.float32), np.empty((4, LEAF), np.int32), np.empty((4, d + 2), np.float32)
    sums, factors, error = np.zeros((most + 1, d + 3)), powers.view(np.float32), np.zeros(most + 1)
    room.pairs[:] = 0.0
    for s in range(count):
        leaf, wanted = room.which[s], 0
        for q in range(most):
            wanting[wanted] = q
            wanted += 1 if room.could[q, s] >= room.least[q] else 0
        for k in range(wanted):
            q = wanting[k]
            i, square = which[q], 0.0
            for c in range(d):
                away = points[i, c] - leaves.centre[leaf, c]
                y[q, c] = away
                square += away * away
            shift[q] = density[i] - leaves.heaviest + square / 2.0
            error[q] = ROUNDING * (square + leaves.widest[leaf])
            if error[q] > 1.0:  # what it adds is not told by such exponents at all
                sums[q, d + 2] += np.exp(room.could[q, s] - (density[i] - leaves.heaviest))
            room.pairs[q] += LEAF
        wanting[wanted : wanted + 3] = most  # nobody
        for k in range(0, wanted, 4):
            four = wanting[k], wanting[k + 1], wanting[k + 2], wanting[k + 3]
            add_leaf(leaves.x, leaves.base, leaves.squares, leaf, y, shift, four, error, p, powers, factors, part, sums)
    for q in range(most):
        sums[q, d + 1] = max(sums[q, d + 1], 0.0)
    return sums[:most]


@compiled(fastmath=REORDERED)
def add_leaf(
    x: Single,
    base: Single,
    squares: Single,
    leaf: int,
    y: Single,
    shift: Single,
    four: tuple[int, int, int, int],
    error: Array,
    p: Single,
    powers: Any,
    factors: Single,
    part: Single,
    sums: Array,
) -> None:
    """Add a leaf to the sums of four points, which are at y from its centre.

    The rest is room: for p (4, LEAF), the powers of two in it and their bits, and the sums over the leaf (4, d + 2).
    """
    d, (q0, q1, q2, q3) = y.shape[1], four
    less0, less1, less2, less3 = shift[q0], shift[q1], shift[q2], shift[q3]
    for j in range(LEAF):
        u = base[leaf, j]
        p[0, j], p[1, j], p[2, j], p[3, j] = u - less0, u - less1, u - less2, u - less3
    for k in range(0, d - 1, 2):
        a0, a1, a2, a3 = y[q0, k], y[q1, k], y[q2, k], y[q3, k]
        b0, b1, b2, b3 = y[q0, k + 1], y[q1, k + 1], y[q2, k + 1], y[q3, k + 1]
        for j in range(LEAF):
            u, v = x[leaf, k, j], x[leaf, k + 1, j]
            p[0, j] += a0 * u + b0 * v
            p[1, j] += a1 * u + b1 * v
            p[2, j] += a2 * u + b2 * v
            p[3, j] += a3 * u + b3 * v
    if d % 2:
        a0, a1, a2, a3 = y[q0, d - 1], y[q1, d - 1], y[q2, d - 1], y[q3, d - 1]
        for j in range(LEAF):
            u = x[leaf, d - 1, j]
            p[0, j] += a0 * u
            p[1, j] += a1 * u
            p[2, j] += a2 * u
            p[3, j] += a3 * u
    exponentials(p, powers, factors)
    s0, s1, s2, s3, r0, r1, r2, r3 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    for j in range(LEAF):
        u = squares[leaf, j]
        s0 += p[0, j]
        s1 += p[1, j]
        s2 += p[2, j]
        s3 += p[3, j]
        r0 += p[0, j] * u
        r1 += p[1, j] * u
        r2 += p[2, j] * u
        r3 += p[3, j] * u
    part[0, d], part[1, d], part[2, d], part[3, d] = s0, s1, s2, s3
    part[0, d + 1], part[1, d + 1], part[2, d + 1], part[3, d + 1] = r0, r1, r2, r3
    for k in range(0, d - 1, 2):
        s0, s1, s2, s3, r0, r1, r2, r3 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
        for j in range(LEAF):
            u, v = x[leaf, k, j], x[leaf, k + 1, j]
            s0 += p[0, j] * u
            s1 += p[1, j] * u
            s2 += p[2, j] * u
            s3 += p[3, j] * u
            r0 += p[0, j] * v
            r1 += p[1, j] * v
            r2 += p[2, j] * v
            r3 += p[3, j] * v
        part[0, k], part[1, k], part[2, k], part[3, k] = s0, s1, s2, s3
        part[0, k + 1], part[1, k + 1], part[2, k + 1], part[3, k + 1] = r0, r1, r2, r3
    if d % 2:
        s0, s1, s2, s3 = ZERO, ZERO, ZERO, ZERO
        for j in range(LEAF):
            u = x[leaf, d - 1, j]
            s0 += p[0, j] * u
            s1 += p[1, j] * u
            s2 += p[2, j] * u
            s3 += p[3, j] * u
        part[0, d - 1], part[1, d - 1], part[2, d - 1], part[3, d - 1] = s0, s1, s2, s3
    for r in range(4):  # from the leaf's centre to the point
        q, total, square = four[r], part[r, d], part[r, d + 1]
        for k in range(d):
            step = part[r, k] - y[q, k] * total
            sums[q, k] += step
            square -= y[q, k] * (step + part[r, k])  # |x - y|^2 = |x|^2 - y (2 x - y)
        sums[q, d] += total
        sums[q, d + 1] += square
        sums[q, d + 2] += total * error[q]


@compiled(fastmath={"contract"})
def exponentials(p: Single, powers: Any, factors: Single) -> None:
    """Replace p by its exponentials, to single precision. (`powers` are the bits of `factors`: both are room.)"""
    for q in range(len(p)):
        for j in range(LEAF):
            v = min(max(p[q, j], -LARGEST), LARGEST)
            k = np.floor(v * LOG2_E + HALF)
            r = v - k * LOG_2_HIGH - k * LOG_2_LOW
            s = (((((C7 * r + C6) * r + C5) * r + C4) * r + C3) * r + HALF) * r * r
            p[q, j] = s + r + ONE
            powers[q, j] = (np.int32(k) + np.int32(127)) << np.int32(23)
        for j in range(LEAF):
            p[q, j] *= factors[q, j]


@compiled(fastmath=REORDERED)
def near_kernels(leaves: Leaves, point: Array, reach: float, room: NearKernels) -> NearKernels:
    """The kernels no farther than `reach` from a point, and a few that are by a rounding, in the room about the point.

    Which are near is told by single precision, whose errors are added to the reach.
    """
    d, scale, at, farthest = len(point), 1.0 / leaves.sigma, 0, 0.0
    gaps, squares, y = np.empty(leaves.low.shape[1]), np.empty(LEAF, np.float32), np.empty(d, np.float32)
    could_add(leaves.low, leaves.high, np.zeros(len(gaps)), point, point, gaps)
    room.centre[:] = point
    for leaf in range(len(gaps)):
        if not -2.0 * gaps[leaf] <= reach * reach:
            continue
        from_centre, first, begin = ZERO, leaves.first[leaf], at
        for k in range(d):
            y[k] = point[k] - leaves.centre[leaf, k]
            from_centre += y[k] * y[k]
        for j in range(LEAF):
            squares[j] = leaves.squares[leaf, j] + from_centre
        for k in range(d):
            twice = y[k] + y[k]
            for j in range(LEAF):
                squares[j] -= twice * leaves.x[leaf, k, j]
        most = reach * reach + 4.0 * ROUNDING * (from_centre + leaves.widest[leaf])
        for j in range(leaves.first[leaf + 1] - first):
            room.which[at] = first + j
            at += 0 if squares[j] > most else 1
        for j in range(begin, at):
            room.squares[j] = 0.0
        for k in range(d):
            to, here = room.x[k], point[k]
            for j in range(begin, at):
                to[j] = leaves.rows[room.which[j], k] * scale - here
                room.squares[j] += to[j] * to[j]
        for j in range(begin, at):
            room.log_weights[j] = leaves.log_weights[room.which[j]]
            room.base[j] = room.log_weights[j] - room.squares[j] / 2.0
            farthest = max(farthest, room.squares[j])
    return in_use(room, at, farthest)
