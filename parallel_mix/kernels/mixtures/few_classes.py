"""Classes of few points: all that a mixture over distances needs of them, in one call.

The models do this step by step (starts, vertex substitution, clusters, their sums) for large classes, with the same
kernels and the same results bit by bit; for classes of some dozens of points, calling each step would be most of the
work.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.kernels.medoids.table_substitution import substitute_by_table, table_of
from parallel_mix.kernels.medoids.vertex_substitution import only_medoid, steps_of
from parallel_mix.kernels.mixtures.hlm_mixture import FIELDS, mean_square, nearest_sums

Ints = np.ndarray


@compiled
def distances_within(D: Array, rows: Ints) -> tuple[Array, Array]:
    """The distances between some rows, and their transpose, which has a row for each candidate."""
    n = len(rows)
    block, E = np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            block[i, j] = E[j, i] = D[rows[i], rows[j]]
    return block, E


@compiled
def table_and_steps(E: Array, w: Array) -> tuple[Ints, float]:
    """The weighted distances in steps, and how many steps a distance of 1 has."""
    largest = 0.0
    for j in range(len(E)):
        for i in range(len(E)):
            largest = max(largest, E[j, i])
    steps = steps_of(w, largest)
    return table_of(E, w, steps), steps


@compiled
def medoids_of_few(E: Array, w: Array, Q: Ints, steps: float, starts: Ints) -> Ints:
    """The medoids of the start that comes to the least loss, in rising order."""
    if starts.shape[1] == 1:
        only_medoid(E, w, starts[0], steps)
        return np.asarray(starts[0])
    return np.sort(starts[np.argmin(substitute_by_table(Q, starts))])


@compiled
def cluster_few(D: Array, rows: Ints, w: Array, numbers: Array, k: int) -> tuple[Array, Ints]:
    """The distances among some rows of weights `w`, and their medoids as places; `draw_starts` draws the starts."""
    block, E = distances_within(D, rows)
    Q, steps = table_and_steps(E, w)
    return block, medoids_of_few(E, w, Q, steps, draw_starts(numbers, len(rows), k))


@compiled
def cluster_class(block: Array, E: Array, w: Array, rows: Ints, numbers: Array, counts: Ints, table: Array) -> int:
    """Write the clusterings of a class into a table; return how many columns that takes."""
    Q, steps = table_and_steps(E, w)
    at = 0
    for count in counts:
        medoids = medoids_of_few(E, w, Q, steps, draw_starts(numbers, len(rows), min(count, len(rows))))
        sums = nearest_sums(block, medoids, w, np.ones(len(w)))[1]
        for j in range(len(medoids)):
            table[0, at], table[1, at] = count, rows[medoids[j]]
            for field in range(len(sums)):
                table[2 + field, at] = sums[field, j]
            at += 1
    return at


@compiled
def cluster_classes(
    D: Array, w: Array, order: Ints, ends: Ints, numbers: Array, counts: Ints
) -> tuple[Array, Ints, Array]:
    """Cluster classes into each of some `counts`; a class has the rows `order` of D from one of `ends` to the next.

    Starts are drawn by each class's `numbers`. Returned are columns as `as_clusters` has them, where each class's
    begin and end, and each class's mean squared distance.
    """
    classes, at = len(ends) - 1, 0
    begins, spare = np.zeros(classes + 1, np.int64), np.zeros(classes)
    table = np.empty((2 + len(FIELDS), classes * counts.sum()))
    for c in range(classes):
        rows = order[ends[c] : ends[c + 1]]
        if len(rows) > 0:
            block, E = distances_within(D, rows)
            at += cluster_class(block, E, w[rows], rows, numbers[:, c], counts, table[:, at:])
            spare[c] = mean_square(block)
        begins[c + 1] = at
    return table, begins, spare


@compiled
def grown_block(D: Array, to_past: Array, among: Array, old: Ints, new: Ints) -> Array:
    """The distances within a class and some new rows: those of `new` rows to all, to `old` ones and among them."""
    n, m = len(old), len(new)
    block = np.empty((n + m, n + m), D.dtype)
    for i in range(n):
        for j in range(n):
            block[i, j] = D[i, j]
    for i in range(m):
        for j in range(n):
            block[n + i, j] = to_past[new[i], old[j]]
        for j in range(m):
            block[n + i, n + j] = among[new[i], new[j]]
    for i in range(n):
        for j in range(m):
            block[i, n + j] = block[n + j, i]
    return block
