"""Modal EM on a Gaussian kernel density (Li, Ray & Lindsay 2007; dissertation 4.2, 5.2).

E step   p_i = w_i phi(x | x_i, sigma^2 I) / f(x)        M step   x <- sum_i p_i x_i

f never falls along an ascent. A block of them climbs together while steps are long; from the second step on their sums
may then be in single precision (`coarse`). Near its end each goes by itself, with the kernels near it alone, in double
precision: all that ends an ascent, and the way past a saddle (`ascent_rule`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.ascent_rule import cost_of_a_look, look_one, step_one
from parallel_mix.kernels.density.ascents import COARSE_COST, Ascents
from parallel_mix.kernels.density.kernel_sums import ScaledKernels, kernel_sums, nearby_kernels, scale_kernels
from parallel_mix.kernels.density.known_modes import KnownModes, keep_mode, mode_ahead, no_modes
from parallel_mix.kernels.density.near_sums import (
    NearKernels,
    all_near,
    covariance_of,
    find_near,
    reach,
    room_for,
    weigh,
)

LOOKUP_COST = 0.2
"""The cost of looking whether the two of a pair are near to each other, in plain pairs."""
NEAR_COST = 1.5
"""The cost of a pair where an ascent climbs by itself, in plain pairs of many ascents together."""
SLACK = 1.0
"""How far points may move, in bandwidths, before their near kernels are looked up again."""
OWN_SLACK = 0.25
"""How far an ascent by itself may move, in bandwidths, before the kernels near it are looked up again."""


@compiled
def climb_near(
    ascents: Ascents,
    which: Any,
    near: NearKernels,
    room: NearKernels,
    modes: KnownModes,
    most: float,
    slack: float,
    longest: float,
    limit: int,
) -> None:
    """Climb with each of the ascents `which` till it has arrived, or moved so far that other kernels may be near, or
    is to take a plain step again after one longer than `longest`.

    `room` is for the kernels near one of them; `modes` are known, and become more; `most` is the log of the number of
    kernels times the largest weight; `near` reaches `slack` beyond what matters; `limit` is the most iterations.
    """
    d = len(near.x)
    sums, J = np.empty(d + 1), np.empty((d, d))
    newton, rising = np.empty(d), np.empty(d)
    for i in which:
        point, began = ascents.points[i], ascents.points[i].copy()
        own, count, copied = near, 0, False
        while ascents.moving[i]:
            if ((point - began) ** 2).sum() > (slack - OWN_SLACK) ** 2:
                break
            if not count or (copied and ((point - own.centre) ** 2).sum() > OWN_SLACK**2):
                count, copied = find_near(near, point, OWN_SLACK + reach(most, ascents.log_density[i]), room)
                own = room if copied else near
                ascents.work[i] += COARSE_COST * near.number
            here = point - own.centre
            total, log_density = weigh(own, count, here, ascents.log_density[i], sums)
            step = sums[:d] - here
            ahead = -1 if ascents.finishing[i] else mode_ahead(modes, i, point, step)
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
                step_one(ascents, i, step, log_density, float(sums[d]), cost_of_a_look(d), limit)
            if ascents.last_step[i] > longest and not ascents.curved[i]:
                break


def ascend(ascents: Ascents, kernels: ScaledKernels, leave: int = 0) -> Ascents:
    """Climb until all but `leave` ascents have arrived (Approach II's work on one block).

    Far from their ends they go together, until no more than `leave` of them are far. Kernels too far from all of them
    to change a sum are left out (`nearby_kernels`); these are looked up again when a point has moved by more than the
    slack, or most of the points have come near their ends.
    """
    ascents = ascents._replace(plain=np.empty_like(ascents.points))  # none is in a Newton finish
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
        laid_out = all_near(near.x, near.log_weights, ascents.points[which].mean(axis=0))
        room, modes = room_for(*near.x.shape), no_modes(*ascents.points.shape)
        most = np.log(len(near)) + near.log_weights.max()
        climb_near(ascents, which, laid_out, room, modes, most, SLACK, np.inf, ascents.limit)
    return ascents._replace(plain=ascents.plain[:0])


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: before workers are forked, or while ranks start."""
    points, which = np.array([[0.0], [3.0]]), np.arange(2)
    kernels, begin = scale_kernels(points, np.full(2, -np.log(2.0)), 1.0), Ascents.begin(points, np.zeros(2))
    begin.advance(which, kernel_sums(points, np.zeros(2), kernels, curved=True))
    ascend(Ascents.begin(points, np.zeros(2), stepwise=False), kernels)
