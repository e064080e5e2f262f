"""Is the end of an ascent a mode, or a saddle it cannot leave by itself?

The Jacobian of the modal EM step at a fixed point is the covariance C of p in units of sigma^2, and the Hessian of
the density there has the eigenvalues f (c - 1) / sigma^2: a largest eigenvalue c above 1 means that the density still
rises along its eigenvector. A start exactly between two equal modes ends so.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density import Array, ScaledKernels

RISES_ABOVE = 1.0 + 1e-6
NUDGE = 1e-3
"""How far an end on a saddle is moved, in bandwidths."""

CLEAR_DRIFT = 1e-9
NEGLIGIBLE = -45.0


def second_moments(points: Array, log_density: Array, kernels: ScaledKernels) -> Array:
    """sum_i p_i (x_i - x)(x_i - x)^T over the kernels, and sum_i p_i (x_i - x) in the last row: (m, d + 1, d)."""
    d = points.shape[1]
    moments = np.zeros((len(points), d + 1, d))
    for k, point in enumerate(points):
        differences = kernels.left[:, :d] - point
        exponents = kernels.log_weights - 0.5 * np.einsum("ij,ij->i", differences, differences) - log_density[k]
        near = np.flatnonzero(exponents > NEGLIGIBLE)
        p = np.exp(exponents[near])
        close = differences[near]
        moments[k, :d] = (close * p[:, None]).T @ close
        moments[k, d] = p @ close
    return moments


def rising_directions(moments: Array) -> tuple[np.ndarray, Array]:
    """Which points are saddles, and the direction to leave each by.

    The sign is that of the ascent's own drift, or where there is none (an exact tie) one that does not depend on the
    order of the columns: the sum of the cubes positive, at last the first non-zero coordinate.
    """
    d = moments.shape[2]
    eigenvalues, vectors = np.linalg.eigh(moments[:, :d])
    rising = eigenvalues[:, -1] > RISES_ABOVE
    directions = np.ascontiguousarray(vectors[:, :, -1])
    for direction, drift in zip(directions[rising], moments[rising, d], strict=True):
        along = float(direction @ drift)
        if abs(along) <= CLEAR_DRIFT:
            cubes = float((direction**3).sum())
            along = cubes if abs(cubes) > CLEAR_DRIFT else float(direction[np.flatnonzero(direction)[0]])
        if along < 0:
            direction *= -1.0
    return rising, directions
