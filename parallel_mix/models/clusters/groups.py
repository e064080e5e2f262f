"""Groups of points of which all distances are known: their medoids from some starts, and their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids import generalized_kmeans
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.kernels.medoids.table_substitution import table_of
from parallel_mix.kernels.medoids.vertex_substitution import (
    assign,
    is_symmetric,
    only_medoid,
    steps_of,
    substitute_by_search,
)
from parallel_mix.kernels.medoids.ward_distances import cut_tree, join_all
from parallel_mix.models.clusters.substitution import substitute

CLUSTERINGS = ("vsh", "gkmeans", "ward")
Ints = np.ndarray


class Group:
    """Distances between some points (E[j, i] of point i to candidate j), and the weights w of these points."""

    def __init__(self, E: Array, w: Array) -> None:
        self.E, self.w = E, w
        self.steps = steps_of(w, float(E.max(initial=0.0)))

    @cached_property
    def table(self) -> Ints:
        """The weighted distances as whole numbers of steps, a row for each candidate."""
        return np.asarray(table_of(self.E, self.w, self.steps))

    @cached_property
    def _joins(self) -> Any:
        """The pairs of clusters that Ward's method joins, in order, and the heights of these joins."""
        return join_all((self.E + self.E.T) / 2.0, self.w)

    def cut(self, k: int) -> Ints:
        """Labels 0..k-1 of the points where Ward's tree is cut into k clusters, numbered by their lowest points."""
        pairs, heights = self._joins
        label: Ints = np.unique(cut_tree(pairs, heights, k), return_inverse=True)[1]
        return label


def random_starts(n: int, k: int, seeds: Sequence[int], first: int, count: int) -> Ints:
    """Random starts: k of n points in rising order, a row for each of `count` starts from number `first` on.

    A start depends on its number and the seeds alone, not on the starts that are drawn with it.
    """
    numbers = np.random.Generator(np.random.PCG64(seeds).advance(first * k)).random((count, k))
    return draw_starts(np.ascontiguousarray(numbers.T), n, k)


def best_of_starts(group: Group, method: str, k: int, starts: Ints | None = None) -> tuple[int, int, Ints]:
    """The least loss, in the group's steps; the first start that has it; and its medoids, places in rising order."""
    E, w, which = group.E, group.w, 0
    medoids = np.zeros(1, dtype=np.int64)
    if method == "ward":
        label = group.cut(k)
        total = generalized_kmeans.totals_within(E, w, label, group.steps)
        medoids = generalized_kmeans.medoids_of(total, label, k)
        loss = total[medoids].sum()
    elif k == 1:
        loss = only_medoid(E, w, medoids, group.steps)
    elif method == "vsh":
        assert starts is not None  # noqa: S101
        losses = substitute(group, starts)
        which = int(losses.argmin())
        loss, medoids = losses[which], starts[which]
    else:
        medoids = generalized_kmeans.k_center(E, w, k, group.steps)
        loss = generalized_kmeans.alternate(E, w, medoids, group.steps)
    return int(loss), which, np.sort(medoids)


def labels_by(group: Group, method: str, medoids: Ints) -> Ints:
    """The cluster of each point, numbered as its medoid."""
    if method == "ward":
        label = group.cut(len(medoids))
        return np.asarray(np.argsort(label[medoids])[label])
    labels, second = np.empty(len(group.w), dtype=np.int64), np.empty(len(group.w), dtype=np.int64)
    assign(np.ascontiguousarray(group.E[medoids].T), medoids, labels, second)
    return labels


def warm_up() -> None:
    """Load compiled code, which takes some tenths of a second: each rank for itself, while all start."""
    for kind in (np.float32, np.float64):
        D = np.ones((4, 4), dtype=kind) - np.eye(4, dtype=kind)
        group, starts = Group(D, np.ones(4)), random_starts(4, 2, [0], 0, 2)
        if is_symmetric(D):
            substitute_by_search(D, group.w, starts.copy(), group.steps)
            labels_by(group, "vsh", best_of_starts(group, "vsh", 2, starts)[2])
