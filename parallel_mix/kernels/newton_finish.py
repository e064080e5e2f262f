"""What the curvature of the density says of a point at which an ascent slows down.

The Jacobian of the modal EM step is the covariance J of p, in units of sigma^2; the Hessian of the log density is
(J - I)/sigma^2. Where all eigenvalues of J are below 1 the density curves down in every direction, and Newton's step
(I - J)^-1 step leads to the mode; where one is above 1 it leads to a saddle.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density import Array

CURVES_DOWN = 1e-6
"""The density curves down in a direction whose eigenvalue of J is below 1 by this, and up above 1 by as much."""

CLEAR_DRIFT = 1e-9
"""A step along a direction, in bandwidths, that is more than roundings."""


@compiled
def curvature(covariance: Array, step: Array, newton: Array, rising: Array) -> tuple[bool, bool]:
    """Whether the density curves down in every direction, and whether it curves up in one.

    `newton` becomes the way to the stationary point nearby, and `rising` the direction in which the density curves up
    most, of unit length, where there is one. `covariance` is J where modal EM takes the `step`.
    """
    newton[:] = 0.0
    rising[:] = 0.0
    if not np.isfinite(covariance.sum()):
        return False, False
    if solved(covariance, step, newton):
        return True, False
    values, directions = np.linalg.eigh(covariance)
    for k in range(len(values)):
        along, away = 0.0, 1.0 - values[k]
        for a in range(len(step)):
            along += directions[a, k] * step[a]
        away = away if abs(away) >= CURVES_DOWN else CURVES_DOWN
        for a in range(len(step)):
            newton[a] += directions[a, k] * along / away
    if values[-1] <= 1.0 + CURVES_DOWN:
        return False, False
    rising[:] = directions[:, -1]
    head_for(rising, step)
    return False, True


@compiled
def head_for(direction: Array, step: Array) -> None:
    """Give a direction the sign of the ascent's own drift along it.

    Where there is none (an exact tie) the sign does not depend on the order of the columns: the sum of the cubes is
    positive, or else the first coordinate that is not zero.
    """
    drift, cubes = 0.0, 0.0
    for a in range(len(step)):
        drift += direction[a] * step[a]
        cubes += direction[a] ** 3
    if abs(drift) <= CLEAR_DRIFT:
        drift = cubes
        for a in range(len(step)):
            if abs(drift) > CLEAR_DRIFT:
                break
            drift = direction[a]
    if drift < 0.0:
        direction *= -1.0


@compiled(fastmath=REORDERED)
def solved(covariance: Array, step: Array, newton: Array) -> bool:
    """Solve ((1 - 1e-6) I - J) newton = step by Cholesky; False where the matrix is not positive definite."""
    d = len(step)
    lower = np.empty((d, d))
    for a in range(d):
        for b in range(a + 1):
            left = -covariance[a, b]
            if a == b:
                left += 1.0 - CURVES_DOWN
            for k in range(b):
                left -= lower[a, k] * lower[b, k]
            if a > b:
                lower[a, b] = left / lower[b, b]
            elif left > 0.0:
                lower[a, a] = np.sqrt(left)
            else:
                return False
    for a in range(d):
        left = step[a]
        for k in range(a):
            left -= lower[a, k] * newton[k]
        newton[a] = left / lower[a, a]
    for a in range(d - 1, -1, -1):
        newton[a] /= lower[a, a]
        for k in range(a):
            newton[k] -= lower[a, k] * newton[a]
    return True
