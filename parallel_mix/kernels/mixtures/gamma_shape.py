"""The shape of gamma distributions whose scales differ from cluster to cluster (hlm.txt, equations (3) and (4)).

    log s - psi(s) = c,    c = sum_j W_j log u_j - sum_i w_i log u_i = - sum_i w_i log(u_i / u_j(i)) >= 0
    b_j = u_j / s

u_i squared distance to the cluster's centroid, u_j their mean in cluster j, w weights that add to 1. The left side
falls from infinity to 0 between 1/(2s) and 1/s, so the root lies in (1/(2c), 1/c).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, zeta

from parallel_mix.kernels.density.kernel_sums import Array

LARGEST_SHAPE = 1e6 / 2
"""Where all u of each cluster are equal, c is 0 and the shape infinite."""
ASYMPTOTIC = 1e4
"""From here on log s - psi(s) cancels; 1/(2s) + 1/(12 s^2) is exact to rounding."""


def spread_of_logs(u: Array, w: Array | None = None) -> float:
    """The sum - sum w log(u / mean) over squared distances u > 0: 0 where all are equal."""
    if not len(u):
        return 0.0
    w = np.ones(len(u)) if w is None else w
    mean = float(w @ u) / float(w.sum())
    return max(-float(w @ np.log(u / mean)), 0.0)


def solve_shape(c: float) -> float:
    """The shape s that solves log s - psi(s) = c, at most `LARGEST_SHAPE`."""
    if c <= 0.5 / LARGEST_SHAPE:
        return LARGEST_SHAPE
    low, high = 0.5 / c, 1.0 / c
    s = (3.0 - c + math.sqrt((c - 3.0) ** 2 + 24.0 * c)) / (12.0 * c)
    for _ in range(100):
        s = s if low < s < high else math.sqrt(low * high)
        value, slope = _side(s)
        low, high = (s, high) if value > c else (low, s)
        step = (value - c) / slope  # Newton's in log s
        s *= math.exp(-min(max(step, -1.0), 1.0))
        if abs(step) < 1e-8:  # the next would be its square
            break
    return min(s, LARGEST_SHAPE)


def _side(s: float) -> tuple[float, float]:
    """The left side log s - psi(s) of the equation, and its derivative by log s."""
    if s > ASYMPTOTIC:
        return 0.5 / s + 1.0 / (12.0 * s * s), -0.5 / s - 1.0 / (6.0 * s * s)
    return math.log(s) - float(digamma(s)), 1.0 - s * float(zeta(2.0, s))  # of 2: the trigamma function


def whole_dimension(s: Array | float) -> Array:
    """The shape s* = floor(2 s + 1/2) / 2, whose dimension 2 s* is a whole number of 1 or more."""
    return np.maximum(np.floor(2.0 * np.asarray(s) + 0.5) / 2.0, 0.5)
