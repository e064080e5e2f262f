"""Vertex substitution of so few points that a table of their distances in steps fits the cache: faster exchanges.

Rule and numbers are those of `vertex_substitution`: there each candidate looks for the few points that it
would change, and an exchange for those that it has changed; here both look at all, without a branch:

    gain = sum_i min(q_i - q1_i, 0)                                        to all exchanges alike
    change_j = removal_j + sum_{i of j} min(max(q_i, q1_i) - q2_i, 0)      to that with medoid j

with q the distances to the candidate, q1 and q2 those to the nearest and second nearest medoid. Points for which two of
them are equal add nothing to either sum, whichever is called the nearer. And a start that comes to medoids at which an
earlier one ended has nothing to gain from there, either: it ends.

paper <-> code    w_i d_ij <-> Q[j, i], in steps    Delta_bj <-> gain + change[b]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.vertex_substitution import best_of, in_steps

Ints = np.ndarray
MOST_POINTS, MOST_MEDOIDS = 1024, 32
"""Up to so many points and medoids the table is the faster way."""
LANES = 8
"""Numbers that the processor adds at once; rows of the table are multiples of these."""


def fits_table(n: int, k: int) -> bool:
    """Whether k medoids of n points come faster by a table of all distances than by a search for those that change."""
    return n <= MOST_POINTS and k <= MOST_MEDOIDS


@compiled
def table_of(E: Array, w: Array, steps: float) -> Ints:
    """Weighted distances in steps, a candidate a row; points without weight fill a row up to whole lanes."""
    n = len(E)
    Q = np.zeros((n, -(-n // LANES) * LANES), np.int64)
    for j in range(n):
        for i in range(n):
            Q[j, i] = in_steps(E[j, i], w[i], steps)
    return Q


@compiled(inline="always")
def place_all(Q: Ints, medoids: Ints, first: Ints, q1: Ints, q2: Ints, removal: Ints) -> Any:
    """Write the nearest medoid of all points, distances and removals' costs in steps; return the loss, in steps."""
    loss, row, other = np.int64(0), Q[medoids[0]], Q[medoids[1]]
    for i in range(len(first)):
        q, a = other[i], row[i]
        first[i] = np.uint32(1) if q < a else np.uint32(0)
        q1[i] = min(q, a)
        q2[i] = max(q, a)
    for j in range(2, len(medoids)):
        row = Q[medoids[j]]
        for i in range(len(first)):
            q, a = row[i], q1[i]
            first[i] = np.uint32(j) if q < a else first[i]
            q1[i] = min(q, a)
            q2[i] = min(max(q, a), q2[i])
    removal[:] = 0
    for i in range(len(first)):
        loss += q1[i]
        removal[first[i]] += q2[i] - q1[i]
    return loss


@compiled(inline="always")
def judge_all(n: int, row: Ints, first: Ints, q1: Ints, q2: Ints, change: Ints, part: Ints) -> Any:
    """Return what a candidate (a row) brings to all exchanges alike; add what it brings to each to `change`.

    `part` is room for a number for each point.
    """
    gain = np.int64(0)
    for i in range(len(first)):
        q, a = row[i], q1[i]
        gain += min(q - a, 0)
        part[i] = min(max(q, a) - q2[i], 0)
    for i in range(n):
        change[first[i]] += part[i]
    return gain


@compiled
def have_equal_medoids(a: Ints, b: Ints) -> bool:
    """Whether two starts have equal sets of medoids, in any order."""
    for i in a:
        shared = False
        for j in b:
            shared |= i == j
        if not shared:
            return False
    return True


@compiled
def ended_before(medoids: Ints, losses: Ints, r: int, ends: Ints) -> bool:
    """Whether one of the starts `ends` has ended at the medoids that start r has now."""
    known = False
    for e in ends:
        known = known or (losses[e] == losses[r] and have_equal_medoids(medoids[e], medoids[r]))
    return known


@compiled
def substitute_by_table(Q: Ints, medoids: Ints) -> Ints:
    """Exchange medoids (in place, (starts, k), k of 2 or more) until a whole sweep brings nothing; the losses."""
    (n, m), (starts, k), losses = Q.shape, medoids.shape, np.empty(len(medoids), np.int64)
    first = np.empty(m, np.uint32)  # as an index it needs no look whether it is below 0
    q1, q2, part = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    removal, change = np.empty(k, np.int64), np.empty(k, np.int64)
    been = np.empty(n, np.int64)
    ends, places = np.empty(starts, np.int64), 0  # the first start to end at each place
    for r in range(starts):
        losses[r] = place_all(Q, medoids[r], first, q1, q2, removal)
        been[:] = 0
        known = ended_before(medoids, losses, r, ends[:places])
        sweep, better = 0, not known
        while better:
            sweep, better = sweep + 1, False
            for j in range(k):
                been[medoids[r, j]] = sweep
            for candidate in range(n):
                if been[candidate] == sweep:
                    continue
                for j in range(k):
                    change[j] = removal[j]
                gain = judge_all(n, Q[candidate], first, q1, q2, change, part)
                out = best_of(change)
                if gain + change[out] < 0:
                    been[candidate], better = sweep, True
                    medoids[r, out] = candidate
                    losses[r] = place_all(Q, medoids[r], first, q1, q2, removal)
                    known = ended_before(medoids, losses, r, ends[:places])
                    if known:
                        better = False
                        break
        if not known:
            ends[places] = r
            places += 1
    return losses
