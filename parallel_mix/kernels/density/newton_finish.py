"""The curvature of the density where an ascent slows down, and Newton's step from there.

The Jacobian of the modal EM step is the covariance J of p, in units of sigma^2; the Hessian of the log density is
(J - I)/sigma^2. Where all eigenvalues of J are below 1 the density curves down in every direction, and Newton's step
(I - J)^-1 step leads to the mode; where one is above 1 it leads to a saddle.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density.kernel_sums import Array

CURVES_DOWN = 1e-6
"""The density curves down in a direction whose eigenvalue of J is below 1 by this, and up above 1 by as much."""

MOST_SWEEPS, STRAIGHT = 40, 1e-14
"""Rotations are over when the cosines between all rows are this small."""

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
    d = len(step)
    if not np.isfinite(covariance.sum()):
        return False, False
    room = np.empty((d, d))
    if factored(covariance, room):
        solve(room, step, newton)
        return True, False
    values, directions = eigen(covariance)
    top = values.argmax()
    for k in range(d):
        away = 1.0 - values[k]
        away = away if abs(away) >= CURVES_DOWN else CURVES_DOWN
        newton += directions[k] * ((directions[k] * step).sum() / away)
    if values[top] <= 1.0 + CURVES_DOWN:
        return False, False
    rising[:] = directions[top]
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
def factored(covariance: Array, lower: Array) -> bool:
    """Make the Cholesky factor of (1 - 1e-6) I - J; False where that is not positive definite."""
    for a in range(len(lower)):
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
    return True


@compiled(fastmath=REORDERED)
def solve(lower: Array, step: Array, newton: Array) -> None:
    """Newton's step (I - J)^-1 step, by the Cholesky factor."""
    d = len(step)
    for a in range(d):
        left = step[a]
        for k in range(a):
            left -= lower[a, k] * newton[k]
        newton[a] = left / lower[a, a]
    for a in range(d - 1, -1, -1):
        newton[a] /= lower[a, a]
        for k in range(a):
            newton[k] -= lower[a, k] * newton[a]


@compiled(fastmath=REORDERED)
def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues of a symmetric matrix that has none below zero, in no order, and their directions (a row each).

    One-sided rotations (Jacobi, Hestenes) until the rows of directions x matrix are at right angles; their lengths are
    the eigenvalues. The library's solver is faster, but it is SciPy's: its threads and roundings would not be ours.
    """
    d = len(matrix)
    rows, directions = matrix.copy(), np.eye(d)
    for _ in range(MOST_SWEEPS):
        crooked = False
        for p in range(d - 1):
            for q in range(p + 1, d):
                x, y = rows[p], rows[q]
                xx, yy, xy = 0.0, 0.0, 0.0
                for k in range(d):
                    xx += x[k] * x[k]
                    yy += y[k] * y[k]
                    xy += x[k] * y[k]
                if xy * xy <= STRAIGHT**2 * xx * yy:
                    continue
                crooked = True
                slope = (yy - xx) / (2.0 * xy)
                tangent = 1.0 / (abs(slope) + np.sqrt(1.0 + slope * slope))
                tangent = -tangent if slope < 0.0 else tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                turn(x, y, cosine, sine)
                turn(directions[p], directions[q], cosine, sine)
        if not crooked:
            break
    values = np.empty(d)
    for p in range(d):
        values[p] = np.sqrt((rows[p] * rows[p]).sum())
    return values, directions


@compiled(fastmath=REORDERED)
def turn(x: Array, y: Array, cosine: float, sine: float) -> None:
    """Rotate two rows into each other, in place."""
    for k in range(len(x)):
        x[k], y[k] = cosine * x[k] - sine * y[k], sine * x[k] + cosine * y[k]
