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
    joined,
    nearest_of_block,
    number_of_blocks,
)
from parallel_mix.models.clusters.substitution import substitute
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import MatrixSource
from parallel_mix.models.core.tasks import Arrays, ResumableMap

STARTS_A_TASK = 2
"""How many starts make a task: they share what they read of the matrix, which two cores read at the same time."""
SINGLE_STARTS = 4
"""How many of the last starts are a task each, so that all workers end at about the same time."""
Ints = np.ndarray


@dataclass(frozen=True)
class GroupsRecipe:
    """What a worker makes `Groups` of: where the distances are, the rows of each group, and the weights of all rows."""

    matrix: MatrixSource
    groups: tuple[Ints, ...]
    w: Array | None

    def load(self) -> Groups:
        """The groups, as a worker holds them."""
        return Groups(self)


class Groups:
    """The distances within one group at a time, candidates in rows: entry (j, i) is the distance of i to j."""

    def __init__(self, recipe: GroupsRecipe) -> None:
        self._recipe = recipe
        self._number = -1
        if len(recipe.groups) == 1:  # before any process is forked
            self.within(0)

    def within(self, number: int) -> Group:
        """The distances within the group of this number; the last group asked for is kept."""
        if number != self._number:
            rows = self._recipe.groups[number]
            D = np.ascontiguousarray(self._recipe.matrix.among(rows, rows))
            E = D if is_symmetric(D) else np.ascontiguousarray(D.T)
            w = np.ones(len(rows)) if self._recipe.w is None else self._recipe.w[rows]
            self._group, self._number = Group(E, w), number
        return self._group


@dataclass(frozen=True)
class Starts:
    """Some starts of one clustering, as a task has them: `count` of them, counted from the start `first`."""

    group: int
    clusters: int
    first: int
    count: int = 1


@dataclass(frozen=True)
class BestStart:
    """The best start of a task: its loss, its number, its medoids in rising order, and the label of each point.

    Medoids are places within the group. A checkpoint has these names.
    """

    loss: float
    restart: int
    medoids: Ints
    labels: Ints

    def beats(self, other: BestStart | None) -> bool:
        """Whether this start has the smaller loss, or with an equal loss came earlier."""
        return other is None or (self.loss, self.restart) < (other.loss, other.restart)


def cluster_once(groups: Groups, starts: Starts, method: str, seed: int) -> BestStart:
    """The best of a task's starts (methods without random starts have one), with medoids and labels."""
    group = groups.within(starts.group)
    places = first_medoids(len(group.w), starts, seed) if method == "vsh" else None
    steps, number, medoids = best_of_starts(group, method, starts.clusters, places)
    return BestStart(steps / group.steps, starts.first + number, medoids, labels_by(group, method, medoids))


def first_medoids(n: int, starts: Starts, seed: int) -> Ints:
    """The medoids that these starts begin with: a row for each start, places among the n points of the group."""
    return random_starts(n, starts.clusters, [seed, starts.group, starts.clusters], starts.first, starts.count)


def cluster_in_shards(backend: Backend, n: int, starts: Starts, seed: int, steps: float) -> BestStart:
    """The best of some starts, where all workers together hold the matrix and judge each exchange (vsh of all rows).

    `steps` is how many whole steps make a distance of 1; the shards are shared with the workers already.
    """
    medoids_of_starts = first_medoids(n, starts, seed)
    losses = substitute(SpreadRows(backend, n), medoids_of_starts)
    number = int(losses.argmin())
    loss, medoids = int(losses[number]), np.sort(medoids_of_starts[number])
    labels_of_block = backend.map_reduce(partial(nearest_of_block, medoids=medoids), range(number_of_blocks(n)), joined)
    labels = np.concatenate([labels_of_block[k] for k in range(len(labels_of_block))])
    labels[medoids] = np.arange(len(medoids))
    return BestStart(loss / steps, starts.first + number, medoids, labels)


@dataclass(frozen=True)
class Clustering:
    """A clustering of all rows, group after group: clusters by falling size (weight, where rows have one), then medoid.

    The loss is in the unit of the distances.
    """

    labels: Ints  # (n)
    medoids: Ints  # (k) rows
    sizes: Ints  # (k)
    groups: Ints  # (k) group of each cluster
    loss: float


def shared_starts(tries: int) -> list[tuple[int, int]]:
    """The first start of each task, and how many it has: two, but the last starts are a task each."""
    shared = max(tries - SINGLE_STARTS, 0) // STARTS_A_TASK * STARTS_A_TASK
    return [(first, STARTS_A_TASK) for first in range(0, shared, STARTS_A_TASK)] + [
        (first, 1) for first in range(shared, tries)
    ]


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
    """A clustering for each number of clusters in `counts`, of all rows or of each group of rows by itself.

    Where `largest`, the largest distance, is given, no worker holds the whole matrix: its rows are spread over all
    workers (vsh of all rows, 2 clusters or more), and the starts follow each other.
    """
    run = run or QuietRun()
    if method == "vsh" and restarts < 1:
        raise InputError(f"There must be 1 restart or more, not {restarts}.")
    if largest is not None and (method != "vsh" or groups is not None or min(counts) < 2):
        raise InputError("A matrix is spread over workers for vsh of all rows, into two clusters or more.")
    groups_of_rows = tuple(groups) if groups is not None else (np.arange(matrix.shape[0]),)
    tries = restarts if method == "vsh" else 1
    starts = [
        Starts(g, k, first, count)
        for g, rows in enumerate(groups_of_rows)
        for k in sorted({min(count, len(rows)) for count in counts}, reverse=True)  # the longest first
        for first, count in shared_starts(tries if k > 1 else 1)
    ]
    tasks = MapOfStarts(starts, method, run.restored())
    if largest is None:
        backend.share(GroupsRecipe(matrix, groups_of_rows, w))
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
    return {
        k: put_together([best[g, min(k, len(rows))] for g, rows in enumerate(groups_of_rows)], groups_of_rows, w)
        for k in counts
    }


class MapOfStarts(ResumableMap):
    """Tasks that are starts; of their results the best is kept for each group and number of clusters."""

    def __init__(self, starts: Sequence[Starts], method: str, state: State | None) -> None:
        super().__init__(starts, f"{method}, start", state)
        self.starts = starts
        self.best = best_of_state(state)

    def keep(self, number: int, result: BestStart) -> None:
        """Keep the best start of a task, where it beats what is kept for its group and number of clusters."""
        at = self.starts[number].group, self.starts[number].clusters
        if result.beats(self.best.get(at)):
            self.best[at] = result

    def arrays(self) -> Arrays:
        """The best starts so far, as arrays with names."""
        return state_of_best(self.best)

    def how_far(self) -> HowFar:
        """How many starts are done, of how many, and their name."""
        count = sum(start.count for start, was in zip(self.starts, self.done, strict=True) if was)
        total = sum(start.count for start in self.starts)
        return float(count), float(total), f"{self.what} {count}/{total}"


def put_together(best: Sequence[BestStart], groups_of_rows: Sequence[Ints], w: Array | None) -> Clustering:
    """One clustering of all rows, from the best start of each group."""
    n = sum(len(rows) for rows in groups_of_rows)
    labels = np.full(max(n, 1 + max(int(rows.max()) for rows in groups_of_rows)), -1)
    medoids: list[int] = []
    sizes: list[int] = []
    of_group: list[int] = []
    for g, (one, rows) in enumerate(zip(best, groups_of_rows, strict=True)):
        k = len(one.medoids)
        mass = np.bincount(one.labels, weights=None if w is None else w[rows], minlength=k)
        order = np.lexsort((one.medoids, -mass))
        labels[rows] = len(medoids) + np.argsort(order)[one.labels]
        medoids += list(rows[one.medoids[order]])
        sizes += list(np.bincount(one.labels, minlength=k)[order])
        of_group += [g] * k
    loss = float(sum(one.loss for one in best))
    return Clustering(labels, np.array(medoids), np.array(sizes), np.array(of_group), loss)


def state_of_best(best: dict[tuple[int, int], BestStart]) -> State:
    """The best start of each group and number of clusters, as arrays with names such as best/0/4/medoids."""
    return {f"best/{g}/{k}/{name}": value for (g, k), one in best.items() for name, value in vars(one).items()}


def best_of_state(state: State | None) -> dict[tuple[int, int], BestStart]:
    """The best starts that `state_of_best` made arrays of, by group and number of clusters; none without a state."""
    places = {tuple(name.split("/")[1:3]) for name in state or {} if name.startswith("best/")}
    return {
        (int(g), int(k)): BestStart(**{name: (state or {})[f"best/{g}/{k}/{name}"] for name in BEST_START_FIELDS})
        for g, k in places
    }


BEST_START_FIELDS = ("loss", "restart", "medoids", "labels")
"""The names of the fields of a `BestStart`, as a checkpoint has them."""


def check_counts(counts: Sequence[int], n: int) -> None:
    """Refuse numbers of clusters below 1 or above n, the number of points."""
    bad = [k for k in counts if not 1 <= k <= n]
    if bad:
        raise InputError(f"{bad[0]} clusters of {n} points: there must be from 1 to {n}.")
