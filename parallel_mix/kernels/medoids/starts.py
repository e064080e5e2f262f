"""The starts of vertex substitution: medoids drawn at random."""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray


@compiled
def draw_starts(numbers: Array, n: int, k: int) -> Ints:
    """For each column of numbers (0 to 1) the k of n places that a shuffle by them puts first, in rising order.

    All random starts of vertex substitution are drawn here; a column's start depends on that column alone.
    """
    starts, places, others = np.empty((numbers.shape[1], k), np.int64), np.arange(n), np.empty(k, np.int64)
    for r in range(len(starts)):
        for j in range(k):
            other, i = j + int(numbers[j, r] * (n - j)), j
            place, places[other], others[j] = places[other], places[j], other
            places[j] = place
            while i > 0 and starts[r, i - 1] > place:
                starts[r, i] = starts[r, i - 1]
                i -= 1
            starts[r, i] = place
        for j in range(k - 1, -1, -1):  # back in order, for the next column
            places[j], places[others[j]] = places[others[j]], places[j]
    return starts
