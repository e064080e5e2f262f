"""What the curvature of the density says of a point at which an ascent slows down.

The Jacobian of the modal EM step is the covariance J of p, in units of sigma^2; the Hessian of the log density is
(J - I)/sigma^2. Where all eigenvalues of J are below 1 the density curves down in every direction, and Newton's step
(I - J)^-1 step leads to the mode; where one is above 1 it leads to a saddle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.density import Array

CURVES_DOWN = 1e-6
"""The density curves down in a direction whose eigenvalue of J is below 1 by this, and up above 1 by as much."""

CLEAR_DRIFT = 1e-9
"""A step along a direction, in bandwidths, that is more than roundings."""


@dataclass
class Curvature:
    """What is known of some points from their steps and covariances of p."""

    newton: Array  # (m, d) (I - J)^-1 step: the way to the stationary point nearby
    length: Array  # (m) its length
    curves_down: np.ndarray  # (m) bool: in every direction, so that a stationary point nearby is a mode
    rising: Array  # (m, d) the direction in which the density curves up most, of unit length; zeros where there is none

    @classmethod
    def of(cls, step: Array, covariance: Array) -> Curvature:
        """The curvature where modal EM takes the `step` (m, d) and p has the `covariance` (m, d, d)."""
        identity = np.eye(step.shape[1])
        curves_down = _positive_definite((1.0 - CURVES_DOWN) * identity - covariance)
        newton, rising = np.zeros_like(step), np.zeros_like(step)
        if curves_down.any():
            matrices = identity - covariance[curves_down]
            newton[curves_down] = np.linalg.solve(matrices, step[curves_down, :, None])[:, :, 0]
        for row in np.flatnonzero(~curves_down & np.isfinite(covariance).all(axis=(1, 2))):
            values, directions = np.linalg.eigh(covariance[row])
            along = directions.T @ step[row]
            away = 1.0 - values
            away[np.abs(away) < CURVES_DOWN] = CURVES_DOWN
            newton[row] = directions @ (along / away)
            if values[-1] > 1.0 + CURVES_DOWN:
                rising[row] = _towards(directions[:, -1], along[-1])
        return cls(newton, np.sqrt(np.einsum("ij,ij->i", newton, newton)), curves_down, rising)


def _towards(direction: Array, drift: float) -> Array:
    """The direction with the sign of the ascent's own drift along it.

    Where there is none (an exact tie) the sign does not depend on the order of the columns: the sum of the cubes is
    positive, or else the first coordinate that is not zero.
    """
    if abs(drift) <= CLEAR_DRIFT:
        cubes = float((direction**3).sum())
        drift = cubes if abs(cubes) > CLEAR_DRIFT else float(direction[np.flatnonzero(direction)[0]])
    return direction if drift >= 0 else -direction


def _positive_definite(matrices: Array) -> NDArray[np.bool_]:
    """Which symmetric matrices have positive eigenvalues only, by Cholesky: a tenth of the eigenvalues' cost."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.zeros(1, dtype=bool)
        half = len(matrices) // 2
        return np.concatenate([_positive_definite(matrices[:half]), _positive_definite(matrices[half:])])
    return np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
