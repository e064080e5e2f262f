"""Modes at which ascents have ended, and to which later ones nearby need not climb.

Where an ascent comes close to such a mode, its step tells whether it is on the way there: Newton's step by the Jacobian
J at the mode, (I - J)^-1 step, leads to the mode to within a third of the way. How close that must be goes by 1 - the
top eigenvalue of J: a saddle beyond which another mode's basin begins is never nearer than about that, in bandwidths.

The modes are those of ascents that go together, in their order: who else computes changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density import Array

REACH = 0.1
"""The longest way to a known mode, in bandwidths times 1 - the top eigenvalue of J there."""

MISS = 1.0 / 3.0
"""By what part of the way Newton's step may miss the mode."""

MOST_NUMBERS = 1_048_576
"""Numbers in the Jacobians that are kept (8 MB)."""


class KnownModes(NamedTuple):
    """Room for some modes; only some of it in use."""

    number: Array  # (1) int64: how many are known
    points: Array  # (k, d) in bandwidths
    log_density: Array  # (k)
    basis: Array  # (k, d, d) J, and once an ascent came near its eigenvectors
    away: Array  # (k, d) 1 - the eigenvalues of J, once an ascent came near; NaN before


@compiled
def no_modes(ascents: int, d: int) -> KnownModes:
    """Room for the modes of so many ascents."""
    k = max(min(ascents, MOST_NUMBERS // (d * d)), 1)
    return KnownModes(
        np.zeros(1, np.int64), np.empty((k, d)), np.empty(k), np.empty((k, d, d)), np.full((k, d), np.nan)
    )


@compiled
def keep_mode(modes: KnownModes, point: Array, log_density: float, J: Array) -> None:
    """Remember a mode, and J there, where there is room left."""
    k = modes.number[0]
    if k < len(modes.points):
        modes.points[k], modes.log_density[k], modes.basis[k] = point, log_density, J
        modes.number[0] += 1


@compiled(fastmath=REORDERED)
def mode_ahead(modes: KnownModes, point: Array, step: Array) -> int:
    """The known mode to which the step of modal EM at a point leads; -1 where there is none."""
    d = len(point)
    for k in range(modes.number[0]):
        distance = 0.0
        for a in range(d):
            distance += (modes.points[k, a] - point[a]) ** 2
        if distance > REACH**2:
            continue
        if np.isnan(modes.away[k, 0]):
            values, vectors = np.linalg.eigh(modes.basis[k])
            modes.away[k], modes.basis[k] = 1.0 - values, vectors
        if distance > (REACH * modes.away[k, d - 1]) ** 2:
            continue
        miss = 0.0
        for b in range(d):
            way, along = 0.0, 0.0
            for a in range(d):
                way += modes.basis[k, a, b] * (modes.points[k, a] - point[a])
                along += modes.basis[k, a, b] * step[a]
            miss += (along / modes.away[k, b] - way) ** 2
        if miss <= MISS**2 * distance:
            return k
    return -1
