"""Is the end of an ascent a mode, or a saddle it cannot leave by itself?

The Jacobian of the modal EM step at a fixed point is the covariance C of p in units of sigma^2, and the Hessian of
the density there has the eigenvalues f (c - 1) / sigma^2: a largest eigenvalue c above 1 means that the density still
rises along its eigenvector. A start exactly between two equal modes ends so.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density import Array, ScaledKernels, near_weights

RISES_ABOVE = 1.0 + 1e-6
NUDGE = 1e-3
"""How far an end on a saddle is moved, in bandwidths."""

CLEAR_DRIFT = 1e-9
NEGLIGIBLE = -32.0
"""Log of the part of the density below which a kernel does not matter to its curvature."""
LIGHT = 1e-3
"""What a kernel may add to the trace of the covariance for its direction not to matter in a bound."""


def second_moments(points: Array, log_density: Array, kernels: ScaledKernels, bound: bool = False) -> Array:
    """sum_i p_i (x_i - x)(x_i - x)^T over the kernels, and sum_i p_i (x_i - x) in the last row: (m, d + 1, d).

    With `bound` a matrix no smaller than it, in a fraction of the time: the many kernels that add little count in all
    directions, by their trace.
    """
    d = points.shape[1]
    moments = np.zeros((len(points), d + 1, d))
    for k, (near, p, squares) in enumerate(near_weights(points, log_density + NEGLIGIBLE, kernels)):
        p *= np.exp(NEGLIGIBLE)
        if bound:
            traces = p * squares
            heavy = traces > LIGHT
            light = traces[~heavy].sum()
            near, p = near[heavy], p[heavy]
        close = kernels.x[near] - points[k]
        moments[k, d] = p @ close
        close *= np.sqrt(p)[:, None]
        moments[k, :d] = close.T @ close
        if bound:
            moments[k, :d] += light * np.eye(d)
    return moments


def rising_directions(moments: Array, bound: bool = False) -> tuple[np.ndarray, Array]:
    """Which points are saddles, and the direction to leave each by; of moments that are a bound, which may be saddles.

    The sign is that of the ascent's own drift, or where there is none (an exact tie) one that does not depend on the
    order of the columns: the sum of the cubes positive, at last the first non-zero coordinate.
    """
    d = moments.shape[2]
    rising = np.array([not _all_below(covariance, RISES_ABOVE) for covariance in moments[:, :d]], dtype=bool)
    directions = np.zeros((len(moments), d))
    for k in np.flatnonzero(rising & (not bound)):
        direction = np.linalg.eigh(moments[k, :d])[1][:, -1]
        along = float(direction @ moments[k, d])
        if abs(along) <= CLEAR_DRIFT:
            cubes = float((direction**3).sum())
            along = cubes if abs(cubes) > CLEAR_DRIFT else float(direction[np.flatnonzero(direction)[0]])
        directions[k] = direction if along >= 0 else -direction
    return rising, directions


def _all_below(matrix: Array, bound: float) -> bool:
    """True where all eigenvalues are below the bound: a Cholesky factor is a tenth of the eigenvalues' price."""
    try:
        np.linalg.cholesky(bound * np.eye(len(matrix)) - matrix)
    except np.linalg.LinAlgError:
        return False
    return True
