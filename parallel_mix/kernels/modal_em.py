"""Modal EM on a Gaussian kernel density (Li, Ray & Lindsay 2007; dissertation 4.2, 5.2).

E step   p_i = w_i phi(x | x_i, sigma^2 I) / f(x)        M step   x <- sum_i p_i x_i

paper <-> code: x^(t) `points` (in bandwidths), x^(t+1) - x^(t) = sum_i p_i (x_i - x) `step`, f(x) `log_density` (its
log, without the Gaussian's constant), J = Cov_p / sigma^2 `covariance`. f never falls along an ascent.

How long a step is says nothing of how far the mode is; the Jacobian J of the step does. An ascent ends
- where the trace of J, which comes with the sums, is under 0.9 and bounds the distance to go, step tr/(1 - tr), by the
  tolerance; or else
- at the end of a Newton finish. When a step is below 0.01 bandwidths and many plain ones would follow, again when
  it has halved, and when the mode seems to be reached, J itself is computed. Where the density curves down in every
  direction and Newton's step is short, Newton's steps are taken as long as the steps of modal EM shrink threefold each
  time; a Newton step below the tolerance is the last one. Where one of this fails, the ascent goes on by plain steps
  from where it was.
An ascent that is within the tolerance of a saddle is moved off it, along the direction in which the density rises.

While steps are long (from the second on) their sums may be taken in single precision (`coarse`); everything else is
double: all that ends an ascent, and the way past a saddle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from parallel_mix.kernels.density import Array, ScaledKernels, kernel_sums, nearby_kernels, unpack_moments
from parallel_mix.kernels.newton_finish import Curvature

TOLERANCE = 1e-4
"""Distance to the mode, in bandwidths, at which an ascent ends."""

MOST_TRACE = 0.9
"""The trace of J is taken as a bound where it is below this."""

COARSE_ABOVE = 1e-4
"""Steps longer than this, in bandwidths, may be coarse."""

COARSE_COST = 0.5
"""What a coarse pair costs, and one that is looked at for whether it is near, in plain ones."""
TURN_COST = 25_000.0
"""What a turn costs besides its sums, in plain pairs: all the small steps of NumPy."""

FINISH_BELOW = 0.01
"""Steps shorter than this, in bandwidths, let an ascent that has far to go look at J."""

NEWTON_REACH = 0.2
"""The longest Newton step, and the longest step of modal EM whose J says what is ahead, in bandwidths."""

NEWTON_FALL = 3.0
"""Newton's steps go on while the steps of modal EM shrink by this factor, or are none."""

NUDGE = 1e-3
"""How far an ascent on a saddle is moved, in bandwidths."""

NEAR_SADDLE = 1e-2
"""An ascent that came this close to a saddle, in bandwidths, is listed: its row lies near a watershed."""

NO_STEP = 1e-9
"""A step this small, in bandwidths (or a few roundings of the coordinates), is none."""
ROUNDINGS = 8 * float(np.finfo(float).eps)

MAX_ITERATIONS = 100_000
"""A slow passage between two places that were a mode and a saddle at a smaller bandwidth takes some ten thousand."""

MOMENTS_AT_ONCE = 1_048_576
"""Numbers in the second moments of ascents that go on together."""

SLACK = 1.0
"""How far points may move, in bandwidths, before their near kernels are looked up again."""


@dataclass
class Ascents:
    """The state of many ascents; all of it goes into a checkpoint."""

    points: Array  # (m, d) in bandwidths
    plain: Array  # (m, d) where to go on if a Newton finish fails
    log_density: Array  # (m) at the point before the last step
    last_step: Array  # (m) length of the last step of modal EM, plain or where the last Newton step began
    look_below: Array  # (m) a step shorter than this lets the ascent look at J
    work: Array  # (m) what it took so far, in pairs of a point and a kernel that are summed over plainly
    iterations: np.ndarray  # (m) int32
    coarse: np.ndarray  # (m) bool: the next sums may be in single precision
    curved: np.ndarray  # (m) bool: the next sums are to come with second moments
    finishing: np.ndarray  # (m) bool: in a Newton finish
    unsure: np.ndarray  # (m) bool: came close to a saddle
    moving: np.ndarray  # (m) bool

    @classmethod
    def begin(cls, points: Array, log_density: Array) -> Ascents:
        """Ascents from `points`; `log_density` is a lower bound, or a guess, for each."""
        m = len(points)
        return cls(
            points=np.array(points, dtype=np.float64),
            plain=np.zeros_like(points, dtype=np.float64),
            log_density=np.array(log_density, dtype=np.float64),
            last_step=np.full(m, np.nan),
            look_below=np.full(m, FINISH_BELOW),
            work=np.zeros(m),
            iterations=np.zeros(m, dtype=np.int32),
            coarse=np.zeros(m, dtype=bool),
            curved=np.zeros(m, dtype=bool),
            finishing=np.zeros(m, dtype=bool),
            unsure=np.zeros(m, dtype=bool),
            moving=np.ones(m, dtype=bool),
        )

    def turns(self) -> list[tuple[np.ndarray, bool, bool]]:
        """The ascents that are to go on, by what their next sums are: coarse, plain, curved."""
        now = np.flatnonzero(self.moving)
        coarse, curved = self.coarse[now], self.curved[now]
        most = max(MOMENTS_AT_ONCE // self.points.shape[1] ** 2, 1)
        turns = [
            (now[coarse], True, False),
            (now[~coarse & ~curved], False, False),
            (now[curved][:most], False, True),
        ]
        return [turn for turn in turns if turn[0].size]

    def count(self, which: np.ndarray, kernels: int, coarse: bool, curved: bool) -> None:
        """Count the work of one turn of some ascents, sums over so many kernels for each."""
        each = cost_of_a_look(self.points.shape[1]) if curved else 1.0
        self.work[which] += kernels * (each if not coarse else COARSE_COST) + TURN_COST / len(which)

    def advance(self, which: np.ndarray, sums: Array) -> None:
        """Take one step for the ascents `which`, from their sums over all kernels; with moments if they are curved."""
        d = self.points.shape[1]
        total = sums[:, d]
        step = sums[:, :d] / total[:, None]
        squared = np.einsum("ij,ij->i", step, step)
        length, log_density = np.sqrt(squared), np.log(total) + sums[:, -1]
        self.iterations[which] += 1
        if sums.shape[1] == d + 3:
            self.log_density[which] = log_density
            trace = np.maximum(sums[:, d + 1] / total - squared, 0.0)
            self._step(which, step, length, trace)
        else:
            covariance = unpack_moments(sums, d) / total[:, None, None] - step[:, :, None] * step[:, None, :]
            self._look(which, step, length, log_density, Curvature.of(step, covariance))
        self.moving[which] &= self.iterations[which] < MAX_ITERATIONS
        self.last_step[which] = length

    def _step(self, which: np.ndarray, step: Array, length: Array, trace: Array) -> None:
        """A plain step."""
        coarse, points = self.coarse[which], self.points[which]
        bounded = (trace < MOST_TRACE) & (length * trace < TOLERANCE * (1.0 - trace)) & (length < NEWTON_REACH)
        arrived = bounded & ~coarse
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = length / self.last_step[which]
            to_go = np.where(ratio < 1.0, length * ratio / (1.0 - ratio), np.inf)
            steps_to_go = np.log(TOLERANCE / 2.0 / to_go) / np.log(ratio)
        near = (to_go < TOLERANCE / 2.0) | (length <= _no_step(points))
        slow = (length < self.look_below[which]) & ~(steps_to_go < cost_of_a_look(points.shape[1]))
        looks = ~coarse & ~arrived & (near | slow)
        self.points[which] = points + step
        self.look_below[which[looks]] = length[looks] / 2.0
        self.curved[which] = looks
        self.coarse[which] = (coarse | (self.iterations[which] == 1)) & (length >= COARSE_ABOVE) & ~slow
        self.moving[which] = ~arrived

    def _look(self, which: np.ndarray, step: Array, length: Array, log_density: Array, here: Curvature) -> None:
        """A step of Newton's where it is safe, else a plain one."""
        finishing, before = self.finishing[which], self.last_step[which]
        still = length <= _no_step(self.points[which])
        shrinks = ~finishing | (NEWTON_FALL * length <= before) | still
        safe = here.curves_down & (here.length <= NEWTON_REACH) & shrinks
        # A plain step from where there is none leads nowhere: where the density does not curve up, this is the mode.
        rises = here.rising.any(axis=1)
        stuck = ~safe & still
        fails = finishing & ~safe & ~stuck
        on_saddle = rises & (stuck | (~finishing & (here.length <= TOLERANCE)))
        move = step + np.where(on_saddle[:, None], NUDGE * here.rising, 0.0)
        move[safe] = here.newton[safe]

        starts = which[safe & ~finishing]
        self.plain[starts] = self.points[starts] + step[safe & ~finishing]
        self.log_density[which[~fails]] = log_density[~fails]
        self.points[which] += move
        self.points[which[fails]] = self.plain[which[fails]]
        self.curved[which] = self.finishing[which] = safe
        self.look_below[which[on_saddle]] = FINISH_BELOW
        self.unsure[which] |= on_saddle | (~finishing & rises & (here.length <= NEAR_SADDLE))
        self.moving[which] = ~(safe & (here.length < TOLERANCE)) & ~(stuck & ~rises)

    def state(self) -> dict[str, Any]:
        """Named arrays to go on from."""
        return {f"ascents/{name}": getattr(self, name) for name in NAMES}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ascents:
        """The ascents that gave the state."""
        return cls(*[state[f"ascents/{name}"] for name in NAMES])

    def take(self, which: np.ndarray) -> Ascents:
        """Some of the ascents by themselves, to send away."""
        return Ascents(*[getattr(self, name)[which] for name in NAMES])

    def put(self, which: np.ndarray, others: Ascents) -> None:
        """Take over the state of some ascents that were sent away."""
        for name in NAMES:
            getattr(self, name)[which] = getattr(others, name)

    @property
    def capped(self) -> np.ndarray:
        """Which ascents were ended by the iteration limit."""
        return self.iterations >= MAX_ITERATIONS


NAMES = tuple(field.name for field in fields(Ascents))


def cost_of_a_look(d: int) -> float:
    """What sums with second moments and a Newton step cost, in plain steps."""
    return 1.5 + 0.6 * d


def _no_step(points: Array) -> Array:
    least: Array = np.maximum(NO_STEP, ROUNDINGS * np.abs(points).max(axis=1))
    return least


def ascend(ascents: Ascents, kernels: ScaledKernels, leave: int = 0) -> Ascents:
    """Climb until all but `leave` ascents have arrived (Approach II's work on one block).

    Kernels too far from all of the block to change a sum by a rounding are left out (`nearby_kernels`). Which are near
    is found again when a point has moved by more than the slack, or most of the points have arrived.
    """
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
            ascents.work[which] += COARSE_COST * len(kernels)
        # A product of many rows is cheaper a row: those further on wait for those behind, unless these are so few that
        # they will be left.
        turns = ascents.turns()
        which, *kind = next((turn for turn in turns if turn[0].size > leave), max(turns, key=lambda turn: turn[0].size))
        sums = kernel_sums(ascents.points[which], ascents.log_density[which], near, *kind)
        ascents.count(which, len(near), *kind)
        ascents.advance(which, sums)
    return ascents
