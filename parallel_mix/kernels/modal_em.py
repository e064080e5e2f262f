"""Modal EM on a Gaussian kernel density (Li, Ray & Lindsay 2007; dissertation 4.2, 5.2).

E step   p_i = w_i phi(x | x_i, sigma^2 I) / f(x)        M step   x <- sum_i p_i x_i

paper <-> code: x^(t) `points` (in bandwidths), x^(t+1) - x^(t) = sum_i p_i (x_i - x), f(x) `log_density` (its log,
without the Gaussian's constant). f never falls along an ascent.

An ascent ends when its bound on the distance still to go, step x rho/(1 - rho) with rho the ratio of the last two
steps, is under 1e-4 sigma, or when it no longer moves at all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from parallel_mix.kernels.density import Array, ScaledKernels, kernel_sums

TOLERANCE = 1e-4
"""Bound on the distance to go, in bandwidths, at which an ascent ends."""

NO_STEP = 1e-10
"""A step this small, in bandwidths (or a few roundings of the coordinates), is none."""

MAX_ITERATIONS = 10_000


@dataclass
class Ascents:
    """The state of many ascents; what `advance` changes is all that a checkpoint needs."""

    points: Array  # (m, d) in bandwidths
    log_density: Array  # (m) at the point before the last step
    last_step: Array  # (m) its length; infinite before the first
    spread: Array  # (m) trace of the covariance of p: under 1 the point ahead is no saddle
    iterations: np.ndarray  # (m) int32
    moving: np.ndarray  # (m) bool

    @classmethod
    def begin(cls, points: Array, log_density: Array) -> Ascents:
        """Ascents from `points`; `log_density` is a lower bound, or a guess, for each."""
        m = len(points)
        return cls(
            np.array(points, dtype=np.float64),
            np.array(log_density, dtype=np.float64),
            np.full(m, np.inf),
            np.zeros(m),
            np.zeros(m, dtype=np.int32),
            np.ones(m, dtype=bool),
        )

    def advance(self, which: np.ndarray, sums: Array) -> None:
        """Take one step for the ascents `which`, from their sums over all kernels."""
        d = self.points.shape[1]
        total = sums[:, d]
        step = sums[:, :d] / total[:, None]
        squared = np.einsum("ij,ij->i", step, step)
        length = np.sqrt(squared)
        points = self.points[which] + step
        no_step = np.maximum(NO_STEP, 8 * np.finfo(float).eps * np.abs(points).max(axis=1))
        last = self.last_step[which]
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = length / last
            to_go = np.where(rho < 1.0, length * rho / (1.0 - rho), np.inf)
        arrived = (length <= no_step) | (np.isfinite(last) & (to_go < TOLERANCE))
        self.points[which] = points
        self.log_density[which] = np.log(total) + sums[:, d + 2]
        self.last_step[which] = length
        self.spread[which] = np.maximum(sums[:, d + 1] / total - squared, 0.0)
        self.iterations[which] += 1
        self.moving[which] = ~arrived & (self.iterations[which] < MAX_ITERATIONS)

    def state(self) -> dict[str, Any]:
        """Named arrays to go on from."""
        return {f"ascents/{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ascents:
        return cls(*[state[f"ascents/{field.name}"] for field in fields(cls)])

    def put(self, which: np.ndarray, others: Ascents) -> None:
        """Take over the state of some ascents."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(others, field.name)

    @property
    def capped(self) -> np.ndarray:
        """Which ascents were ended by the iteration limit."""
        return self.iterations >= MAX_ITERATIONS


def ascend(ascents: Ascents, kernels: ScaledKernels) -> Ascents:
    """Climb all the way from every start point (Approach II's work on one block)."""
    while (which := np.flatnonzero(ascents.moving)).size:
        ascents.advance(which, kernel_sums(ascents.points[which], ascents.log_density[which], kernels))
    return ascents
