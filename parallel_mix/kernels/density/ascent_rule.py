"""One step of an ascent by modal EM, and whether it is the last (Li, Ray & Lindsay 2007; dissertation 4.2, 5.2).

How long a step is says nothing of how far the mode is; the Jacobian J of the step does. An ascent ends
- where the trace of J, which comes with the sums, is under 0.9 and bounds the distance to go, step tr/(1 - tr), by the
  tolerance; or else
- at the end of a Newton finish. When a step is short (`first_look`) and many plain ones would follow, again when it has
  halved, and when the mode seems to be reached, J itself is computed. Where the density curves down in every
  direction and Newton's step is short, Newton's steps are taken as long as the steps of modal EM shrink threefold each
  time; a Newton step below the tolerance is the last one. Where one of this fails, the ascent goes on by plain steps
  from where it was.
An ascent that is within the tolerance of a saddle is moved off it, along the direction in which the density rises.

paper <-> code: x^(t+1) - x^(t) = sum_i p_i (x_i - x) `step`, f(x) `log_density` (its log, without the Gaussian's
constant), J = Cov_p / sigma^2. Lengths are in bandwidths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.newton_finish import curvature

if TYPE_CHECKING:
    from parallel_mix.kernels.density.ascents import Ascents

START_COST = 1_500.0
"""What an ascent costs besides its sums, in plain pairs: it is sent, put back, and merged with others."""
LOOK_COST, LOOK_COST_A_COLUMN = 1.2, 0.15
"""The cost of computing J and a Newton step, in plain steps: a fixed part, and so much more for each column."""

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
"""How many roundings of the farthest coordinate count as no step, as a share of that coordinate."""

TOLERANCE = 1e-4
"""Distance to the mode, in bandwidths, at which an ascent ends."""

MOST_TRACE = 0.9
"""The trace of J is taken as a bound where it is below this."""

COARSE_ABOVE = 1e-4
"""Steps longer than this, in bandwidths, may be coarse."""


@compiled
def cost_of_a_look(d: int) -> float:
    """The cost of sums with second moments and a Newton step, in plain steps, where there are d columns."""
    return LOOK_COST + LOOK_COST_A_COLUMN * d


@compiled
def first_look(d: int) -> float:
    """A step shorter than this, in bandwidths, lets an ascent that has far to go look at J."""
    return FIRST_LOOK / cost_of_a_look(d)


@compiled
def none_at(point: Array) -> float:
    """The length, in bandwidths, up to which a step at a point counts as none."""
    farthest = 0.0
    for coordinate in point:
        farthest = max(farthest, abs(coordinate))
    return max(NO_STEP, ROUNDINGS * farthest)


@compiled
def step_plainly(ascents: Ascents, which: Any, step: Array, log_density: Array, trace: Array, limit: int) -> None:
    """Take a plain step with each of the ascents `which`."""
    look_cost = cost_of_a_look(step.shape[1])
    for k in range(len(which)):
        step_one(ascents, which[k], step[k], log_density[k], trace[k], look_cost, limit)


@compiled
def step_by_newton(ascents: Ascents, which: Any, step: Array, log_density: Array, J: Array, limit: int) -> None:
    """Let each of the ascents `which` look at its J, (k, d, d), and take a step of Newton's where that is safe."""
    newton, rising = np.empty(step.shape[1]), np.empty(step.shape[1])
    for k in range(len(which)):
        look_one(ascents, which[k], step[k], log_density[k], J[k], newton, rising, limit)


@compiled
def end_where_it_is(ascents: Ascents, i: int) -> None:
    """End an ascent whose step is no number: all kernels are farther away than a double can say."""
    ascents.iterations[i] += 1
    ascents.finishing[i] = ascents.moving[i] = False


@compiled
def steps_ahead(to_go: float, ratio: float) -> float:
    """How many plain steps, each `ratio` times as long as the one before, seem to lead `to_go` bandwidths far."""
    if ratio < 1.0:
        return np.log(TOLERANCE / 2.0 / to_go) / np.log(ratio) if to_go > 0.0 else 0.0
    return 0.0 if ratio >= 1.0 else np.inf  # the first step has no ratio


@compiled(inline="always")
def step_one(
    ascents: Ascents, i: int, step: Array, log_density: float, trace: float, look_cost: float, limit: int
) -> None:
    """A plain step of ascent i; a look at J costs as much as `look_cost` of these."""
    point, length = ascents.points[i], np.sqrt((step * step).sum())
    if not length < np.inf:
        end_where_it_is(ascents, i)
        return
    ratio = length / ascents.last_step[i]
    to_go = length * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf
    bounded = trace < MOST_TRACE and length * trace < TOLERANCE * (1.0 - trace) and length < NEWTON_REACH
    slow = length < ascents.look_below[i] and steps_ahead(to_go, ratio) >= look_cost
    near = to_go < TOLERANCE / 2.0 or length <= none_at(point)
    arrived = bounded and not ascents.coarse[i]
    looks = (near or slow) and not ascents.coarse[i] and not arrived

    ascents.work[i] += START_COST if ascents.iterations[i] == 0 else 0.0
    ascents.iterations[i] += 1
    ascents.log_density[i], ascents.last_step[i] = log_density, length
    if arrived:
        ascents.log_density[i] += length * length / 2.0  # by which log f rises at least
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
    if not length < np.inf:
        end_where_it_is(ascents, i)
        return
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
        ascents.last_step[i] = np.nan  # it was of another place
        return
    ascents.log_density[i] = log_density
    if safe and not finishing:
        ascents.plain[i] = point + step
    if on_saddle:
        ascents.look_below[i] = first_look(len(point))
        step = step + NUDGE * rising
    point += newton if safe else step
