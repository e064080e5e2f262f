"""Vertex substitution (Teitz & Bart 1968) for the p-median problem: medoids of least total distance.

    minimise   sum_i w_i min_j d(i, v_j)        over k of the points themselves as medoids v_1..v_k
                                                (Qiao, dissertation, eq. (3.5) and Algorithm 1; weights: R = H D)

Each point in turn is a candidate: of the k exchanges with a medoid the best is made at once, if it brings anything;
what was a medoid in this sweep is no candidate any more. The sweeps end with one that brings nothing; a candidate that
was judged since the last exchange is not judged again. All k exchanges are judged in one pass over the points, from the
distances to the nearest and the second nearest medoid (Resende & Werneck; FasterPAM): points nearer to the candidate
than to their second medoid are few, and all others need a comparison only.

There are three variants, with the same exchanges: this one, `table_substitution` for few points, and
`models.clusters.sharded_substitution` for matrices too large for one worker. `models.clusters.substitution` chooses.
What each shortcut brings is measured by `benchmarks/substitution_ablation.py`.

Sums are those of whole numbers, distances times weights in steps so small that the sum of all just fits 62 bits: they
are exact whatever their order, so an exchange is worth the same whether one process adds it up or many, and what is
said to be an improvement is one.

paper <-> code    d_ij <-> E[j, i] (row: the candidate)    w <-> w    r_t <-> loss    Delta_bj <-> gain + change[j]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray
BITS = 61
"""The bits of the largest total distance in steps."""
SQUARE = 64
"""Rows and columns of the squares in which a matrix is compared with its transpose."""


@compiled
def steps_of(w: Array, largest: float) -> float:
    """How many steps a distance of 1 has: a power of two, so that the sum of all weighted distances fits 62 bits."""
    if not (largest > 0 and w.sum() > 0):
        return 1.0
    return 2.0 ** min(BITS - math.ceil(math.log2(w.sum()) + math.log2(largest)), 1023)


@compiled
def is_symmetric(D: Array) -> bool:
    """Whether D is its own transpose; it is compared in squares that fit the cache."""
    n = len(D)
    for a in range(0, n, SQUARE):
        for c in range(a, n, SQUARE):
            for i in range(a, min(a + SQUARE, n)):
                for j in range(max(c, i + 1), min(c + SQUARE, n)):
                    if D[i, j] != D[j, i]:
                        return False
    return True


@compiled
def in_steps(distance: float, weight: float, steps: float) -> Any:
    """A weighted distance as a whole number of steps."""
    return np.int64(np.rint(np.float64(distance) * weight * steps))


@compiled
def second_of(near: Array, first: int) -> int:
    """The nearest medoid but the `first`; -1 where there is no other."""
    second = -1
    for j in range(len(near)):
        if j != first and (second < 0 or near[j] < near[second]):
            second = j
    return second


@compiled
def nearest_two(near: Array, first: Ints, second: Ints) -> None:
    """Write the nearest and the second nearest medoid of each point; of equal ones the first."""
    for i in range(near.shape[0]):
        best = 0
        for j in range(1, near.shape[1]):
            if near[i, j] < near[i, best]:
                best = j
        first[i] = best
        second[i] = second_of(near[i], best)


@compiled
def assign(near: Array, medoids: Ints, first: Ints, second: Ints) -> None:
    """Write the nearest and the second nearest medoid of each point, where a medoid's nearest is always itself."""
    nearest_two(near, first, second)
    for j in range(len(medoids)):
        first[medoids[j]] = j
        second[medoids[j]] = second_of(near[medoids[j]], j)


@compiled
def weigh(near: Array, w: Array, steps: float, first: Ints, second: Ints, d1: Array, d2: Array, removal: Ints) -> Any:
    """Write the distances to the two medoids and what each medoid's removal costs; return the loss. All in steps."""
    loss = np.int64(0)
    removal[:] = 0
    for i in range(len(first)):
        d1[i] = near[i, first[i]]
        d2[i] = near[i, second[i]]
        q1 = in_steps(d1[i], w[i], steps)
        loss += q1
        removal[first[i]] += in_steps(d2[i], w[i], steps) - q1
    return loss


@compiled
def judge(row: Array, w: Array, steps: float, first: Ints, d1: Array, d2: Array, change: Ints) -> Any:
    """Return what a candidate at these distances brings to all exchanges alike; add its effect on each to `change`."""
    gain = np.int64(0)
    for i in range(len(row)):
        if row[i] < d2[i]:
            moved, q2 = in_steps(row[i], w[i], steps), in_steps(d2[i], w[i], steps)
            if row[i] < d1[i]:
                q1 = in_steps(d1[i], w[i], steps)
                gain += moved - q1
                change[first[i]] += q1 - q2
            else:
                change[first[i]] += moved - q2
    return gain


@compiled
def exchange(row: Array, candidate: int, j: int, near: Array, first: Ints, second: Ints) -> None:
    """Let a candidate be medoid j; `row` are its distances."""
    for i in range(len(row)):
        near[i, j] = row[i]
        old, next_ = first[i], second[i]
        if old == j or next_ == j:
            best = 0
            for other in range(1, near.shape[1]):
                if near[i, other] < near[i, best]:
                    best = other
            first[i] = best
            second[i] = second_of(near[i], best)
        elif row[i] < near[i, old] or (row[i] == near[i, old] and j < old):
            second[i], first[i] = old, j
        elif row[i] < near[i, next_] or (row[i] == near[i, next_] and j < next_):
            second[i] = j


@compiled
def substitute_by_search(E: Array, w: Array, medoids: Ints, steps: float) -> Ints:
    """Exchange medoids (in place, (starts, k)) until a whole sweep brings nothing; the losses, in steps.

    There are 2 medoids or more. The starts know nothing of each other, but each row of E is fetched from memory once a
    sweep for all.
    """
    n, (starts, k) = E.shape[0], medoids.shape
    near = np.empty((starts, n, k), E.dtype)
    first, second = np.empty((starts, n), np.int64), np.empty((starts, n), np.int64)
    d1, d2 = np.empty((starts, n), E.dtype), np.empty((starts, n), E.dtype)
    removal, change = np.empty((starts, k), np.int64), np.empty(k, np.int64)
    losses, been = np.empty(starts, np.int64), np.zeros((starts, n), np.int64)
    exchanges, judged = np.zeros(starts, np.int64), np.full((starts, n), np.int64(-1))
    for r in range(starts):
        for j in range(k):
            near[r, :, j] = E[medoids[r, j]]
        nearest_two(near[r], first[r], second[r])
        losses[r] = weigh(near[r], w, steps, first[r], second[r], d1[r], d2[r], removal[r])
    sweep, better = 0, np.ones(starts, np.bool_)
    while better.any():
        sweep += 1
        under_way = better.copy()
        better[:] = False
        for r in range(starts):
            for j in range(k):
                been[r, medoids[r, j]] = sweep
        for candidate in range(n):
            for r in range(starts):
                if not under_way[r] or been[r, candidate] == sweep or judged[r, candidate] == exchanges[r]:
                    continue
                judged[r, candidate] = exchanges[r]
                change[:] = removal[r]
                gain = judge(E[candidate], w, steps, first[r], d1[r], d2[r], change)
                out = best_of(change)
                if gain + change[out] < 0:
                    medoids[r, out] = candidate
                    been[r, candidate] = sweep
                    exchanges[r] += 1
                    exchange(E[candidate], candidate, out, near[r], first[r], second[r])
                    losses[r] = weigh(near[r], w, steps, first[r], second[r], d1[r], d2[r], removal[r])
                    better[r] = True
    return losses


@compiled
def best_of(change: Ints) -> int:
    """The exchange that brings most; of equal ones the first."""
    best = 0
    for j in range(1, len(change)):
        if change[j] < change[best]:
            best = j
    return best


@compiled
def only_medoid(E: Array, w: Array, medoids: Ints, steps: float) -> Any:
    """Write the only medoid, the point of the least total distance; return that total, in steps."""
    least = np.int64(-1)
    for candidate in range(E.shape[0]):
        total = np.int64(0)
        for i in range(E.shape[0]):
            total += in_steps(E[candidate, i], w[i], steps)
        if least < 0 or total < least:
            least, medoids[0] = total, candidate
    return least


@compiled
def judge_block(near: Array, across: Array, w: Array, steps: float, out: Ints) -> None:
    """Write what a block of points adds to all the sums that decide on exchanges with some candidates.

    `near` (b, k) are distances to the medoids, `across` (c, b) those to the candidates; `out` is their loss, the k
    removals, the c gains and the c times k changes, and adds up over the blocks; k is 2 or more.
    """
    b, k = near.shape
    first, second = np.empty(b, np.int64), np.empty(b, np.int64)
    d1, d2 = np.empty(b, near.dtype), np.empty(b, near.dtype)
    nearest_two(near, first, second)
    out[:] = 0
    out[0] = weigh(near, w, steps, first, second, d1, d2, out[1 : k + 1])
    c = len(across)
    for x in range(c):
        change = out[1 + k + c + x * k : 1 + k + c + (x + 1) * k]
        out[1 + k + x] = judge(across[x], w, steps, first, d1, d2, change)
