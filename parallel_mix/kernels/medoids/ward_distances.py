"""Ward's clustering from distances alone: the two clusters are joined that add least to the sum of squares.

Lance & Williams on squared distances, masses m being weights (as 'ward' of SciPy and ward.D2 of R where all are 1):

    e(A, B) = 2 m_A m_B / (m_A + m_B) |a - b|^2        for single points, and then
    e(A + B, C) = ((m_A + m_C) e(A, C) + (m_B + m_C) e(B, C) - m_C e(A, B)) / (m_A + m_B + m_C)

by chains of nearest neighbours (n^2 in all). Of equal ones the lowest index.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray


@compiled
def join_all(D: Array, w: Array) -> tuple[Ints, Array]:
    """All n - 1 joins as pairs of points, one of each cluster, and their heights e; `D` is symmetric."""
    n = D.shape[0]
    e = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            both = w[i] + w[j]
            e[i, j] = 2.0 * w[i] * w[j] / both * np.float64(D[i, j]) * np.float64(D[i, j]) if both > 0 else 0.0
    mass, alive = w.copy(), np.ones(n, np.bool_)
    pairs, heights = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    chain = np.empty(n, np.int64)
    length = 0
    for done in range(n - 1):
        if length == 0:
            chain[0], length = np.argmax(alive), 1
        while True:
            a = chain[length - 1]
            b = chain[length - 2] if length > 1 else -1  # of equal ones the one before: the chain ends
            for c in range(n):
                if alive[c] and c != a and (b < 0 or e[a, c] < e[a, b]):
                    b = c
            if length > 1 and b == chain[length - 2]:
                break
            chain[length] = b
            length += 1
        length -= 2
        low, high = min(a, b), max(a, b)
        pairs[done, 0], pairs[done, 1], heights[done] = low, high, e[a, b]
        alive[high] = False
        for c in range(n):
            if alive[c] and c != low:
                total = mass[low] + mass[high] + mass[c]
                joined = (
                    (mass[low] + mass[c]) * e[low, c] + (mass[high] + mass[c]) * e[high, c] - mass[c] * e[low, high]
                )
                e[low, c] = joined / total if total > 0 else 0.0
                e[c, low] = e[low, c]
        mass[low] += mass[high]
    return pairs, heights


@compiled
def cut_tree(pairs: Ints, heights: Array, k: int) -> Ints:
    """Labels of k clusters, which all joins but the k - 1 highest make; a label is the number of a point of it."""
    n = len(heights) + 1
    order = np.argsort(heights, kind="mergesort")
    label = np.arange(n)
    for join in order[: n - k]:
        a, b = label[pairs[join, 0]], label[pairs[join, 1]]
        for i in range(n):
            if label[i] == b:
                label[i] = a
    return label
