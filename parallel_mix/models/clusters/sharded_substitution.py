"""Vertex substitution where the matrix is too large for one worker: each holds some rows of it.

Candidates are judged some at a time: every worker adds up what its rows say of them, whole numbers, so that the sums
are those of one process to the last digit. The first candidate that brings something is exchanged, and those after it
are judged again. So the exchanges are those of `kernels.medoids.vertex_substitution`, one for one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.vertex_substitution import best_of, judge_block, nearest_two
from parallel_mix.models.core.sources import MatrixSource

Ints = np.ndarray
BLOCK = 1_024
"""Rows of a block."""
FEWEST, MOST = 16, 1_024
"""How many candidates are judged at a time, at least and at most."""


@dataclass(frozen=True)
class ShardsRecipe:
    """What a worker makes `Shards` of: where the rows are, the weights w, and how many steps a distance of 1 has."""

    matrix: MatrixSource
    w: Array
    steps: float

    def load(self) -> Shards:
        """The shards of a worker, none of them read yet."""
        return Shards(self)


@dataclass(frozen=True)
class SpreadRows:
    """Rows that the workers of a backend hold together (a `ShardsRecipe` is shared already), and how many they are."""

    backend: Backend
    n: int


class Shards:
    """The blocks of rows that this worker was asked for."""

    def __init__(self, recipe: ShardsRecipe) -> None:
        self.w, self.steps = recipe.w, recipe.steps
        self._matrix = recipe.matrix
        self._blocks: dict[int, Array] = {}
        self._lock = threading.Lock()

    def block(self, number: int) -> Array:
        """All distances of the rows of a block, (rows, n); they are read once and kept."""
        with self._lock:
            if number not in self._blocks:
                self._blocks[number] = np.ascontiguousarray(self._matrix[number * BLOCK : (number + 1) * BLOCK])
            return self._blocks[number]


def judge_some(shards: Shards, number: int, medoids: Ints, candidates: tuple[int, int]) -> Ints:
    """The sums that one block of rows adds for candidates a..b: whole numbers, laid out as by `judge_block`."""
    D = shards.block(number)
    k, c = len(medoids), candidates[1] - candidates[0]
    out = np.empty(1 + k + c + c * k, dtype=np.int64)
    w = shards.w[number * BLOCK : number * BLOCK + len(D)]
    across = np.ascontiguousarray(D[:, slice(*candidates)].T)
    judge_block(np.ascontiguousarray(D[:, medoids]), across, w, shards.steps, out)
    return out


def nearest_of_block(shards: Shards, number: int, medoids: Ints) -> dict[int, Ints]:
    """The nearest medoid (0..k-1) of each row of a block, under the number of the block."""
    near = np.ascontiguousarray(shards.block(number)[:, medoids])
    first, second = np.empty(len(near), dtype=np.int64), np.empty(len(near), dtype=np.int64)
    nearest_two(near, first, second)
    return {number: first}


def joined(one: dict[int, Ints], other: dict[int, Ints]) -> dict[int, Ints]:
    """The results of two sets of blocks, together. As a sum, so that each worker is asked for the blocks it holds."""
    return one | other


def number_of_blocks(n: int) -> int:
    """How many blocks so many rows have."""
    return -(-n // BLOCK)


def substitute_in_shards(rows: SpreadRows, medoids: Ints) -> Ints:
    """Exchange the medoids of some starts (in place, one start a row), one start after the other; the losses in steps.

    There are 2 medoids or more.
    """
    return np.array([substitute_one_start(rows.backend, rows.n, start) for start in medoids])


def substitute_one_start(backend: Backend, n: int, medoids: Ints) -> int:
    """Exchange the medoids of one start (in place) until a whole sweep brings nothing; return the loss in steps."""
    blocks, k = range(number_of_blocks(n)), len(medoids)
    been, sweep, better, loss, some = np.zeros(n, dtype=np.int64), 0, True, 0, FEWEST
    while better:
        sweep, better, at = sweep + 1, False, 0
        been[medoids] = sweep
        while at < n:
            stop = min(at + some, n)
            kernel = partial(judge_some, medoids=medoids.copy(), candidates=(at, stop))
            sums = backend.map_reduce(kernel, blocks, np.add)
            loss, removal = int(sums[0]), sums[1 : k + 1]
            c = stop - at
            gains, changes = sums[1 + k : 1 + k + c], sums[1 + k + c :].reshape(c, k)
            for x in range(c):
                change = removal + changes[x]
                j = best_of(change)
                if been[at + x] != sweep and gains[x] + change[j] < 0:
                    medoids[j], been[at + x] = at + x, sweep
                    loss += int(gains[x] + change[j])
                    better, stop = True, at + x + 1
                    break
            some = min(2 * some, MOST) if stop - at == c else max(some // 4, FEWEST)
            at = stop
    return loss
