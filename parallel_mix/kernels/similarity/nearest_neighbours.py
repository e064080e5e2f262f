"""The k most similar of each row, and what they vote for: for many k from one search."""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray


@compiled
def most_similar(S: Array, k: int) -> Ints:
    """Columns of the k largest entries of each row, by falling entry, of equals the lowest column first."""
    m, n = S.shape
    k = max(min(k, n), 1)
    found = np.zeros((m, k), np.int64)
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
                    values[at], found[i, at] = values[at - 1], found[i, at - 1]
                at -= 1
            values[at], found[i, at] = value, j
            count = min(count + 1, k)
    return found


@compiled
def votes(near: Ints, y: Ints, prior: Array, ks: Ints) -> Ints:
    """The class with the most of the first k neighbours, for each k (rising) and row.

    Of equal ones the class of the larger prior, then the lowest.
    """
    m, most = near.shape
    found = np.empty((len(ks), m), np.int64)
    for i in range(m):
        counts = np.zeros(len(prior), np.int64)
        taken = 0
        for t in range(len(ks)):
            while taken < min(ks[t], most):
                counts[y[near[i, taken]]] += 1
                taken += 1
            best = 0
            for c in range(1, len(prior)):
                if counts[c] > counts[best] or (counts[c] == counts[best] and prior[c] > prior[best]):
                    best = c
            found[t, i] = best
    return found


def first_largest(scores: Array, prior: Array) -> Ints:
    """The class of the largest score (last axis) up to rounding; of equal ones of the larger prior, then the lowest."""
    order = np.lexsort((np.arange(len(prior)), -prior))
    ranked = scores[..., order]
    top = ranked.max(axis=-1, keepdims=True)
    size = np.abs(np.where(np.isfinite(ranked), ranked, 0.0)).max(axis=-1, keepdims=True)
    near = (ranked >= top - 1e-12 * size) | (ranked == top)
    chosen: Any = order[near.argmax(axis=-1)]
    return np.asarray(chosen)
