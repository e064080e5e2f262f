"""Modal EM over leaves of kernels: many ascents from nearby start points, by the same rule of steps as everywhere.

While steps are long, sums are in single precision and over the leaves that matter. Near its end, and where leaves are
too wide for single precision, each ascent goes by itself, over the kernels near it and in double precision, as in
`modal_em`. One in a few start points goes first: at the modes that these find the others may end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.ascent_rule import COARSE_ABOVE, cost_of_a_look, step_one
from parallel_mix.kernels.density.ascents import COARSE_COST, Ascents
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.known_modes import KnownModes, mode_ahead, no_modes
from parallel_mix.kernels.density.leaves import (
    SHARE_LEFT_OUT,
    Leaves,
    Room,
    could_add,
    leaves_of,
    near_kernels,
    room_for_sums,
    sums_from_leaves,
    tree_of,
)
from parallel_mix.kernels.density.modal_em import climb_near
from parallel_mix.kernels.density.near_sums import NearKernels, all_near, reach, room_for

FIRST_IN = 16
"""One start point in so many climbs before the others."""
SLACK = 0.5
"""How far an ascent near its end may move, in bandwidths, before the kernels near it are looked up again."""
FEW = 4_096
"""Of so few kernels those near an ascent are looked for among all: most of them may be near."""
TOGETHER = 32
"""Ascents that look for the leaves near them together."""
DEARER = 2.0
"""How much more a look at J costs here than elsewhere, in steps far from the end, which cost less."""
MOST_ERROR = 1e-3
"""A step is taken where the exponents of its kernels are no more wrong than this."""
LARGEST_ERROR = 3e-5
"""A step may end an ascent, and tell that it is slow, where its error is below this, in bandwidths."""
TOLD = 1e20
"""Sums in single precision are taken where they are smaller than this, and larger than 1 over it."""


class Rooms(NamedTuple):
    """Memory that all ascents of a block use in turn."""

    sums: Room
    whole: NearKernels  # all kernels, where they are few; else none
    near_all: NearKernels
    near_one: NearKernels


def ascend_on_tree(starts: Array, log_density: Array, leaves: Leaves) -> Ascents:
    """Climb from all starts, nearby ones one after the other, to their ends."""
    (m, d), n = starts.shape, len(leaves.rows)
    ascents = Ascents.begin(starts, log_density)
    ascents.look_below[:] /= DEARER
    unknown = np.flatnonzero(~np.isfinite(log_density))
    find_densities(leaves, ascents.points, unknown, ascents.log_density)
    few = slice(n if n <= FEW else 0)
    whole = all_near(leaves.rows[few] / leaves.sigma, leaves.log_weights[few], leaves.rows[n // 2] / leaves.sigma)
    modes, room = no_modes(m, d), Rooms(room_for_sums(leaves, TOGETHER), whole, room_for(n, d), room_for(n, d))
    first, doubtful = np.arange(m) % FIRST_IN == 0, np.zeros(m, dtype=bool)
    for some in (np.flatnonzero(first), np.flatnonzero(~first)):
        far, left = some, some
        while left.size:
            climb_far(ascents, far, leaves, modes, room.sums, doubtful, ascents.limit)
            left = some[ascents.moving[some]]
            climb_to_ends(ascents, left, leaves, modes, room, doubtful, ascents.limit)
            left = left[ascents.moving[left]]
            far = left[~doubtful[left] & ~ascents.curved[left] & (ascents.last_step[left] > COARSE_ABOVE)]
    return ascents


@compiled
def climb_far(
    ascents: Ascents, which: Any, leaves: Leaves, modes: KnownModes, room: Room, doubtful: Any, limit: int
) -> None:
    """Climb with the ascents `which`, by sums in single precision, as long as they are far from their ends.

    Where such sums are not good enough even for a step, ascents become `doubtful`.
    """
    d, far = ascents.points.shape[1], which.copy()
    look_cost, step = DEARER * cost_of_a_look(d), np.empty(d)
    while len(far):
        going = 0
        for a in range(0, len(far), TOGETHER):
            some = far[a : a + TOGETHER].copy()
            sums = sums_from_leaves(leaves, ascents.points, some, ascents.log_density, SHARE_LEFT_OUT, room)
            for q in range(len(some)):
                i, total, square = some[q], sums[q, d], 0.0
                ascents.work[i] += COARSE_COST * room.pairs[q]
                error = sums[q, d + 2] / total
                if not (1.0 / TOLD < total < TOLD and error < MOST_ERROR):
                    doubtful[i] = True
                    continue
                for k in range(d):
                    step[k] = sums[q, k] / total
                    square += step[k] * step[k]
                ahead = mode_ahead(modes, i, ascents.points[i], step)
                if ahead >= 0:
                    ascents.points[i], ascents.log_density[i] = modes.points[ahead], modes.log_density[ahead]
                    ascents.moving[i] = False
                    continue
                trace, log_density = max(sums[q, d + 1] / total - square, 0.0), ascents.log_density[i] + np.log(total)
                rough = error * np.sqrt(trace + error) > LARGEST_ERROR
                ascents.coarse[i] = rough
                step_one(ascents, i, step, log_density, trace, look_cost, limit)
                is_far = ascents.coarse[i] if rough else not ascents.curved[i] and ascents.last_step[i] > COARSE_ABOVE
                ascents.coarse[i] = False
                far[going] = i
                going += 1 if ascents.moving[i] and is_far else 0
        far = far[:going]


@compiled
def climb_to_ends(
    ascents: Ascents, which: Any, leaves: Leaves, modes: KnownModes, room: Rooms, doubtful: Any, limit: int
) -> None:
    """Climb with the ascents `which`, each by itself, till it has arrived, or moved so far that other kernels may be
    near, or is far from its end again and not `doubtful`.
    """
    most = np.log(len(leaves.rows)) + leaves.heaviest
    for a in range(len(which)):
        i = which[a]
        near = room.whole
        if not near.number:
            farthest = SLACK + reach(most, ascents.log_density[i])
            near = near_kernels(leaves, ascents.points[i], farthest, room.near_all)
            ascents.work[i] += COARSE_COST * near.number
        longest = np.inf if doubtful[i] else COARSE_ABOVE
        climb_near(ascents, which[a : a + 1], near, room.near_one, modes, most, SLACK, longest, limit)


@compiled
def find_densities(leaves: Leaves, points: Array, which: Any, log_density: Array) -> None:
    """Write a lower bound of the log density at some points: what the heaviest kernel of the leaf that is nearest
    adds.
    """
    could = np.empty(len(leaves.most))
    for i in which:
        could_add(leaves.low, leaves.high, leaves.most, points[i], points[i], could)
        leaf, highest = could.argmax(), -np.inf
        for j in range(leaves.first[leaf], leaves.first[leaf + 1]):
            square = 0.0
            for k in range(points.shape[1]):
                square += (leaves.rows[j, k] / leaves.sigma - points[i, k]) ** 2
            highest = max(highest, leaves.log_weights[j] - square / 2.0)
        log_density[i] = highest


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: before workers are forked, or while ranks start."""
    points = np.array([[0.0], [3.0]])
    ascend_on_tree(points, np.full(2, np.nan), leaves_of(tree_of(points, np.full(2, -np.log(2.0))), 1.0))
