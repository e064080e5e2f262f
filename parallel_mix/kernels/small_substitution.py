"""Vertex substitution of so few points that all their distances fit the cache: the same exchanges, judged many at once.

The same rule, and the same numbers, as in `vertex_substitution`: there each candidate looks for the points that it
would change; here `ABREAST` candidates in turn are judged together, point by point, without a branch:

    gain_c   = sum_i min(q_ic - q1_i, 0)                           for all exchanges alike
    change_jc = removal_j + sum_{i of j} min(max(q_ic, q1_i) - q2_i, 0)

with q1 and q2 the distances to the nearest and second nearest medoid. Points of equal distances add nothing to either
sum, whichever medoid is called the nearest. The first of the candidates that brings something is exchanged; those
after it are judged anew.

paper <-> code    w_i d_ij <-> Q[i, j], in steps    Delta_bj <-> gain + change[b, j]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from parallel_mix.kernels.density import Array
from parallel_mix.kernels.vertex_substitution import in_steps

Ints = np.ndarray
ABREAST = 32
FEW = 1024
"""Up to so many points this is the faster way."""
FAR = np.int64(2) ** 62


@njit(cache=True, nogil=True)
def table_of(E: Array, w: Array, steps: float) -> Ints:
    """Distances in steps, a candidate a column; columns that fill the last ones up are far from all."""
    n = len(E)
    Q = np.full((n, -(-n // ABREAST) * ABREAST), FAR)
    for i in range(n):
        for c in range(n):
            Q[i, c] = in_steps(E[c, i], w[i], steps)
    return Q


@njit(cache=True, nogil=True)
def nearest_two(Q: Ints, medoids: Ints, i: int) -> Any:
    """Nearest and second nearest medoid of point i, and the distances to them."""
    first, second, q1, q2 = -1, -1, FAR, FAR
    for j in range(len(medoids)):
        q = Q[i, medoids[j]]
        if q < q1:
            second, q2 = first, q1
            first, q1 = j, q
        elif q < q2:
            second, q2 = j, q
    return first, second, q1, q2


@njit(cache=True, nogil=True)
def place_all(Q: Ints, medoids: Ints, new: int, first: Ints, second: Ints, q1: Ints, q2: Ints, removal: Ints) -> Any:
    """Nearest medoids of all points, now that medoid `new` is another one (-1: all are); what each medoid's removal
    costs, and the loss."""
    loss = np.int64(0)
    removal[:] = 0
    for i in range(len(first)):
        if new < 0 or first[i] == new or second[i] == new:
            first[i], second[i], q1[i], q2[i] = nearest_two(Q, medoids, i)
        else:
            q = Q[i, medoids[new]]
            if q < q1[i]:
                second[i], q2[i] = first[i], q1[i]
                first[i], q1[i] = new, q
            elif q < q2[i]:
                second[i], q2[i] = new, q
        loss += q1[i]
        removal[first[i]] += q2[i] - q1[i]
    return loss


@njit(cache=True, nogil=True)
def judge_abreast(
    Q: Ints, start: int, first: Ints, q1: Ints, q2: Ints, removal: Ints, change: Ints, best: Ints, out: Ints
) -> None:
    """What candidates from `start` on bring at `best`, and for which medoid; `change` (k + 1, ABREAST) is room."""
    k = len(removal)
    gain = change[k]
    gain[:] = 0
    for j in range(k):
        change[j] = removal[j]
    for i in range(len(first)):
        row, own, a, b = Q[i, start : start + ABREAST], change[first[i]], q1[i], q2[i]
        for c in range(ABREAST):
            q = row[c]
            gain[c] += min(q - a, 0)
            own[c] += min(max(q, a) - b, 0)
    best[:] = change[0]
    out[:] = 0
    for j in range(1, k):
        own = change[j]
        for c in range(ABREAST):
            if own[c] < best[c]:
                best[c], out[c] = own[c], j
    best += gain


@njit(cache=True, nogil=True)
def substitute_few(Q: Ints, medoids: Ints) -> Ints:
    """Exchange medoids (in place, (starts, k), k of 2 or more) until a whole sweep brings nothing; the losses."""
    n, (starts, k), losses = len(Q), medoids.shape, np.empty(len(medoids), np.int64)
    first, second, q1, q2 = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    removal, change = np.empty(k, np.int64), np.empty((k + 1, ABREAST), np.int64)
    best, out = np.empty(ABREAST, np.int64), np.empty(ABREAST, np.int64)
    been, judged = np.empty(n, np.int64), np.empty(n, np.int64)
    for r in range(starts):
        losses[r] = place_all(Q, medoids[r], -1, first, second, q1, q2, removal)
        been[:] = 0
        judged[:] = -1
        sweep, exchanges, better = 0, 0, True
        while better:
            sweep, better = sweep + 1, False
            been[medoids[r]] = sweep
            looked_at = -1  # the last of the candidates that best and out tell of
            for candidate in range(n):
                if been[candidate] == sweep or judged[candidate] == exchanges:
                    continue
                if candidate > looked_at:
                    start = candidate // ABREAST * ABREAST
                    judge_abreast(Q, start, first, q1, q2, removal, change, best, out)
                    looked_at = start + ABREAST - 1
                judged[candidate] = exchanges
                if best[candidate - start] < 0:
                    been[candidate], exchanges, better, looked_at = sweep, exchanges + 1, True, -1
                    new = out[candidate - start]
                    medoids[r, new] = candidate
                    losses[r] = place_all(Q, medoids[r], new, first, second, q1, q2, removal)
    return losses
