"""Modal EM over leaves of kernels: many ascents from nearby start points, by the same rule of steps as everywhere.

While steps are long, sums are in single precision and over the leaves that matter. Near its end each ascent goes by
itself, over the kernels near it and in double precision, as in `modal_em`. One in a few start points goes first: at the
modes that these find the others may end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.ascent_rule import COARSE_ABOVE, step_one
from parallel_mix.kernels.density.ascents import Ascents
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
from parallel_mix.kernels.density.modal_em import SLACK, climb_near
from parallel_mix.kernels.density.near_sums import NearKernels, reach, room_for

FIRST_IN = 16
"""One start point in so many climbs before the others."""
TOGETHER = 32
"""Ascents that look for the leaves near them together."""
TOLD = 1e20
"""Sums in single precision are taken where they are smaller than this, and larger than 1 over it."""


class Rooms(NamedTuple):
    """Memory that all ascents of a block use in turn."""

    sums: Room
    near_all: NearKernels
    near_one: NearKernels


def ascend_on_tree(starts: Array, log_density: Array, leaves: Leaves) -> Ascents:
    """Climb from all starts, nearby ones one after the other, to their ends."""
    ascents = Ascents.begin(starts, log_density)
    climb_on_leaves(ascents, leaves, ascents.limit)
    return ascents


@compiled
def climb_on_leaves(ascents: Ascents, leaves: Leaves, limit: int) -> None:
    """Climb with all ascents."""
    m, d = ascents.points.shape
    n, modes, every = len(leaves.rows), no_modes(m, d), np.arange(m)
    room = Rooms(room_for_sums(leaves, TOGETHER), room_for(n, d), room_for(n, d))
    for i in range(m):
        if not np.isfinite(ascents.log_density[i]):
            ascents.log_density[i] = density_at_least(leaves, ascents.points[i])
    climb_all(ascents, every[every % FIRST_IN == 0], leaves, modes, room, limit)
    climb_all(ascents, every[every % FIRST_IN != 0], leaves, modes, room, limit)


@compiled
def climb_all(ascents: Ascents, which: Any, leaves: Leaves, modes: KnownModes, room: Rooms, limit: int) -> None:
    """Climb with the ascents `which` to their ends."""
    far = which
    while True:
        while len(far):
            going = np.zeros(len(far), np.bool_)
            for a in range(0, len(far), TOGETHER):
                step_far(ascents, far[a : a + TOGETHER], leaves, modes, room, limit, going[a : a + TOGETHER])
            far = far[going]
        left = which[ascents.moving[which]]
        if not len(left):
            return
        for a in range(0, len(left), TOGETHER):
            climb_to_ends(ascents, left[a : a + TOGETHER], leaves, modes, room, limit)
        left = left[ascents.moving[left]]
        far = left[~ascents.curved[left] & (ascents.last_step[left] > COARSE_ABOVE)]


@compiled
def step_far(
    ascents: Ascents, which: Any, leaves: Leaves, modes: KnownModes, room: Rooms, limit: int, going: Any
) -> None:
    """Take a step with each of the ascents `which`, by sums in single precision; `going` become those that are still
    far from their ends.
    """
    d = ascents.points.shape[1]
    step = np.empty(d)
    sums = sums_from_leaves(leaves, ascents.points, which, ascents.log_density, SHARE_LEFT_OUT, room.sums)
    for q in range(len(which)):
        i, total, square = which[q], sums[q, d], 0.0
        if not 1.0 / TOLD < total < TOLD:
            continue
        for k in range(d):
            step[k] = sums[q, k] / total
            square += step[k] * step[k]
        ahead = mode_ahead(modes, ascents.points[i], step)
        if ahead >= 0:
            ascents.points[i], ascents.log_density[i] = modes.points[ahead], modes.log_density[ahead]
            ascents.moving[i] = False
            continue
        log_density = ascents.log_density[i] + np.log(total)
        step_one(ascents, i, step, log_density, max(sums[q, d + 1] / total - square, 0.0), limit)
        ascents.coarse[i] = False  # these sums are good enough to end an ascent, and to tell that one is slow
        going[q] = ascents.moving[i] and not ascents.curved[i] and ascents.last_step[i] > COARSE_ABOVE


@compiled
def climb_to_ends(ascents: Ascents, which: Any, leaves: Leaves, modes: KnownModes, room: Rooms, limit: int) -> None:
    """Climb with the ascents `which`, each by itself, till it has arrived, or moved so far that other kernels may be
    near.
    """
    most, lowest = np.log(len(leaves.rows)) + leaves.heaviest, ascents.log_density[which].min()
    near = near_kernels(leaves, ascents.points, which, SLACK + reach(most, lowest), room.near_all)
    climb_near(ascents, which, near, room.near_one, modes, most, COARSE_ABOVE, limit)


@compiled
def density_at_least(leaves: Leaves, point: Array) -> float:
    """A lower bound of the log density at a point: what the heaviest kernel of the leaf nearest to it adds."""
    could = np.empty(len(leaves.most))
    could_add(leaves.low, leaves.high, leaves.most, point, point, could)
    leaf, highest = could.argmax(), -np.inf
    for i in range(leaves.first[leaf], leaves.first[leaf + 1]):
        highest = max(highest, leaves.log_weights[i] - ((leaves.rows[i] / leaves.sigma - point) ** 2).sum() / 2.0)
    return float(highest)


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: before workers are forked, or while ranks start."""
    points = np.array([[0.0], [3.0]])
    ascend_on_tree(points, np.full(2, np.nan), leaves_of(tree_of(points, np.full(2, -np.log(2.0))), 1.0))
