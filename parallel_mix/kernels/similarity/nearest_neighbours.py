"""The k most similar points of each row and the class that most of them have, for many k from one search."""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray


@compiled
def most_similar(S: Array, k: int) -> Ints:
    """The columns of the k largest entries of each row, by falling entry, of equal ones the lowest column first."""
    m, n = S.shape
    k = max(min(k, n), 1)
    columns = np.zeros((m, k), np.int64)
    values = np.empty(k, np.float64)
    for i in range(m):
        count = 0
        for j in range(n):
            value = S[i, j]
            if count == k and not value > values[k - 1]:
                continue
            at = count if count < k else k - 1
            while at > 0 and value > values[at - 1]:
                if at < k:
                    values[at], columns[i, at] = values[at - 1], columns[i, at - 1]
                at -= 1
            values[at], columns[i, at] = value, j
            count = min(count + 1, k)
    return columns


@compiled
def votes(near: Ints, y: Ints, prior: Array, ks: Ints) -> Ints:
    """The class with the most of the first k neighbours, for each k (rising) and row.

    Of equal ones the class of the larger prior, then the lowest.
    """
    m, most = near.shape
    classes = np.empty((len(ks), m), np.int64)
    for i in range(m):
        counts = np.zeros(len(prior), np.int64)
        counted = 0
        for t in range(len(ks)):
            while counted < min(ks[t], most):
                counts[y[near[i, counted]]] += 1
                counted += 1
            best = 0
            for c in range(1, len(prior)):
                if counts[c] > counts[best] or (counts[c] == counts[best] and prior[c] > prior[best]):
                    best = c
            classes[t, i] = best
    return classes


def first_largest(scores: Array, prior: Array, rounding: float = 1e-12) -> Ints:
    """The class of the largest score (last axis); of scores equal up to rounding, the larger prior, then the lowest.

    `rounding` is what scores may be wrong by, as a share of the largest.
    """
    order = np.lexsort((np.arange(len(prior)), -prior))
    ranked = scores[..., order]
    top = ranked.max(axis=-1, keepdims=True)
    size = np.abs(np.where(np.isfinite(ranked), ranked, 0.0)).max(axis=-1, keepdims=True)
    near = (ranked >= top - rounding * size) | (ranked == top)
    chosen: Any = order[near.argmax(axis=-1)]
    return np.asarray(chosen)
