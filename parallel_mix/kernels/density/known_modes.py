"""Modes at which ascents have ended, and to which later ones nearby need not climb.

Where an ascent comes close to such a mode, its step tells whether it is on the way there: Newton's step by the Jacobian
J at the mode, (I - J)^-1 step, leads to the mode but for a small share of the way. Towards a saddle at distance s
Newton's step from x misses by x^2/s. So where it misses by no more than MISS of a way no longer than REACH times (1 -
the top eigenvalue), x is under s unless s is under REACH MISS (1 - the top eigenvalue), a tenth of 1 - the top
eigenvalue. A saddle beyond which another mode's basin begins is about ten times as far, in bandwidths (but for kernels
twenty bandwidths away whose weights are e^200 times as large).

The modes are those of ascents that go together, in their order: who else computes changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.newton_finish import factored, solve

REACH = 0.7
"""The longest way to a known mode, in bandwidths times 1 - the top eigenvalue of J there."""

MISS = 0.15
"""By what share of the way Newton's step may miss the mode."""

MOST_NUMBERS = 1_048_576
"""Numbers in the Jacobians that are kept (8 MB)."""

POWERS = 10
"""Steps of the inverse iteration."""


class KnownModes(NamedTuple):
    """Room for some modes; only some of it in use."""

    number: Array  # (1) int64: how many are known
    points: Array  # (k, d) in bandwidths
    log_density: Array  # (k)
    jacobian: Array  # (k, d, d) J, and once an ascent came near the Cholesky factor of I - J
    away: Array  # (k) 1 - the top eigenvalue of J, once an ascent came near; NaN before


@compiled
def no_modes(ascents: int, d: int) -> KnownModes:
    """Room for the modes of so many ascents."""
    k = max(min(ascents, MOST_NUMBERS // (d * d)), 1)
    return KnownModes(np.zeros(1, np.int64), np.empty((k, d)), np.empty(k), np.empty((k, d, d)), np.full(k, np.nan))


@compiled
def keep_mode(modes: KnownModes, point: Array, log_density: float, J: Array) -> None:
    """Remember a mode, and J there, where there is room left."""
    k = modes.number[0]
    if k < len(modes.points):
        modes.points[k], modes.log_density[k], modes.jacobian[k] = point, log_density, J
        modes.number[0] += 1


@compiled(fastmath=REORDERED)
def mode_ahead(modes: KnownModes, point: Array, step: Array) -> int:
    """The known mode to which the step of modal EM at a point leads; -1 where there is none."""
    if not (step * step).sum() <= (REACH * (1.0 + MISS)) ** 2:
        return -1  # it is no longer than Newton's
    newton = np.empty(len(point))
    for k in range(modes.number[0]):
        way = modes.points[k] - point
        distance = (way * way).sum()
        if distance > REACH**2:
            continue
        if np.isnan(modes.away[k]):
            factored(modes.jacobian[k].copy(), modes.jacobian[k])
            modes.away[k] = least_eigenvalue(modes.jacobian[k])
        if distance > (REACH * modes.away[k]) ** 2:
            continue
        solve(modes.jacobian[k], step, newton)
        if ((newton - way) ** 2).sum() <= MISS**2 * distance:
            return k
    return -1


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
