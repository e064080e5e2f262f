"""Many ascents on all workers, by one of the dissertation's two approaches.

Approach I (5.2): every step of modal EM is parallel. A worker holds some rows only and returns its partial sums for
all points that still move; one exchange an iteration.
Approach II (5.3): a worker holds all rows and climbs a block of start points to their ends; blocks are handed out as
workers become free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import TaskError
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import Array, add_sums, kernel_sums
from parallel_mix.kernels.density.locality import groups_of_nearby
from parallel_mix.kernels.density.modal_em import ascend
from parallel_mix.models.core.sources import Block, blocks_of
from parallel_mix.models.hmac.points import Points

PAIRS_A_BLOCK = 2_000_000
"""Pairs of an ascent and a kernel in a block of ascents, at most (with 32 to 256 ascents)."""
LEAST_PAIRS = 65_536
"""Pairs of an ascent and a kernel in a block of ascents, at least (with 4 to 32 ascents)."""
STREAMS = 2
"""How many streams a level has."""
ROWS_FOR_A_BLOCK = 2_500
"""A wave has a block for every so many rows of the data, up to 8, while its blocks are large enough."""
SMALL_WAVE = 64
"""In a wave of so many ascents or fewer, blocks come back only when all their ascents have arrived."""
KERNEL_BLOCK = 256
"""Approach I cuts the kernels into blocks of multiples of so many."""
MOST_KERNEL_BLOCKS = 256
"""The most blocks of kernels in Approach I."""


def most_in_a_block(n: int) -> int:
    """The most ascents of a block, where there are n kernels."""
    return min(max(PAIRS_A_BLOCK // n, 32), 256)


@dataclass
class Wave:
    """Ascents under way at one time, in blocks of nearby ones; which blocks have come back goes into a checkpoint.

    A block comes back when most of its ascents have arrived; the rest goes on in the next wave, in fuller blocks: some
    ascents take a hundred times as many steps as most.
    """

    members: np.ndarray  # numbers of ascents
    block_of: np.ndarray  # the block of each
    finished: np.ndarray  # which blocks have come back

    @classmethod
    def cut(cls, members: np.ndarray, points: Array, n: int) -> Wave:
        """Cut ascents into blocks that cost about as much whatever n is; they depend on the points, not on workers."""
        fewest_blocks = min(-(-n // ROWS_FOR_A_BLOCK), 8)  # at least, as long as each has enough to do
        least = min(max(LEAST_PAIRS // n, 4), 32)
        size = min(most_in_a_block(n), max(-(-len(members) // fewest_blocks), least))
        groups = groups_of_nearby(points[members], size) if len(members) else []
        block_of = np.zeros(len(members), dtype=np.int32)
        for number, group in enumerate(groups):
            block_of[group] = number
        return cls(members, block_of, np.zeros(len(groups), dtype=bool))

    def go_on(self, ascents: Ascents, n: int) -> bool:
        """Become the next wave where all blocks have come back; False where some have not."""
        if not self.finished.all():
            return False
        following = Wave.cut(self.members[ascents.moving[self.members]], ascents.points, n)
        self.members, self.block_of, self.finished = following.members, following.block_of, following.finished
        return True

    def blocks(self) -> list[tuple[int, np.ndarray]]:
        """Number and ascents of each block that is still to do, in an order that says nothing of where they are.

        So what the first blocks cost tells what the others will.
        """
        order = np.random.default_rng(len(self.finished)).permutation(len(self.finished))
        return [(int(k), self.members[self.block_of == k]) for k in order if not self.finished[k]]

    @property
    def leave(self) -> int:
        """A block comes back when no more than one in `leave` of its ascents still moves; if it is 0, when none do."""
        return 4 if len(self.members) > SMALL_WAVE else 0


@dataclass
class Streams:
    """The ascents of a level in a few streams, each of which goes through its waves by itself.

    Where one waits for the last block of its wave, the others keep the workers busy.
    """

    waves: list[Wave]

    @classmethod
    def cut(cls, members: np.ndarray, points: Array, n: int) -> Streams:
        """Cut ascents into streams of nearby ones, about as many ascents in each."""
        groups = groups_of_nearby(points[members], max(-(-len(members) // STREAMS), 1))
        return cls([Wave.cut(members[group], points, n) for group in groups])

    def left_before(self, wave: Wave, block: int) -> int:
        """How many blocks that are still to do come before this block of this wave."""
        whole = self.waves[: next(k for k, other in enumerate(self.waves) if other is wave)]
        return sum(len(other.blocks()) for other in whole) + [number for number, _ in wave.blocks()].index(block)

    def state(self) -> dict[str, Any]:
        """The waves as arrays with names, for a checkpoint."""
        return {
            f"stream{k}/{field.name}": getattr(wave, field.name)
            for k, wave in enumerate(self.waves)
            for field in fields(wave)
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Streams | None:
        """The streams that `state` made arrays of; None where there are no such arrays."""
        waves: list[Wave] = []
        while f"stream{len(waves)}/members" in state:
            waves.append(Wave(*[state[f"stream{len(waves)}/{field.name}"] for field in fields(Wave)]))
        return cls(waves) if waves else None


def kernel_blocks(n: int) -> list[Block]:
    """Cut the n rows into the blocks of Approach I."""
    size = max(KERNEL_BLOCK, -(-n // (MOST_KERNEL_BLOCKS * KERNEL_BLOCK)) * KERNEL_BLOCK)
    return blocks_of(n, size)


# what a worker runs


def ascend_block(points: Points, task: tuple[Ascents, int], sigma: float) -> Ascents:
    """Approach II: one block of ascents to their ends, or till one in `leave` still moves."""
    ascents, leave = task
    return ascend(ascents, points.kernels(sigma), len(ascents.points) // leave if leave else 0)


def sums_of_block(
    points: Points, block: tuple[int, int], sigma: float, turns: list[tuple[Array, Array, bool, bool]]
) -> list[Array]:
    """Approach I: partial sums of one block of kernels for all points that still move, kind by kind."""
    kernels = points.kernels(sigma, *block)
    return [kernel_sums(at, log_density, kernels, *kind) for at, log_density, *kind in turns]


def add_turns(some: list[Array], others: list[Array]) -> list[Array]:
    """Add the sums of two disjoint sets of kernels, kind by kind."""
    return [add_sums(one, other) for one, other in zip(some, others, strict=True)]


# the loops on rank 0


@dataclass
class BlockTasks:
    """The tasks of Approach II; a block's ascents are copied when it is handed out."""

    ascents: Ascents
    origin: list[tuple[Wave, int, np.ndarray]]  # wave, block and ascents

    def __len__(self) -> int:
        return len(self.origin)

    def __getitem__(self, index: int) -> tuple[Ascents, int]:
        wave, _, which = self.origin[index]
        return self.ascents.take(which), wave.leave


def climb_by_steps(backend: Backend, n: int, sigma: float, ascents: Ascents) -> Iterator[None]:
    """Approach I; yields after each step of all ascents that still move."""
    blocks = kernel_blocks(n)
    while turns := ascents.turns():
        at = [(ascents.points[which], ascents.log_density[which], *kind) for which, *kind in turns]
        kernel = partial(sums_of_block, sigma=sigma, turns=at)
        for which, *kind in turns:
            ascents.count_work(which, n, *kind)
        for (which, *_), sums in zip(turns, backend.map_reduce(kernel, blocks, add_turns), strict=True):
            ascents.advance(which, sums)
        yield


def climb_by_blocks(backend: Backend, n: int, sigma: float, ascents: Ascents, streams: Streams) -> Iterator[None]:
    """Approach II; yields after each block that comes back. `streams` are brought up to date in place."""
    for wave in streams.waves:  # where the run was stopped between two waves
        wave.go_on(ascents, n)
    origin = [(wave, *block) for wave in streams.waves for block in wave.blocks()]  # of each task
    tasks = BlockTasks(ascents, origin)
    try:
        for index, ended in backend.map(partial(ascend_block, sigma=sigma), tasks):
            wave, number, which = origin[index]
            ascents.put(which, ended)
            wave.finished[number] = True
            if wave.go_on(ascents, n):
                origin += [(wave, *block) for block in wave.blocks()]
            yield
    except TaskError as error:
        raise error.renumbered(streams.left_before(*origin[error.failure.task][:2])) from None
