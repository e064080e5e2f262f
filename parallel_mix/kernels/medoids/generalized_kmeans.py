"""Generalized k-means (k-medoids by alternation, Maranzana 1964) for the same aim as vertex substitution.

The start is that of the k-center problem: farthest first from the point of the least total distance. Then points go to
their nearest medoid, and each cluster's medoid becomes the member of the least total distance from the members, until
nothing changes. Of equal ones always the lowest index. Sums are of whole numbers, as in `vertex_substitution`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.vertex_substitution import assign, in_steps, only_medoid

Ints = np.ndarray
MOST_ROUNDS = 1_000
"""The most rounds: with equal totals, two sets of medoids could take turns for ever."""


@compiled
def k_center(E: Array, w: Array, k: int, steps: float) -> Ints:
    """Medoids of the k-center start: the point of the least total distance, and then always the farthest point."""
    medoids = np.zeros(k, np.int64)
    only_medoid(E, w, medoids, steps)
    near = E[medoids[0]].copy()
    chosen = np.zeros(len(near), np.bool_)
    chosen[medoids[0]] = True
    for j in range(1, k):
        far = -1
        for i in range(len(near)):
            if not chosen[i] and (far < 0 or near[i] > near[far]):
                far = i
        medoids[j] = far
        chosen[far] = True
        near = np.minimum(near, E[far])
    return medoids


@compiled
def totals_within(E: Array, w: Array, label: Ints, steps: float) -> Ints:
    """The total weighted distance, in steps, to each point from the members of its cluster."""
    total = np.zeros(len(label), np.int64)
    for j in range(len(label)):
        for i in range(len(label)):
            if label[i] == label[j]:
                total[j] += in_steps(E[j, i], w[i], steps)
    return total


@compiled
def medoids_of(total: Ints, label: Ints, k: int) -> Ints:
    """The point of the least total of each cluster; of equal ones the first."""
    best = np.full(k, -1, np.int64)
    for i in range(len(label)):
        if best[label[i]] < 0 or total[i] < total[best[label[i]]]:
            best[label[i]] = i
    return best


@compiled
def alternate(E: Array, w: Array, medoids: Ints, steps: float) -> Any:
    """Go through rounds from these medoids (changed in place) until nothing changes; return the loss, in steps."""
    n, k = E.shape[0], len(medoids)
    first, second = np.zeros(n, np.int64), np.zeros(n, np.int64)
    near = np.empty((n, k), E.dtype)
    for _ in range(MOST_ROUNDS):
        for j in range(k):
            near[:, j] = E[medoids[j]]
        assign(near, medoids, first, second)
        next_medoids = medoids_of(totals_within(E, w, first, steps), first, k)
        if (next_medoids == medoids).all():
            break
        medoids[:] = next_medoids
    for j in range(k):
        near[:, j] = E[medoids[j]]
    assign(near, medoids, first, second)
    loss = np.int64(0)
    for i in range(n):
        loss += in_steps(E[medoids[first[i]], i], w[i], steps)
    return loss
