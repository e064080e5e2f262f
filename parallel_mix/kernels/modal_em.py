"""Modal EM on a Gaussian kernel density (Li, Ray & Lindsay 2007; dissertation 4.2, 5.2).

E step   p_i = w_i phi(x | x_i, sigma^2 I) / f(x)        M step   x <- sum_i p_i x_i

paper <-> code: x^(t) `points` (in bandwidths), x^(t+1) - x^(t) = sum_i p_i (x_i - x), f(x) `log_density` (its log,
without the Gaussian's constant). f never falls along an ascent.

An ascent ends when its bound on the distance still to go, step x rho/(1 - rho) with rho the ratio of the last two
steps, is under 1e-4 sigma, or when it no longer moves at all. The ratio is at most the trace of the covariance of p in
bandwidths (the Jacobian's), so that a single step may be enough to know.

A step leads to the top of a quadratic lower bound of log f whose curvature is 1/sigma^2 in every direction, so f rises
with any step up to twice as long. Short steps that shrink slowly are taken half as long again; `rho` is what the ratio
would be without. (Not the first after a jump: a plain one clears what it left across the slow direction.)

Near a mode steps shrink by a constant ratio, slowly where it is close to 1. Once the ratio is steady the rest of the
way is jumped (Aitken's extrapolation, along the last step), or a piece of it where it is long or, on the way out of a
near-saddle, without an end in sight. The ascent then goes on without a jump, and it is such steps that end it. A jump
that lowered the density is taken back.

From a first long step to the first short one sums may be taken in single precision (`coarse`): its error is a small
part of the shortest such step. All else is double: the end, and the way out of a near-saddle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from parallel_mix.kernels.density import Array, ScaledKernels, kernel_sums, nearby_kernels

TOLERANCE = 1e-4
"""Bound on the distance to go, in bandwidths, at which an ascent ends."""

NO_STEP = 1e-10
"""A step this small, in bandwidths (or a few roundings of the coordinates), is none."""
ROUNDINGS = 8 * float(np.finfo(float).eps)

MAX_ITERATIONS = 10_000

SLACK = 1.0
"""How far points may move, in bandwidths, before their near kernels are looked up again."""


STRETCH = 1.5
STRETCH_BELOW = 0.2
STRETCH_ABOVE = 0.5
"""Steps shorter than this, in bandwidths, whose ratio is more than that, are stretched."""

STEADY = 0.3
LEAST_DISTANCE = 0.05
"""A ratio is steady when it changed by less than this part of its distance to 1, taken as no less than the second."""

LONGEST_JUMP = 0.1
PIECE = 0.05
"""What is jumped where the way is longer than the longest jump."""
NO_JUMP_AFTER_FALL = 4

SHORT_STEP = 1e-3
"""An ascent whose first step is longer than this, in bandwidths, is coarse until one is shorter."""
COARSE_NOISE = 1e-3
"""What a density in single precision, its log, may be wrong by."""

LONGEST_RATED = 2.0
"""A step longer than this, in bandwidths, says nothing of how steps shrink near a mode: no ratio is taken of it."""

NO_POINTS: Array = np.zeros((0, 0))


@dataclass
class Ascents:
    """The state of many ascents; all of it goes into a checkpoint."""

    points: Array  # (m, d) in bandwidths
    before_jump: Array  # (m, d) where the last step led before it was lengthened
    log_density: Array  # (m) at the point before the last step
    no_step: Array  # (m) a step as short as this is none
    last_step: Array  # (m) its length, unstretched; NaN where it says nothing of the next
    stretch: Array  # (m) by how much it was stretched
    rho: Array  # (m) ratio of the last two steps, unstretched; NaN while there are not two
    spread: Array  # (m) trace of the covariance of p: under 1 the point ahead is no saddle
    iterations: np.ndarray  # (m) int32
    jump_from: np.ndarray  # (m) int32: no jump before this iteration
    jumped: np.ndarray  # (m) bool: the last step was lengthened
    coarse: np.ndarray  # (m) bool: far from its end
    moving: np.ndarray  # (m) bool

    @classmethod
    def begin(cls, points: Array, log_density: Array) -> Ascents:
        """Ascents from `points`; `log_density` is a lower bound, or a guess, for each."""
        m = len(points)
        return cls(
            points=np.array(points, dtype=np.float64),
            before_jump=np.zeros_like(points),
            log_density=np.array(log_density, dtype=np.float64),
            no_step=_no_step(points),
            last_step=np.full(m, np.nan),
            stretch=np.ones(m),
            rho=np.full(m, np.nan),
            spread=np.zeros(m),
            iterations=np.zeros(m, dtype=np.int32),
            jump_from=np.zeros(m, dtype=np.int32),
            jumped=np.zeros(m, dtype=bool),
            coarse=np.zeros(m, dtype=bool),
            moving=np.ones(m, dtype=bool),
        )

    def restart(self, which: np.ndarray, points: Array) -> None:
        """Let ascents begin again at other points; their iterations go on counting."""
        self.points[which] = points
        self.last_step[which] = np.nan
        self.stretch[which] = 1.0
        self.rho[which] = np.nan
        self.jumped[which] = False
        self.moving[which] = ~self.capped[which]

    def advance(self, which: np.ndarray, sums: Array) -> None:
        """Take one step for the ascents `which`, from their sums over all kernels."""
        d = self.points.shape[1]
        total = sums[:, d]
        log_density = np.log(total) + sums[:, d + 2]
        self.iterations[which] += 1
        jumped = self.jumped[which]
        if jumped.any():
            fell = jumped & (log_density < self.log_density[which] - COARSE_NOISE * self.coarse[which])
            if fell.any():
                back = which[fell]
                self.jump_from[back] = self.iterations[back] + NO_JUMP_AFTER_FALL
                self.restart(back, self.before_jump[back])
                which, sums, total, log_density = which[~fell], sums[~fell], total[~fell], log_density[~fell]
        step = sums[:, :d] / total[:, None]
        squared = np.einsum("ij,ij->i", step, step)
        self.log_density[which] = log_density
        self.spread[which] = np.maximum(sums[:, d + 1] / total - squared, 0.0)
        self._move(which, step, np.sqrt(squared))

    def _move(self, which: np.ndarray, step: Array, length: Array) -> None:
        iterations, coarse, stretch = self.iterations[which], self.coarse[which], self.stretch[which]
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = 1.0 - (1.0 - length / self.last_step[which]) / stretch
            stretch = np.where((rho > STRETCH_ABOVE) & (length < STRETCH_BELOW), STRETCH, 1.0)
            ahead = 1.0 / (1.0 - rho) - stretch
            to_go = np.where(rho < 1.0, length * ahead, np.inf)
            far = ~(to_go < LONGEST_JUMP)
            steady = np.abs(rho - self.rho[which]) < STEADY * np.maximum(np.abs(1.0 - rho), LEAST_DISTANCE)
            jumps = steady & (iterations >= self.jump_from[which])
            if jumps.any():
                ahead = np.where(far, PIECE / length, ahead)
        short = length < SHORT_STEP
        spread = self.spread[which]
        surely = (length * spread < TOLERANCE * (1.0 - spread)) & (stretch == 1.0) & (length < LONGEST_JUMP)
        arrived = (surely | (to_go < TOLERANCE) | (length <= self.no_step[which])) & ~coarse
        jumps &= (ahead > 2.0 * far) & ~arrived
        points = self.points[which] + stretch[:, None] * step
        if jumps.any():
            self.before_jump[which[jumps]] = points[jumps]
            points[jumps] += ahead[jumps, None] * step[jumps]
        self.points[which] = points
        unrated = jumps | (coarse & short)
        self.rho[which] = np.where(unrated, np.nan, rho)
        long = length > LONGEST_RATED
        if long.any():
            self.no_step[which[long]] = _no_step(points[long])
        self.last_step[which] = np.where(unrated | long, np.nan, length)
        self.stretch[which] = stretch
        self.jumped[which] = jumps
        self.coarse[which] = (coarse | (iterations == 1)) & ~short
        self.moving[which] = ~arrived & (iterations < MAX_ITERATIONS)

    def state(self) -> dict[str, Any]:
        """Named arrays to go on from."""
        state = {f"ascents/{name}": getattr(self, name) for name in NAMES}
        return state if self.jumped.any() else {**state, "ascents/before_jump": NO_POINTS}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ascents:
        ascents = cls(*[state[f"ascents/{name}"] for name in NAMES])
        if not ascents.before_jump.size:
            ascents.before_jump = np.zeros_like(ascents.points)
        return ascents

    def take(self, which: np.ndarray) -> Ascents:
        """Some of the ascents by themselves, to send away; none of them in the middle of a jump."""
        parts = {name: getattr(self, name)[which] for name in NAMES if name != "before_jump"}
        return Ascents(before_jump=NO_POINTS, **parts)

    def put(self, which: np.ndarray, others: Ascents) -> None:
        """Take over the state of some ascents that were sent away."""
        for name in NAMES:
            if name != "before_jump":
                getattr(self, name)[which] = getattr(others, name)

    @property
    def capped(self) -> np.ndarray:
        """Which ascents were ended by the iteration limit."""
        return self.iterations >= MAX_ITERATIONS


NAMES = tuple(field.name for field in fields(Ascents))


def _no_step(points: Array) -> Array:
    least: Array = np.maximum(NO_STEP, ROUNDINGS * np.abs(points).max(axis=1))
    return least


def ascend(ascents: Ascents, kernels: ScaledKernels, leave: int = 0) -> Ascents:
    """Climb until all but `leave` ascents have arrived (Approach II's work on one block).

    Kernels too far from all of the block to change a sum by a rounding are left out (`nearby_kernels`). Which are near
    is found again when a point has moved by more than the slack, or most of the points have arrived.
    """
    ascents.before_jump = np.empty_like(ascents.points)
    near, seen_from, count = kernels, ascents.points, 0
    while (which := np.flatnonzero(ascents.moving)).size > leave:
        if near is kernels:
            stale = not count or 8 * which.size <= count
        else:
            moved = ascents.points[which] - seen_from[which]
            stale = 4 * which.size <= count or np.einsum("ij,ij->i", moved, moved).max() > SLACK**2
        if stale:
            near = nearby_kernels(ascents.points[which], ascents.log_density[which], kernels, SLACK)
            seen_from, count = ascents.points.copy(), which.size
        coarse = ascents.coarse[which]
        far = np.count_nonzero(coarse)
        if 0 < far < which.size:  # a product of many rows is cheaper a row: the fine ones wait for the coarse ones
            which = which[coarse == (far > leave)]
        points, log_density = ascents.points[which], ascents.log_density[which]
        ascents.advance(which, kernel_sums(points, log_density, near, ascents.coarse[which]))
    under_way = np.flatnonzero(ascents.moving & ascents.jumped)
    ascents.restart(under_way, ascents.before_jump[under_way])
    ascents.before_jump = NO_POINTS
    return ascents
