"""Many ascents on all workers, by either of the dissertation's approaches.

Approach I (5.2): every step of modal EM is parallel. A worker holds some rows only and returns its partial sums for
all points that still move; one exchange an iteration.
Approach II (5.3): a worker holds all rows and climbs a block of start points to their ends; blocks are handed out as
workers become free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density import Array, add_sums, kernel_sums
from parallel_mix.kernels.modal_em import Ascents, ascend
from parallel_mix.kernels.saddle import second_moments
from parallel_mix.models.points import Points

KERNEL_BLOCK = 256
MOST_KERNEL_BLOCKS = 256
MOMENT_POINTS = 16


def start_blocks(queue: np.ndarray) -> list[np.ndarray]:
    """Cut start points into blocks: some 32 of them where they are few, 128 points each where they are many."""
    size = min(max(-(-len(queue) // 32), 16), 128)
    return [queue[a : a + size] for a in range(0, len(queue), size)]


def kernel_blocks(n: int) -> list[tuple[int, int]]:
    """Cut the n rows into the blocks of Approach I."""
    size = max(KERNEL_BLOCK, -(-n // (MOST_KERNEL_BLOCKS * KERNEL_BLOCK)) * KERNEL_BLOCK)
    return [(a, min(a + size, n)) for a in range(0, n, size)]


# kernels: what a worker runs


def ascend_block(points: Points, task: tuple[Array, Array, np.ndarray], sigma: float) -> Ascents:
    """Approach II: one block of start points to the end of their ascents."""
    starts, log_density, iterations = task
    ascents = Ascents.begin(starts, log_density)
    ascents.iterations[:] = iterations
    return ascend(ascents, points.kernels(sigma))


def sums_of_block(points: Points, block: tuple[int, int], sigma: float, at: Array, log_density: Array) -> Array:
    """Approach I: partial sums of one block of kernels for all points that still move."""
    return kernel_sums(at, log_density, points.kernels(sigma, *block))


def moments_of_block(points: Points, block: tuple[int, int], sigma: float, at: Array, log_density: Array) -> Array:
    """Approach I: second moments of p about some points, over one block of kernels."""
    return second_moments(at, log_density, points.kernels(sigma, *block))


def moments_at(points: Points, task: tuple[Array, Array], sigma: float) -> Array:
    """Approach II: second moments of p about some points."""
    return second_moments(*task, points.kernels(sigma))


# the loops on rank 0


def climb_by_steps(backend: Backend, n: int, sigma: float, ascents: Ascents, queue: np.ndarray) -> Iterator[int]:
    """Approach I; yields the number of ascents that ended after each step."""
    blocks = kernel_blocks(n)
    while (which := queue[ascents.moving[queue]]).size:
        kernel = partial(sums_of_block, sigma=sigma, at=ascents.points[which], log_density=ascents.log_density[which])
        ascents.advance(which, backend.map_reduce(kernel, blocks, add_sums))
        yield int(which.size - ascents.moving[which].sum())


def climb_by_blocks(backend: Backend, sigma: float, ascents: Ascents, queue: np.ndarray) -> Iterator[int]:
    """Approach II; yields the number of start points of each block that came back."""
    blocks = [block for block in start_blocks(queue) if ascents.moving[block].any()]
    tasks = [(ascents.points[b], ascents.log_density[b], ascents.iterations[b]) for b in blocks]
    for index, ended in backend.map(partial(ascend_block, sigma=sigma), tasks):
        ascents.put(blocks[index], ended)
        yield len(blocks[index])


def moments(backend: Backend, approach: int, n: int, sigma: float, at: Array, log_density: Array) -> Array:
    """Second moments of p about each point, over all rows."""
    d = at.shape[1]
    cuts = range(0, len(at), MOMENT_POINTS)
    tasks = [(at[a : a + MOMENT_POINTS], log_density[a : a + MOMENT_POINTS]) for a in cuts]
    result = np.empty((len(at), d + 1, d))
    found: Iterator[tuple[int, Any]]
    if approach == 2:
        found = backend.map(partial(moments_at, sigma=sigma), tasks)
    else:
        add: Callable[[Array, Array], Array] = np.add
        blocks = kernel_blocks(n)
        found = (
            (k, backend.map_reduce(partial(moments_of_block, sigma=sigma, at=a, log_density=f), blocks, add))
            for k, (a, f) in enumerate(tasks)
        )
    for k, part in found:
        result[k * MOMENT_POINTS : k * MOMENT_POINTS + len(part)] = part
    return result
