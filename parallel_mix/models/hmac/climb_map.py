"""Many ascents on all workers, a block of nearby start points after the other, whatever the density comes from.

What a block gives depends on its start points and the density alone; blocks climb wherever there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.core.run import HowFar, State
from parallel_mix.models.core.sources import Block, blocks_of
from parallel_mix.models.core.tasks import Arrays, ResumableMap, parts_of_state
from parallel_mix.models.hmac.points import Points

ROWS_A_SLICE = 524_288
"""Rows that a worker reads and climbs from at a time, where none holds all."""


@dataclass(frozen=True)
class Share:
    """How many blocks the start points of a level are cut into, as far as these bounds of their sizes allow it."""

    blocks: int
    fewest: int
    most: int

    def cut(self, count: int) -> list[Block]:
        """Cut so many start points into blocks, in an order that says nothing of where they are.

        So what the first blocks cost tells what the others will.
        """
        step = min(max(-(-count // self.blocks), self.fewest), self.most)
        blocks = blocks_of(count, step)
        return [blocks[k] for k in np.random.default_rng(count).permutation(len(blocks))]


class Density(Protocol):
    """Where a worker reads the density and climbs on it."""

    @property
    def smallest(self) -> float:
        """The smallest bandwidth, by which the rows are put in order."""

    @property
    def digits(self) -> int:
        """By how many digits of their log density modes are put in order."""

    @property
    def share(self) -> Share:
        """The blocks that start points are cut into."""

    @property
    def counts_pairs(self) -> bool:
        """Whether the ends of a block come with the work of its ascents, in pairs of a point and a kernel."""

    def order(self, starts: Array, sigma: float) -> np.ndarray:
        """The numbers of some start points, those near each other together."""

    def order_of_rows(self, points: Points) -> np.ndarray:
        """The numbers of all rows, those near each other together; made once."""

    def climb(self, points: Points, starts: Array, log_density: Array, sigma: float) -> Arrays:
        """Climb from some start points, with a lower bound or guess of the log density at each (NaN where there is
        none): the ends, which of them each start comes to (`member`), and which starts came close to a saddle
        (`unsure`, their numbers).
        """


def slices_of(rows: int) -> list[Block]:
    """So many rows in slices, of which a worker reads one at a time."""
    return blocks_of(rows, ROWS_A_SLICE)


# what a worker runs


def climb_rows(points: Points, block: Block, sigma: float, density: Density) -> Arrays:
    """Climb from some rows, in their order."""
    some = density.order_of_rows(points)[slice(*block)]
    return density.climb(points, points.all_rows()[some], points.log_weights[some], sigma)


def climb_slice(points: Points, rows: Block, sigma: float, density: Density) -> Arrays:
    """Climb from rows that are read for this: which end each comes to is told in the order of the rows."""
    X = points.rows_of(*rows)
    order = density.order(X, density.smallest)
    ends = density.climb(points, X[order], points.log_weights_of(*rows)[order], sigma)
    member = np.empty_like(ends["member"])
    member[order] = ends["member"]
    return ends | {"member": member, "unsure": np.sort(order[ends["unsure"]])}


def climb_starts(points: Points, task: tuple[Array, Array], sigma: float, density: Density) -> Arrays:
    """Climb from some start points, with a lower bound or guess of the log density at each."""
    return density.climb(points, *task, sigma)


# the loop on rank 0


class MapOfClimbs(ResumableMap):
    """The blocks of start points of one level; what a checkpoint keeps and how far it is, the whole fit tells."""

    def __init__(
        self, tasks: Sequence[Any], state: State | None, fit: Callable[[], State], fits_how_far: Callable[[], HowFar]
    ) -> None:
        super().__init__(tasks, "blocks of start points", state)
        self.parts: dict[int, Arrays] = parts_of_state(state)
        self.state, self.how_far = fit, fits_how_far  # type: ignore[method-assign]

    def keep(self, number: int, result: Arrays) -> None:
        """Keep the ends of a block."""
        self.parts[number] = result

    def arrays(self) -> Arrays:
        """The ends of all blocks that are done."""
        return {f"part/{number}/{name}": value for number, part in self.parts.items() for name, value in part.items()}

    @property
    def share_done(self) -> float:
        """The share of the blocks that are done."""
        return float(self.done.mean())

    @property
    def arrived(self) -> int:
        """How many ascents have arrived."""
        return sum(len(part["member"]) for part in self.parts.values())

    @property
    def work(self) -> float:
        """The work of the ascents that have arrived, in pairs of a point and a kernel."""
        return sum(float(part["work"].sum()) for part in self.parts.values())

    def ends(self) -> Arrays:
        """The ends of all blocks together, in the order of the blocks."""
        parts = [self.parts[k] for k in range(len(self.tasks))]
        return {
            name: np.concatenate([part[name] for part in parts])
            for name in parts[0]
            if name not in ("member", "unsure")
        }

    def of_starts(self, places: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The end that each start point comes to, (m) int32, and the numbers of those that came close to a saddle.

        `places` says of each block where its start points are among all: a slice, or their numbers.
        """
        end = np.empty(self.arrived, dtype=np.int32)
        unsure, first = [], 0
        for number, place in enumerate(places):
            part = self.parts[number]
            end[place] = part["member"].astype(np.int32) + np.int32(first)
            near = part["unsure"].astype(np.int64)
            unsure.append(near + place.start if isinstance(place, slice) else place[near])
            first += len(part["points"])
        return end, np.sort(np.concatenate(unsure))
