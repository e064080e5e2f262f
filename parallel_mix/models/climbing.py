"""Many ascents on all workers, by either of the dissertation's approaches.

Approach I (5.2): every step of modal EM is parallel. A worker holds some rows only and returns its partial sums for
all points that still move; one exchange an iteration.
Approach II (5.3): a worker holds all rows and climbs a block of start points to their ends; blocks are handed out as
workers become free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import TaskError
from parallel_mix.kernels.density import Array, add_sums, kernel_sums
from parallel_mix.kernels.locality import neighbours
from parallel_mix.kernels.modal_em import Ascents, ascend
from parallel_mix.kernels.saddle import second_moments
from parallel_mix.models.points import Points

PAIRS_A_BLOCK = 1_000_000
LEAST_PAIRS = 65_536
SMALL_WAVE = 64
KERNEL_BLOCK = 256
MOST_KERNEL_BLOCKS = 256
MOMENT_POINTS = 16


@dataclass
class Wave:
    """Ascents on their way together, in blocks of neighbours; what is finished of it goes into a checkpoint.

    A block comes back when most of its ascents have arrived; the rest goes on in the next wave, in fuller blocks: some
    ascents take a hundred times as many steps as most.
    """

    members: np.ndarray  # ascents
    block_of: np.ndarray  # the block of each
    finished: np.ndarray  # which blocks have come back

    @classmethod
    def cut(cls, members: np.ndarray, points: Array, n: int) -> Wave:
        """Blocks that cost about the same whatever n is; they depend on the points alone, not on who computes."""
        least = min(max(LEAST_PAIRS // n, 4), 32)
        size = min(max(PAIRS_A_BLOCK // n, 32), 256, max(-(-len(members) // 8), least))
        groups = neighbours(points[members], size)
        block_of = np.zeros(len(members), dtype=np.int32)
        for number, group in enumerate(groups):
            block_of[group] = number
        return cls(members, block_of, np.zeros(len(groups), dtype=bool))

    def blocks(self) -> list[tuple[int, np.ndarray]]:
        """Number and ascents of each block that is still to do."""
        return [(int(k), self.members[self.block_of == k]) for k in np.flatnonzero(~self.finished)]

    @property
    def leave(self) -> int:
        """A block comes back when no more than one in so many of its ascents still move; 0: when none do."""
        return 4 if len(self.members) > SMALL_WAVE else 0

    def state(self) -> dict[str, Any]:
        """Named arrays to go on from."""
        return {f"wave/{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Wave:
        return cls(*[state[f"wave/{field.name}"] for field in fields(cls)])


def kernel_blocks(n: int) -> list[tuple[int, int]]:
    """Cut the n rows into the blocks of Approach I."""
    size = max(KERNEL_BLOCK, -(-n // (MOST_KERNEL_BLOCKS * KERNEL_BLOCK)) * KERNEL_BLOCK)
    return [(a, min(a + size, n)) for a in range(0, n, size)]


# kernels: what a worker runs


def ascend_block(points: Points, ascents: Ascents, sigma: float, leave: int) -> Ascents:
    """Approach II: one block of ascents to their ends, or till one in `leave` still moves."""
    return ascend(ascents, points.kernels(sigma), len(ascents.points) // leave if leave else 0)


def sums_of_block(
    points: Points, block: tuple[int, int], sigma: float, at: Array, log_density: Array, coarse: np.ndarray
) -> Array:
    """Approach I: partial sums of one block of kernels for all points that still move."""
    return kernel_sums(at, log_density, points.kernels(sigma, *block), coarse)


def moments_of_block(
    points: Points, block: tuple[int, int], sigma: float, at: Array, log_density: Array, bound: bool
) -> Array:
    """Approach I: second moments of p about some points, over one block of kernels."""
    return second_moments(at, log_density, points.kernels(sigma, *block), bound)


def moments_at(points: Points, task: tuple[Array, Array], sigma: float, bound: bool) -> Array:
    """Approach II: second moments of p about some points."""
    return second_moments(*task, points.kernels(sigma), bound)


# the loops on rank 0


def climb_by_steps(backend: Backend, n: int, sigma: float, ascents: Ascents) -> Iterator[None]:
    """Approach I; yields after each step of all ascents that still move."""
    blocks = kernel_blocks(n)
    while (which := np.flatnonzero(ascents.moving)).size:
        at, log_density, coarse = ascents.points[which], ascents.log_density[which], ascents.coarse[which]
        kernel = partial(sums_of_block, sigma=sigma, at=at, log_density=log_density, coarse=coarse)
        ascents.advance(which, backend.map_reduce(kernel, blocks, add_sums))
        yield


def climb_by_blocks(backend: Backend, n: int, sigma: float, ascents: Ascents, wave: Wave) -> Iterator[None]:
    """Approach II; yields after each block that comes back. `wave` is brought up to date in place."""
    while True:
        blocks = wave.blocks()
        kernel = partial(ascend_block, sigma=sigma, leave=wave.leave)
        try:
            for index, ended in backend.map(kernel, [ascents.take(which) for _, which in blocks]):
                number, which = blocks[index]
                ascents.put(which, ended)
                wave.finished[number] = True
                yield
        except TaskError as error:  # by its number among those that are left, as a run that goes on will count
            number = blocks[error.failure.task][0]
            left = int((~wave.finished[:number]).sum())
            raise TaskError(replace(error.failure, task=left)) from None
        moving = wave.members[ascents.moving[wave.members]]
        if not moving.size:
            return
        following = Wave.cut(moving, ascents.points, n)
        wave.members, wave.block_of, wave.finished = following.members, following.block_of, following.finished


def moments(
    backend: Backend, approach: int, n: int, sigma: float, at: Array, log_density: Array, bound: bool = False
) -> Array:
    """Second moments of p about each point, over all rows, or a bound on them."""
    d = at.shape[1]
    cuts = range(0, len(at), MOMENT_POINTS)
    tasks = [(at[a : a + MOMENT_POINTS], log_density[a : a + MOMENT_POINTS]) for a in cuts]
    result = np.empty((len(at), d + 1, d))
    found: Iterator[tuple[int, Any]]
    if approach == 2:
        found = backend.map(partial(moments_at, sigma=sigma, bound=bound), tasks)
    else:
        add: Callable[[Array, Array], Array] = np.add
        blocks = kernel_blocks(n)
        found = (
            (
                k,
                backend.map_reduce(
                    partial(moments_of_block, sigma=sigma, at=a, log_density=f, bound=bound), blocks, add
                ),
            )
            for k, (a, f) in enumerate(tasks)
        )
    for k, part in found:
        result[k * MOMENT_POINTS : k * MOMENT_POINTS + len(part)] = part
    return result
