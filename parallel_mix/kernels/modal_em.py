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

While steps are long (from the second on) their sums may be taken in single precision (`coarse`), for many ascents at
once; everything else is double: all that ends an ascent, and the way past a saddle. That part goes ascent by ascent,
with the few kernels near it (`near_sums`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density import (
    Array,
    ScaledKernels,
    kernel_sums,
    nearby_kernels,
    scale_kernels,
    unpack_moments,
)
from parallel_mix.kernels.known_modes import keep_mode, mode_ahead, no_modes
from parallel_mix.kernels.near_sums import NearKernels, all_near, covariance_of, find_near, reach, room_for, weigh
from parallel_mix.kernels.newton_finish import curvature

TOLERANCE = 1e-4
"""Distance to the mode, in bandwidths, at which an ascent ends."""

MOST_TRACE = 0.9
"""The trace of J is taken as a bound where it is below this."""

COARSE_ABOVE = 1e-4
"""Steps longer than this, in bandwidths, may be coarse."""

COARSE_COST, LOOKUP_COST = 0.5, 0.2
"""What a coarse pair costs, and one that is looked at for whether it is near, in plain ones."""
NEAR_COST = 1.5
"""What a pair of an ascent by itself costs, in plain ones of many together."""
TURN_COST = 25_000.0
"""What a turn costs besides its sums, in plain pairs: all the small steps of NumPy."""

START_COST = 1_500.0
"""What an ascent costs besides its sums, in plain pairs: it is sent, put back, and merged with others."""
LOOK_COST, LOOK_COST_A_COLUMN = 1.2, 0.15
"""What a look at J costs, in plain steps, and how much more for each column."""

FIRST_LOOK = 0.04
"""Steps shorter than this, in bandwidths, over the cost of a look let an ascent that has far to go look at J."""

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
OWN_SLACK = 0.25
"""How far one may move before the kernels near itself are."""


class Ascents(NamedTuple):
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
            look_below=np.full(m, first_look(points.shape[1])),
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

    def count_work(self, which: np.ndarray, kernels: int, coarse: bool, curved: bool) -> None:
        """Count the work of one turn of some ascents, sums over so many kernels for each."""
        each = cost_of_a_look(self.points.shape[1]) if curved else 1.0
        self.work[which] += kernels * (each if not coarse else COARSE_COST) + TURN_COST / len(which)

    def advance(self, which: np.ndarray, sums: Array) -> None:
        """Take one step for the ascents `which`, from their sums over all kernels; with moments if they are curved."""
        d = self.points.shape[1]
        total = sums[:, d]
        step = sums[:, :d] / total[:, None]
        log_density = np.log(total) + sums[:, -1]
        if sums.shape[1] == d + 3:
            trace = np.maximum(sums[:, d + 1] / total - np.einsum("ij,ij->i", step, step), 0.0)
            step_plainly(self, which, step, log_density, trace, MAX_ITERATIONS)
        else:
            covariance = unpack_moments(sums, d) / total[:, None, None] - step[:, :, None] * step[:, None, :]
            step_by_newton(self, which, step, log_density, covariance, MAX_ITERATIONS)

    def state(self) -> dict[str, Any]:
        """Named arrays to go on from."""
        return {f"ascents/{name}": getattr(self, name) for name in self._fields}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Ascents:
        """The ascents that gave the state."""
        return cls(*[state[f"ascents/{name}"] for name in cls._fields])

    def take(self, which: np.ndarray) -> Ascents:
        """Some of the ascents by themselves, to send away."""
        return Ascents(*[values[which] for values in self])

    def put(self, which: np.ndarray, others: Ascents) -> None:
        """Take over the state of some ascents that were sent away."""
        for mine, theirs in zip(self, others, strict=True):
            mine[which] = theirs

    @property
    def capped(self) -> np.ndarray:
        """Which ascents were ended by the iteration limit."""
        return self.iterations >= MAX_ITERATIONS


@compiled
def cost_of_a_look(d: int) -> float:
    """What sums with second moments and a Newton step cost, in plain steps."""
    return LOOK_COST + LOOK_COST_A_COLUMN * d


@compiled
def first_look(d: int) -> float:
    """A step shorter than this, in bandwidths, lets an ascent that has far to go look at J."""
    return FIRST_LOOK / cost_of_a_look(d)


@compiled
def none_at(point: Array) -> float:
    """How short a step is none at a point."""
    farthest = 0.0
    for coordinate in point:
        farthest = max(farthest, abs(coordinate))
    return max(NO_STEP, ROUNDINGS * farthest)


@compiled
def step_plainly(ascents: Ascents, which: Any, step: Array, log_density: Array, trace: Array, limit: int) -> None:
    """Take a plain step with each of the ascents `which`."""
    for k in range(len(which)):
        step_one(ascents, which[k], step[k], log_density[k], trace[k], limit)


@compiled
def step_by_newton(ascents: Ascents, which: Any, step: Array, log_density: Array, J: Array, limit: int) -> None:
    """Let each of the ascents `which` look at its J, (k, d, d), and take a step of Newton's where that is safe."""
    newton, rising = np.empty(step.shape[1]), np.empty(step.shape[1])
    for k in range(len(which)):
        look_one(ascents, which[k], step[k], log_density[k], J[k], newton, rising, limit)


@compiled
def step_one(ascents: Ascents, i: int, step: Array, log_density: float, trace: float, limit: int) -> None:
    """A plain step of ascent i."""
    point, length = ascents.points[i], np.sqrt((step * step).sum())
    ratio = length / ascents.last_step[i]
    to_go, steps_to_go = np.inf, 0.0
    if ratio < 1.0:
        to_go = length * ratio / (1.0 - ratio)
        steps_to_go = np.log(TOLERANCE / 2.0 / to_go) / np.log(ratio) if to_go > 0.0 else 0.0
    elif not ratio >= 1.0:  # the first
        steps_to_go = np.inf
    bounded = trace < MOST_TRACE and length * trace < TOLERANCE * (1.0 - trace) and length < NEWTON_REACH
    slow = length < ascents.look_below[i] and steps_to_go >= cost_of_a_look(len(point))
    near = to_go < TOLERANCE / 2.0 or length <= none_at(point)
    arrived = bounded and not ascents.coarse[i]
    looks = (near or slow) and not ascents.coarse[i] and not arrived

    ascents.work[i] += START_COST if ascents.iterations[i] == 0 else 0.0
    ascents.iterations[i] += 1
    ascents.log_density[i], ascents.last_step[i] = log_density, length
    point += step
    ascents.curved[i] = looks
    if looks:
        ascents.look_below[i] = length / 2.0
    far = length >= COARSE_ABOVE and not slow
    ascents.coarse[i] = far and (ascents.coarse[i] or ascents.iterations[i] == 1)
    ascents.moving[i] = not arrived and ascents.iterations[i] < limit


@compiled
def look_one(
    ascents: Ascents, i: int, step: Array, log_density: float, J: Array, newton: Array, rising: Array, limit: int
) -> None:
    """A step of Newton's of ascent i where it is safe, else a plain one. (`newton` and `rising` are room.)"""
    point, finishing, length = ascents.points[i], ascents.finishing[i], np.sqrt((step * step).sum())
    curves_down, rises = curvature(J, step, newton, rising)
    ahead = np.sqrt((newton * newton).sum())
    still = length <= none_at(point)
    shrinks = not finishing or NEWTON_FALL * length <= ascents.last_step[i] or still
    safe = curves_down and ahead <= NEWTON_REACH and shrinks
    # A plain step from where there is none leads nowhere: where the density does not curve up, this is the mode.
    stuck = still and not safe
    on_saddle = rises and (stuck or (not finishing and ahead <= TOLERANCE))

    ascents.iterations[i] += 1
    ascents.last_step[i] = length
    ascents.curved[i] = ascents.finishing[i] = safe
    ascents.unsure[i] |= on_saddle or (rises and not finishing and ahead <= NEAR_SADDLE)
    ascents.moving[i] = not (safe and ahead < TOLERANCE) and (rises or not stuck) and ascents.iterations[i] < limit
    if finishing and not safe and not stuck:
        point[:] = ascents.plain[i]
        return
    ascents.log_density[i] = log_density
    if safe and not finishing:
        ascents.plain[i] = point + step
    if on_saddle:
        ascents.look_below[i] = first_look(len(point))
        step = step + NUDGE * rising
    point += newton if safe else step


@compiled
def climb_near(ascents: Ascents, which: Any, near: NearKernels, most: float, limit: int) -> None:
    """Climb with each of the ascents `which` till it has arrived, or moved so far that other kernels may be near."""
    d, n = near.x.shape
    room, sums, J = room_for(n, d, 0.0), np.empty(d + 1), np.empty((d, d))
    newton, rising = np.empty(d), np.empty(d)
    modes = no_modes(len(which), d)
    for i in which:
        point, began = ascents.points[i], ascents.points[i].copy()
        own, count, copied = near, 0, False
        while ascents.moving[i]:
            if ((point - began) ** 2).sum() > (SLACK - OWN_SLACK) ** 2:
                break
            if not count or (copied and ((point - own.centre) ** 2).sum() > OWN_SLACK**2):
                count, copied = find_near(near, point, OWN_SLACK + reach(most, ascents.log_density[i]), room)
                own = room if copied else near
                ascents.work[i] += COARSE_COST * n
            here = point - own.centre
            total = weigh(own, count, here, ascents.log_density[i], sums)
            step = sums[:d] - here
            log_density = ascents.log_density[i] + np.log(total)
            ahead = -1 if ascents.finishing[i] else mode_ahead(modes, point, step)
            if ahead >= 0:
                ascents.work[i] += NEAR_COST * count
                point[:], ascents.log_density[i] = modes.points[ahead], modes.log_density[ahead]
                ascents.moving[i] = False
            elif ascents.curved[i]:
                ascents.work[i] += NEAR_COST * count * cost_of_a_look(d)
                covariance_of(own, count, sums, total, J)
                look_one(ascents, i, step, log_density, J, newton, rising, limit)
                if ascents.finishing[i] and not ascents.moving[i] and ascents.iterations[i] < limit:
                    keep_mode(modes, point, log_density, J)
            else:
                ascents.work[i] += NEAR_COST * count
                step_one(ascents, i, step, log_density, float(sums[d]), limit)


def ascend(ascents: Ascents, kernels: ScaledKernels, leave: int = 0) -> Ascents:
    """Climb until all but `leave` ascents have arrived (Approach II's work on one block).

    Far from their ends they go together, until no more than `leave` of them are far. Kernels too far from all of them
    to change a sum are left out (`nearby_kernels`); which are near is found again when a point has moved by more than
    the slack, or most of the points have come near their ends.
    """
    near, seen_from, count = kernels, ascents.points, 0
    while (which := np.flatnonzero(ascents.moving & (ascents.coarse | (ascents.iterations == 0)))).size > leave:
        if near is kernels:
            stale = not count or 8 * which.size <= count
        else:
            moved = ascents.points[which] - seen_from[which]
            stale = 4 * which.size <= count or np.einsum("ij,ij->i", moved, moved).max() > SLACK**2
        if stale:
            near = nearby_kernels(ascents.points[which], ascents.log_density[which], kernels, SLACK)
            seen_from, count = ascents.points.copy(), which.size
            ascents.work[which] += LOOKUP_COST * len(kernels)
        coarse = bool(ascents.coarse[which[0]])
        sums = kernel_sums(ascents.points[which], ascents.log_density[which], near, coarse)
        ascents.count_work(which, len(near), coarse, False)
        ascents.advance(which, sums)
    fine = ascents.moving & ~ascents.coarse & (ascents.iterations > 0)
    while (which := np.flatnonzero(fine & ascents.moving)).size:
        near = nearby_kernels(ascents.points[which], ascents.log_density[which], kernels, SLACK)
        room = all_near(near.x, near.log_weights, ascents.points[which].mean(axis=0))
        climb_near(ascents, which, room, np.log(len(near)) + near.log_weights.max(), MAX_ITERATIONS)
    return ascents


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: before workers are forked, or while ranks start."""
    points = np.array([[0.0], [3.0]])
    ascend(Ascents.begin(points, np.zeros(2)), scale_kernels(points, np.full(2, -np.log(2.0)), 1.0))
