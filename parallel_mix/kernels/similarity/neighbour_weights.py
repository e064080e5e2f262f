"""Weights of neighbours by their similarities (Chen et al. 2009): affinity, ridge interpolation, ridge regression.

paper <-> code    s(x, x_i) <-> s (rows, k)    S of the neighbours <-> K (rows, k, k)    lambda <-> ridge
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

MOST_STEPS = 100_000
"""The most exchanges for the weights of one row."""
TOLERANCE = 1e-10
"""The gap between gradients, over the largest similarity, at which exchanges end."""


def affinities(s: Array, lowest: float) -> Array:
    """The weights (s - lowest) / sum of each row's neighbours; equal ones where all are 0."""
    w = np.maximum(s - lowest, 0.0)
    total = w.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 0, w / np.where(total > 0, total, 1.0), 1.0 / s.shape[-1]))


def regression_weights(K: Array, s: Array, ridges: Array) -> Array:
    """The weights pinv(K + ridge I) s for each ridge, (ridges, rows, k).

    All ridges share one decomposition of a symmetric K; for another K there is one for each ridge.
    """
    k = K.shape[-1]
    eye, eps = np.eye(k), k * np.finfo(np.float64).eps
    if np.array_equal(K, np.swapaxes(K, -1, -2)):
        L, U = np.linalg.eigh(K)
        projected = np.einsum("nij,ni->nj", U, s)
        shifted = L + np.asarray(ridges)[:, None, None]
        size = np.abs(shifted)
        kept = size > eps * size.max(axis=-1, keepdims=True)
        inverse = np.where(kept, 1.0 / np.where(kept, shifted, 1.0), 0.0)
        return np.asarray(np.einsum("nij,rnj->rni", U, inverse * projected))
    return np.stack([np.einsum("nij,nj->ni", np.linalg.pinv(K + ridge * eye, rcond=eps), s) for ridge in ridges])


@compiled
def interpolation_weights(K: Array, s: Array, ridge: float) -> Array:
    """w of least 1/2 w'(K + ridge I)w - s'w with w >= 0 and sum w = 1, for each row; K is semidefinite.

    Pairs of weights are exchanged: from the one of the largest gradient that can fall to the one of the smallest, as
    far as is best, until no exchange brings more than rounding.
    """
    m, k = s.shape
    out = np.empty((m, k))
    for row in range(m):
        w = np.full(k, 1.0 / k)
        gradient = K[row] @ w + ridge * w - s[row]
        scale = max(np.abs(s[row]).max(), np.abs(K[row]).max(), 1e-300)
        for _ in range(MOST_STEPS):
            low, high = 0, -1
            for i in range(k):
                if gradient[i] < gradient[low]:
                    low = i
                if w[i] > 0 and (high < 0 or gradient[i] > gradient[high]):
                    high = i
            gap = gradient[high] - gradient[low]
            if gap <= TOLERANCE * scale:
                break
            curve = K[row, low, low] + K[row, high, high] - 2.0 * K[row, low, high] + 2.0 * ridge
            step = min(gap / curve, w[high]) if curve > 0 else w[high]
            w[low] += step
            w[high] = w[high] - step if step < w[high] else 0.0
            for i in range(k):
                gradient[i] += step * (K[row, i, low] - K[row, i, high])
            gradient[low] += ridge * step
            gradient[high] -= ridge * step
        out[row] = w
    return out
