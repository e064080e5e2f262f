"""Modal EM on a field: the same ascents, whose steps cost as little at a million points as at a thousand.

Ascents that have come close to each other go on as one. That alone would give no bound: near a saddle they part again.
So each goes with the derivative of all its steps since others joined it (`flow`), which tells how far from it these
would be by now. Where that is not small at its end, beside the distance of the nearest saddle, those that joined it
climb again, each by itself.

Where the density is too low to be read from the field, or a point lies beyond it, sums over the kernels take over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.ascent_rule import cost_of_a_look, look_one, step_one
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.field import STENCIL, Field
from parallel_mix.kernels.density.field_values import value_at
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.locality import HASH
from parallel_mix.kernels.density.newton_finish import eigen

SIDE = 3e-3
"""Ascents in one cell of this side, in bandwidths, go on as one."""
SURE = 0.5
"""How far those that joined an ascent may be from it at its end, in bandwidths times 1 - the top eigenvalue of J."""
FIRST_STEPS, MOST_STEPS = 2, 64
"""Steps that ascents take before it is seen which are close to each other; twice as many each time."""
FEW = 16
"""So few ascents go each by itself."""


class Groups(NamedTuple):
    """Which ascents go on for which, and how far those that joined one are from it."""

    owner: Any  # (m) int64: the ascent that goes on for each
    radius: Array  # (m) how far from it, at most, those that joined it were when the last one did
    flow: Array  # (m, d, d) the derivative of its steps since
    before: Any  # (m) bool: whether the one that it joined had come close to a saddle before
    sure: Any  # (m) bool: those that joined it surely end where it does
    lost: Any  # (m) bool: it cannot be told from the field

    @classmethod
    def alone(cls, m: int, d: int) -> Groups:
        """Each ascent for itself."""
        none, flow = np.zeros(m, dtype=bool), np.zeros((m, d, d))
        flow[:, range(d), range(d)] = 1.0
        return cls(np.arange(m), np.zeros(m), flow, none, ~none, none.copy())


@compiled
def climb_on_field(ascents: Ascents, groups: Groups, field: Field, which: Any, steps: int, limit: int) -> None:
    """Take up to so many steps with each of the ascents `which`."""
    d = ascents.points.shape[1]
    room, sums, J, step = np.empty((3, d, STENCIL)), np.empty(10), np.empty((d, d)), np.empty(d)
    newton, rising = np.empty(d), np.empty(d)
    for i in which:
        for _ in range(steps):
            if not value_at(field, ascents.points[i], room, sums) or sums[0] < field.least:
                groups.lost[i] = True
                ascents.moving[i] = False
                break
            entry, trace = d + 1, 0.0
            for k in range(d):
                step[k] = sums[1 + k] / sums[0]
            for k in range(d):
                for j in range(k, d):
                    J[k, j] = J[j, k] = sums[entry] / sums[0] - step[k] * step[j]
                    entry += 1
                J[k, k] += 1.0
                trace += J[k, k]
            was_finishing = ascents.finishing[i]
            if ascents.curved[i]:
                look_one(ascents, i, step, np.log(sums[0]), J, newton, rising, limit)
            else:
                step_one(ascents, i, step, np.log(sums[0]), max(trace, 0.0), cost_of_a_look(d), limit)
            if groups.radius[i] > 0.0 and not was_finishing:
                go_with(groups.flow[i], J, step)
            if not ascents.moving[i]:
                if groups.radius[i] > 0.0:
                    groups.sure[i] = distance_now(groups, i) <= SURE * (1.0 - eigen(J)[0].max())
                break


@compiled
def go_with(flow: Array, J: Array, room: Array) -> None:
    """Multiply the derivative of the steps so far by that of one more."""
    d = len(J)
    for column in range(d):
        for row in range(d):
            room[row] = 0.0
            for k in range(d):
                room[row] += J[row, k] * flow[k, column]
        for row in range(d):
            flow[row, column] = room[row]


@compiled
def distance_now(groups: Groups, i: int) -> float:
    """How far those that joined ascent i would be from it by now, at most."""
    square = np.dot(groups.flow[i].T, groups.flow[i])
    size = np.sqrt((square * square).sum())
    if size == 0.0:
        return 0.0
    square /= size
    for _ in range(3):  # the largest eigenvalue, from above within some percent
        square = np.dot(square, square)
    return float(groups.radius[i] * np.sqrt(size * (square * square).sum() ** (1.0 / 16.0)))


@compiled
def cell_of(point: Array, cell: Any) -> int:
    """The cell of a point, and a key for it."""
    key = np.uint64(0)
    for k in range(len(point)):
        cell[k] = np.int64(np.floor(point[k] / SIDE))
        key = (key ^ np.uint64(cell[k])) * HASH
        key ^= key >> np.uint64(32)
    return int(key >> np.uint64(1))


@compiled
def join_close(ascents: Ascents, groups: Groups, which: Any) -> int:
    """Let ascents of one cell, none of them near its end, go on as the first of them; how many go on.

    `which` begins with those that go on, in their order.
    """
    d = ascents.points.shape[1]
    size = 4
    while size < 2 * len(which):
        size *= 2
    table = np.full(size, -1, np.int64)
    cell, other = np.empty(d, np.int64), np.empty(d, np.int64)
    kept = 0
    for i in which:
        here, first = i, ascents.finishing[i] or ascents.curved[i]
        if not first:
            place = cell_of(ascents.points[i], cell) & (size - 1)
            while table[place] >= 0:
                cell_of(ascents.points[table[place]], other)
                if (cell == other).all():
                    here = table[place]
                    break
                place = (place + 1) & (size - 1)
            if here == i:
                table[place] = i
        if here == i:
            which[kept] = i
            kept += 1
            continue
        gap = 0.0
        for k in range(d):
            gap += (ascents.points[i, k] - ascents.points[here, k]) ** 2
        farthest = max(distance_now(groups, here), distance_now(groups, i) + np.sqrt(gap), 1e-300)
        groups.radius[here] = farthest
        groups.flow[here] = np.eye(d)
        groups.owner[i] = here
        groups.before[i] = ascents.unsure[here]
        ascents.moving[i] = False
    return kept


@compiled
def settle(ascents: Ascents, groups: Groups) -> Any:
    """Let `owner` be the last ascent that goes on for each; tell which ascents are to climb again by themselves.

    An ascent came close to a saddle where one that went on for it did.
    """
    m = len(groups.owner)
    again = np.zeros(m, np.bool_)
    for i in range(m):
        last, unsure, sure, lost = i, ascents.unsure[i], True, groups.lost[i]
        while groups.owner[last] != last:
            before = groups.before[last]
            last = groups.owner[last]
            unsure |= ascents.unsure[last] and not before
            sure &= groups.sure[last]
            lost |= groups.lost[last]
        again[i] = (not sure and last != i) or lost
        ascents.unsure[i] = unsure
    for i in range(m):
        last = groups.owner[i]
        while groups.owner[last] != last:
            last = groups.owner[last]
        groups.owner[i] = last
    return again


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: before workers are forked."""
    field = Field(np.ones(16 * STENCIL), np.array([16 * STENCIL]), np.array([-8.0 * STENCIL]), np.ones(1), 0.5)
    begin = Ascents.begin(np.zeros((2, 1)), np.zeros(2))
    join_close(begin, Groups.alone(2, 1), np.arange(2))
    ascend_on_field(begin.points, begin.log_density, field)


def ascend_on_field(starts: Array, log_density: Array, field: Field) -> tuple[Ascents, np.ndarray, np.ndarray]:
    """Climb from all starts: the ascents, the one that went on for each, and which the field could not tell."""
    m, d = starts.shape
    ascents, groups = Ascents.begin(starts, log_density), Groups.alone(m, d)
    which, steps = np.arange(m), FIRST_STEPS
    while len(which):
        climb_on_field(ascents, groups, field, which, steps, ascents.limit)
        which = which[ascents.moving[which]]
        if len(which) > FEW:
            which = which[: join_close(ascents, groups, which)]
        steps = min(2 * steps, MOST_STEPS)
    again = np.flatnonzero(settle(ascents, groups))
    if len(again):
        alone = Ascents.begin(starts[again], log_density[again])
        single = Groups.alone(len(again), d)
        climb_on_field(alone, single, field, np.arange(len(again)), ascents.limit, ascents.limit)
        for name, values in alone._asdict().items():
            getattr(ascents, name)[again] = values
        groups.owner[again] = again
        groups.lost[again] = single.lost
    return ascents, groups.owner, groups.lost
