"""Distances between signatures: sets of weighted points, of any length, weights adding to 1.

Mallows (2-Wasserstein)    D^2 = min_w sum_ij w_ij |v_i - u_j|^2,    w >= 0, rows adding to p, columns to q
IRM (Li, Wang & Wiederhold 2000)    pairs in order of rising |v_i - u_j|, each given what is left of p_i and q_j

The minimum is computed by the network simplex on the bipartite graph of the two sets. A basis is a tree of arcs, held
as each node's parent and the flow between the two; an arc of negative reduced cost enters, and of the cycle that it
closes the arc whose flow runs out first leaves. Supplies are perturbed by symbol (each source has one epsilon more, the
last sink takes them all), so flows are pairs, amount and epsilons: no two of a cycle run out together, and no basis
comes again.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

OPTIMAL = 1e-13
"""A reduced cost above minus this share of the largest cost is not negative, at first; at last, of its own terms."""
ROUNDING = 1e-15
"""Weights up to this count as carried: they are roundings."""
TOO_LARGE = 1e300
"""Squared distances above this have sums that are too large for a number."""
MOST_PIVOTS = 1_000
"""Pivots, for each node, after which something is wrong: one or two are the rule."""

Ints = np.ndarray


@compiled
def costs_between(v: Array, u: Array, c: Array) -> float:
    """Write the squared distances of the points of two sets into c; return the largest of them."""
    largest = 0.0
    for i in range(v.shape[0]):
        for j in range(u.shape[0]):
            total = 0.0
            for k in range(v.shape[1]):
                gap = v[i, k] - u[j, k]
                total += gap * gap
            c[i, j] = total
            largest = max(largest, total)
    return largest


@compiled
def first_tree(c: Array, p: Array, q: Array, parent: Ints, flow: Array, eps: Ints) -> None:
    """Write a first tree: each source gives to the cheapest sinks that still want some; the last sink is the root."""
    m, n = len(p), len(q)
    want, symbol = q.copy(), np.zeros(n, dtype=np.int64)
    symbol[n - 1] = m
    left = np.arange(n)
    count = n
    source, sink = np.empty(m + n, dtype=np.int64), np.empty(m + n, dtype=np.int64)
    amount, symbols = np.empty(m + n), np.empty(m + n, dtype=np.int64)
    arcs = 0
    for i in range(m):
        have, own = p[i], 1
        while True:
            best = 0
            for k in range(1, count):
                if c[i, left[k]] < c[i, left[best]]:
                    best = k
            j = left[best]
            source[arcs], sink[arcs] = i, j
            fits = have < want[j] or (have == want[j] and own < symbol[j])
            if count == 1 or (fits and i < m - 1):
                amount[arcs], symbols[arcs] = have, own
                want[j] -= have
                symbol[j] -= own
                arcs += 1
                break
            amount[arcs], symbols[arcs] = want[j], symbol[j]
            have -= want[j]
            own -= symbol[j]
            count -= 1
            left[best] = left[count]
            arcs += 1
    for node in range(m + n):
        parent[node] = -2
    parent[m + n - 1] = -1
    hung = 1
    while hung < m + n:
        for a in range(arcs - 1, -1, -1):
            i, j = source[a], m + sink[a]
            if parent[i] == -2 and parent[j] != -2:
                parent[i], flow[i], eps[i] = j, amount[a], symbols[a]
                hung += 1
            elif parent[j] == -2 and parent[i] != -2:
                parent[j], flow[j], eps[j] = i, amount[a], symbols[a]
                hung += 1


@compiled
def price(c: Array, m: int, parent: Ints, depth: Ints, potential: Array, stack: Ints) -> None:
    """Write the potentials of all nodes (c_ij = potential_i + potential_j on the tree) and their depths."""
    nodes = len(parent)
    for node in range(nodes):
        depth[node] = -1
    depth[nodes - 1] = 0
    potential[nodes - 1] = 0.0
    for node in range(nodes):
        high = 0
        while depth[node] < 0:
            stack[high] = node
            high += 1
            node = parent[node]
        while high:
            high -= 1
            below = stack[high]
            cost = c[below, node - m] if below < m else c[node, below - m]
            potential[below] = cost - potential[node]
            depth[below] = depth[node] + 1
            node = below


@compiled
def pivot(i: int, j: int, m: int, parent: Ints, depth: Ints, flow: Array, eps: Ints) -> None:
    """Let the arc from source i to sink j (both as nodes) into the tree."""
    # Up from both ends to where the ways meet: on i's side flows of sources fall, on j's side those of sinks.
    a, b = i, j
    leaving, on_i, least, symbol = -1, True, np.inf, 0
    while a != b:
        if depth[a] >= depth[b]:
            if a < m and (flow[a] < least or (flow[a] == least and eps[a] < symbol)):
                leaving, on_i, least, symbol = a, True, flow[a], eps[a]
            a = parent[a]
        else:
            if b >= m and (flow[b] < least or (flow[b] == least and eps[b] < symbol)):
                leaving, on_i, least, symbol = b, False, flow[b], eps[b]
            b = parent[b]
    meet = a
    least = max(least, 0.0)
    a = i
    while a != meet:
        sign = -1 if a < m else 1
        flow[a] += sign * least
        eps[a] += sign * symbol
        a = parent[a]
    b = j
    while b != meet:
        sign = -1 if b >= m else 1
        flow[b] += sign * least
        eps[b] += sign * symbol
        b = parent[b]
    # What hung below the leaving arc hangs on the entering one now, upside down as far as the leaving one.
    node, above = (i, j) if on_i else (j, i)
    carried, symbols = least, symbol
    while True:
        after, its_flow, its_eps = parent[node], flow[node], eps[node]
        parent[node], flow[node], eps[node] = above, carried, symbols
        if node == leaving:
            return
        above, node, carried, symbols = node, after, its_flow, its_eps


@compiled
def least_cost(c: Array, p: Array, q: Array, largest: float) -> float:
    """The cost of the best transport; -1 where it is not reached in `MOST_PIVOTS` pivots for each node."""
    m, n = len(p), len(q)
    nodes = m + n
    parent, depth, stack = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    flow, eps, potential = np.zeros(nodes), np.zeros(nodes, np.int64), np.empty(nodes)
    first_tree(c, p, q, parent, flow, eps)
    fine = 0
    for _ in range(MOST_PIVOTS * nodes):
        price(c, m, parent, depth, potential, stack)
        lowest, enter_i, enter_j = -OPTIMAL * largest, -1, -1
        for i in range(m):
            own = potential[i]
            for j in range(n):
                reduced = c[i, j] - own - potential[m + j]
                if reduced < lowest:
                    lowest, enter_i, enter_j = reduced, i, j
        if enter_i < 0 and fine < nodes:  # costs that are small beside the largest have their say, too
            for i in range(m):
                for j in range(n):
                    terms = abs(c[i, j]) + abs(potential[i]) + abs(potential[m + j])
                    reduced = c[i, j] - potential[i] - potential[m + j]
                    if reduced < -OPTIMAL * terms and (enter_i < 0 or reduced < lowest):
                        lowest, enter_i, enter_j = reduced, i, j
            fine += enter_i >= 0
        if enter_i < 0:
            total = 0.0
            for node in range(nodes - 1):
                cost = c[node, parent[node] - m] if node < m else c[parent[node], node - m]
                total += flow[node] * cost
            return max(total, 0.0)
        pivot(enter_i, m + enter_j, m, parent, depth, flow, eps)
    return -1.0


@compiled
def on_a_line(v: Array, p: Array, u: Array, q: Array) -> float:
    """The least cost of transport between two sets of numbers: the lowest of one go to the lowest of the other."""
    order, other = np.argsort(v), np.argsort(u)
    i = j = 0
    have, want = p[order[0]], q[other[0]]
    total: float = 0.0
    while True:
        moved = min(have, want)
        gap = v[order[i]] - u[other[j]]
        total += moved * gap * gap
        have -= moved
        want -= moved
        done, full = have <= ROUNDING, want <= ROUNDING  # roundings of sums of weights are no weights to be carried
        if done:
            i += 1
            if i == len(v):
                return total
            have = p[order[i]]
        if full:
            j += 1
            if j == len(u):
                return total
            want = q[other[j]]


@compiled
def greedy_cost(c: Array, p: Array, q: Array) -> float:
    """The IRM distance sum s_ij d_ij, by pairs in order of rising d_ij, of equal ones by i and then j; c is squared."""
    n = c.shape[1]
    order = np.argsort(c.ravel(), kind="mergesort")
    have, want = p.copy(), q.copy()
    total = 0.0
    for k in order:
        i, j = k // n, k % n
        moved = min(have[i], want[j])
        if moved > 0.0:
            total += moved * np.sqrt(c[i, j])
            have[i] -= moved
            want[j] -= moved
    return total


@compiled
def distance(v: Array, p: Array, u: Array, q: Array, greedy: bool) -> float:
    """The distance of two signatures, IRM where `greedy`; infinite where too large for a number, negative where there
    was no end of pivots.
    """
    if v.shape[1] == 1 and not greedy:
        return float(np.sqrt(on_a_line(v[:, 0], p, u[:, 0], q)))
    c = np.empty((len(p), len(q)))
    largest = costs_between(v, u, c)
    if greedy:
        irm: float = greedy_cost(c, p, q)
        return irm
    if largest > TOO_LARGE:  # a sum of a few of them is no number any more, and none is the least
        return np.inf
    cost = least_cost(c, p, q, largest)
    return float(np.sqrt(cost)) if cost >= 0.0 else -1.0


@compiled
def signature_tile(
    V: Array, P: Array, offsets: Ints, U: Array, Q: Array, other_offsets: Ints, greedy: bool, ahead: int, same: bool
) -> Array:
    """Distances between all signatures of one set and of another, cut by `offsets`; `same`: the sets are one.

    Row r has the number s + ahead of column s: of a pair the lower number comes first, whichever way it is asked for.
    """
    rows, columns = len(offsets) - 1, len(other_offsets) - 1
    out = np.zeros((rows, columns))
    for r in range(rows):
        a, b = offsets[r], offsets[r + 1]
        for s in range(r + 1 if same else 0, columns):
            c, d = other_offsets[s], other_offsets[s + 1]
            if r + ahead > s:
                out[r, s] = distance(U[c:d], Q[c:d], V[a:b], P[a:b], greedy)
            elif r + ahead < s:
                out[r, s] = distance(V[a:b], P[a:b], U[c:d], Q[c:d], greedy)
            if same:
                out[s, r] = out[r, s]
    return out
