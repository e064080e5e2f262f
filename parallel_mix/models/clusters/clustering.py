"""Clustering from distances alone: medoids by vertex substitution or generalized k-means, or Ward's tree.

A task is two starts of one number of clusters on one group of rows (a class, or all rows); of all starts the one of
the least loss holds. Loss is the total distance of all points, times their weights, to the medoids of their clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.vertex_substitution import is_symmetric, steps_of
from parallel_mix.models.clusters.groups import Group, best_of_starts, labels_by, random_starts
from parallel_mix.models.clusters.groups import warm_up as warm_up
from parallel_mix.models.clusters.sharded_substitution import (
    ShardsRecipe,
    SpreadRows,
    blocks_of,
    joined,
    nearest_of_block,
)
from parallel_mix.models.clusters.substitution import substitute
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import MatrixSource
from parallel_mix.models.core.tasks import Arrays, ResumableMap

TOGETHER = 2
"""Starts of a task: they share what they read of the matrix, which two cores read at the same time."""
ALONE = 4
Ints = np.ndarray


@dataclass(frozen=True)
class GroupsRecipe:
    """What a worker needs: the distances, the rows of each group, and their weights."""

    matrix: MatrixSource
    groups: tuple[Ints, ...]
    w: Array | None

    def load(self) -> Groups:
        return Groups(self)


class Groups:
    """The distances within one group at a time, candidates in rows: entry (j, i) is the distance of i to j."""

    def __init__(self, recipe: GroupsRecipe) -> None:
        self._recipe = recipe
        self._number = -1
        if len(recipe.groups) == 1:  # before any process is forked
            self.within(0)

    def within(self, number: int) -> Group:
        """The distances within a group."""
        if number != self._number:
            rows = self._recipe.groups[number]
            D = np.ascontiguousarray(self._recipe.matrix.among(rows, rows))
            E = D if is_symmetric(D) else np.ascontiguousarray(D.T)
            w = np.ones(len(rows)) if self._recipe.w is None else self._recipe.w[rows]
            self._group, self._number = Group(E, w), number
        return self._group


@dataclass(frozen=True)
class Start:
    """Some starts: group, number of clusters, the first of them, and how many."""

    group: int
    clusters: int
    restart: int
    count: int = 1


@dataclass(frozen=True)
class Found:
    """What a start has come to: places and labels within the group, medoids in rising order."""

    loss: float
    restart: int
    medoids: Ints
    labels: Ints

    def beats(self, other: Found | None) -> bool:
        """A smaller loss, or of equal ones the earlier start."""
        return other is None or (self.loss, self.restart) < (other.loss, other.restart)


def cluster_once(groups: Groups, start: Start, method: str, seed: int) -> Found:
    """Medoids and labels from one start, or the best of several."""
    group = groups.within(start.group)
    begun = starts_of(len(group.w), start, seed) if method == "vsh" else None
    steps, which, medoids = best_of_starts(group, method, start.clusters, begun)
    return Found(steps / group.steps, start.restart + which, medoids, labels_by(group, method, medoids))


def starts_of(n: int, start: Start, seed: int) -> Ints:
    """The medoids that these starts begin with."""
    return random_starts(n, start.clusters, [seed, start.group, start.clusters], start.restart, start.count)


def cluster_in_shards(backend: Backend, n: int, start: Start, seed: int, steps: float) -> Found:
    """The same as `cluster_once`, by all workers together."""
    starts = starts_of(n, start, seed)
    losses = substitute(SpreadRows(backend, n), starts)
    which = int(losses.argmin())
    loss, medoids = int(losses[which]), np.sort(starts[which])
    parts = backend.map_reduce(partial(nearest_of_block, medoids=medoids), range(blocks_of(n)), joined)
    labels = np.concatenate([parts[k] for k in range(len(parts))])
    labels[medoids] = np.arange(len(medoids))
    return Found(loss / steps, start.restart + which, medoids, labels)


@dataclass(frozen=True)
class Clustering:
    """Clusters by falling size (weight, where rows have one), then lowest medoid; group after group."""

    labels: Ints  # (n)
    medoids: Ints  # (k) rows
    sizes: Ints  # (k)
    groups: Ints  # (k) group of each cluster
    loss: float


def shared_starts(tries: int) -> list[tuple[int, int]]:
    """The first start and how many, of each task: two, and the last ones alone, that all workers end together."""
    shared = max(tries - ALONE, 0) // TOGETHER * TOGETHER
    return [(first, TOGETHER) for first in range(0, shared, TOGETHER)] + [(first, 1) for first in range(shared, tries)]


def cluster_distances(
    matrix: MatrixSource,
    method: str,
    counts: Sequence[int],
    *,
    groups: Sequence[Ints] | None = None,
    w: Array | None = None,
    restarts: int = 20,
    seed: int = 0,
    backend: Backend,
    run: Run | None = None,
    largest: float | None = None,
) -> dict[int, Clustering]:
    """Clusterings of all rows, or of each group by itself, into these numbers of clusters (of each group).

    With `largest`, the largest distance, no worker holds the whole matrix: its rows are spread over all (vsh of all
    rows, 2 clusters or more), and the starts follow each other.
    """
    run = run or QuietRun()
    if method == "vsh" and restarts < 1:
        raise InputError(f"There must be 1 restart or more, not {restarts}.")
    if largest is not None and (method != "vsh" or groups is not None or min(counts) < 2):
        raise InputError("A matrix is spread over workers for vsh of all rows, into two clusters or more.")
    parts = tuple(groups) if groups is not None else (np.arange(matrix.shape[0]),)
    tries = restarts if method == "vsh" else 1
    starts = [
        Start(g, k, first, count)
        for g, rows in enumerate(parts)
        for k in sorted({min(count, len(rows)) for count in counts}, reverse=True)  # the longest first
        for first, count in shared_starts(tries if k > 1 else 1)
    ]
    tasks = MapOfStarts(starts, method, run.restored())
    if largest is None:
        backend.share(GroupsRecipe(matrix, parts, w))
        tasks.work_off(backend, run, partial(cluster_once, method=method, seed=seed))
    else:
        weights = np.ones(matrix.shape[0]) if w is None else w
        steps = steps_of(weights, largest)
        backend.share(ShardsRecipe(matrix, weights, steps))
        for number in np.flatnonzero(~tasks.done):
            tasks.note(int(number), cluster_in_shards(backend, matrix.shape[0], starts[number], seed, steps))
            run.report(tasks.how_far)
            run.offer(tasks.state)
    best = tasks.best
    return {k: put_together([best[g, min(k, len(rows))] for g, rows in enumerate(parts)], parts, w) for k in counts}


class MapOfStarts(ResumableMap):
    """Starts, of which the best one is kept for each group and number of clusters."""

    def __init__(self, starts: Sequence[Start], method: str, state: State | None) -> None:
        super().__init__(starts, f"{method}, start", state)
        self.starts = starts
        self.best = best_of_state(state)

    def keep(self, number: int, result: Found) -> None:
        at = self.starts[number].group, self.starts[number].clusters
        if result.beats(self.best.get(at)):
            self.best[at] = result

    def arrays(self) -> Arrays:
        return state_of_best(self.best)

    def how_far(self) -> HowFar:
        count = sum(start.count for start, was in zip(self.starts, self.done, strict=True) if was)
        total = sum(start.count for start in self.starts)
        return float(count), float(total), f"{self.what} {count}/{total}"


def put_together(found: Sequence[Found], parts: Sequence[Ints], w: Array | None) -> Clustering:
    """One clustering of all rows from those of the groups."""
    n = sum(len(rows) for rows in parts)
    labels = np.full(max(n, 1 + max(int(rows.max()) for rows in parts)), -1)
    medoids: list[int] = []
    sizes: list[int] = []
    of_group: list[int] = []
    for g, (one, rows) in enumerate(zip(found, parts, strict=True)):
        k = len(one.medoids)
        size = np.bincount(one.labels, weights=None if w is None else w[rows], minlength=k)
        order = np.lexsort((one.medoids, -size))
        labels[rows] = len(medoids) + np.argsort(order)[one.labels]
        medoids += list(rows[one.medoids[order]])
        sizes += list(np.bincount(one.labels, minlength=k)[order])
        of_group += [g] * k
    loss = float(sum(one.loss for one in found))
    return Clustering(labels, np.array(medoids), np.array(sizes), np.array(of_group), loss)


def state_of_best(best: dict[tuple[int, int], Found]) -> State:
    """As arrays with names."""
    return {f"best/{g}/{k}/{name}": value for (g, k), found in best.items() for name, value in vars(found).items()}


def best_of_state(state: State | None) -> dict[tuple[int, int], Found]:
    """The same back."""
    places = {tuple(name.split("/")[1:3]) for name in state or {} if name.startswith("best/")}
    return {
        (int(g), int(k)): Found(**{name: (state or {})[f"best/{g}/{k}/{name}"] for name in vars_of_found})
        for g, k in places
    }


vars_of_found = ("loss", "restart", "medoids", "labels")


def check_counts(counts: Sequence[int], n: int) -> None:
    """Refuse numbers of clusters that cannot be."""
    bad = [k for k in counts if not 1 <= k <= n]
    if bad:
        raise InputError(f"{bad[0]} clusters of {n} points: there must be from 1 to {n}.")
