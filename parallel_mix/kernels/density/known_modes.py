"""Modes at which ascents have ended, and to which later ones nearby need not climb.

Where an ascent comes close to such a mode, its step tells whether it is on the way there: Newton's step by the Jacobian
J at the mode, (I - J)^-1 step, leads to the mode but for a small share of the way.

Why it ends where it would: on a line through the mode, with a saddle at distance s and another mode at distance t, the
step at x is -k x (x - s) (x - t), as long as both are within a bandwidth or so. So Newton's step misses by the share
|(1 - x/s) (1 - x/t) - 1| of the way. That is small where x is a small share of s, and once more beyond the other mode,
around x = s + t. Here k s t is 1 - J; and 6 k is, but for its sign, the fourth cumulant of kernels' shares, whose
variance is about 1, and no more than 2. So s t is at least 3 (1 - J), and s + t at least 3.46 times the root of 1 - J
(at 43,000 modes of random mixtures of two to five kernels on a line no step misled within 3.3 times that root). `REACH`
stays far below it. Where there are more columns, what is left of the way in another direction may bend the step so that
it leads to the mode by accident. It shrinks from step to step, and so an accident seldom lasts: two steps in a row must
lead there, unless the way is so short (`AT_ONCE`) that the saddle, which is at 3 (1 - J) / t or farther, lies beyond.

The modes are those of ascents that go together, in their order: who else computes changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.newton_finish import factored, solve

REACH = 1.0
"""The longest way to a known mode, in bandwidths times the root of 1 - the top eigenvalue of J there."""

AT_ONCE = 0.7
"""Where the way is under this times 1 - the top eigenvalue, in bandwidths, one step is enough; else two in a row."""

FARTHEST = 1.0
"""The longest way to any known mode, in bandwidths."""

MISS = 0.15
"""By what share of the way Newton's step may miss the mode."""

MOST_NUMBERS = 1_048_576
"""Numbers in the Jacobians that are kept (8 MB)."""

POWERS = 10
"""Steps of the inverse iteration."""


class KnownModes(NamedTuple):
    """Room for some modes; only some of it in use."""

    number: Any  # (1) int64: how many are known
    points: Array  # (k, d) in bandwidths
    log_density: Array  # (k)
    jacobian: Array  # (k, d, d) J, and once an ascent came near the Cholesky factor of I - J
    away: Array  # (k) 1 - the top eigenvalue of J, once an ascent came near; NaN before
    led: Any  # (m) int64: the mode that the last step of each ascent led to; -1: none


@compiled
def no_modes(ascents: int, d: int) -> KnownModes:
    """Room for the modes of so many ascents."""
    k = max(min(ascents, MOST_NUMBERS // (d * d)), 1)
    number, led, away = np.zeros(1, np.int64), np.full(ascents, -1, np.int64), np.full(k, np.nan)
    return KnownModes(number, np.empty((k, d)), np.empty(k), np.empty((k, d, d)), away, led)


@compiled
def keep_mode(modes: KnownModes, point: Array, log_density: float, J: Array) -> None:
    """Remember a mode, and J there, where there is room left."""
    k = modes.number[0]
    if k < len(modes.points):
        modes.points[k], modes.log_density[k], modes.jacobian[k] = point, log_density, J
        modes.number[0] += 1


@compiled
def mode_ahead(modes: KnownModes, i: int, point: Array, step: Array) -> int:
    """The known mode to which ascent i surely goes, by its step of modal EM at a point; -1 where there is none."""
    nearest = nearest_ahead(modes, point, step)
    if nearest >= 0 and nearest != modes.led[i]:
        way = modes.points[nearest] - point
        if (way * way).sum() > (AT_ONCE * modes.away[nearest]) ** 2:
            modes.led[i] = nearest
            return -1
    modes.led[i] = nearest
    return nearest


@compiled(fastmath=REORDERED)
def nearest_ahead(modes: KnownModes, point: Array, step: Array) -> int:
    """The nearest known mode to which the step of modal EM at a point leads; -1 where there is none."""
    if not (step * step).sum() <= (FARTHEST * (1.0 + MISS)) ** 2:
        return -1  # it is no longer than Newton's
    newton, nearest, ahead = np.empty(len(point)), FARTHEST**2, -1
    for k in range(modes.number[0]):
        way = modes.points[k] - point
        distance = (way * way).sum()
        if distance > nearest:
            continue
        if np.isnan(modes.away[k]):
            factored(modes.jacobian[k].copy(), modes.jacobian[k])
            modes.away[k] = least_eigenvalue(modes.jacobian[k])
        if distance > REACH**2 * modes.away[k]:
            continue
        solve(modes.jacobian[k], step, newton)
        if ((newton - way) ** 2).sum() <= MISS**2 * distance:
            nearest, ahead = distance, k
    return ahead


@compiled
def least_eigenvalue(lower: Array) -> float:
    """The smallest eigenvalue of the matrix with this Cholesky factor, by inverse iteration, within some percent."""
    d = len(lower)
    vector = np.cos(np.arange(1.0, d + 1.0) ** 2)  # at right angles to the eigenvector by accident alone
    longer, length = np.empty(d), 1.0
    for _ in range(POWERS):
        vector /= np.sqrt((vector * vector).sum())
        solve(lower, vector, longer)
        length = np.sqrt((longer * longer).sum())
        vector[:] = longer
    return 1.0 / length
