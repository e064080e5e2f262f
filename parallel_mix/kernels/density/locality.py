"""Groups of points that lie near each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array


def groups_of_nearby(points: Array, most: int) -> list[np.ndarray]:
    """The numbers of the points, in groups of at most `most` that lie near each other.

    A group that is too large is halved across its widest column.
    """
    groups: list[np.ndarray] = []
    stack = [np.arange(len(points))]
    while stack:
        group = stack.pop()
        if len(group) <= most:
            groups.append(group)
            continue
        members = points[group]
        column = members[:, np.argmax(members.max(axis=0) - members.min(axis=0))]
        half = most * max(1, round(len(group) / most / 2))
        middle = np.partition(column, half)[half]
        low = column < middle
        low[np.flatnonzero(column == middle)[: half - np.count_nonzero(low)]] = True
        if np.isnan(middle):
            low[:half] = True
        stack += [group[~low], group[low]]
    return groups


HASH = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose powers make one key of several numbers."""
MOST_CELLS = 4_194_304
"""Cells that points are sorted into, at most."""


def order_by_cell(points: Array, side: float) -> np.ndarray:
    """The numbers of the points, those of one cell of this side (or a larger one) together, in their order."""
    low, high = points.min(axis=0), points.max(axis=0)
    while np.prod(np.floor((high - low) / side) + 1.0) > MOST_CELLS:
        side *= 2.0
    counts = np.floor((high - low) / side).astype(np.int64) + 1
    cells = np.zeros(len(points), dtype=np.int64)
    for k in range(points.shape[1]):
        cells *= counts[k]
        cells += np.floor((points[:, k] - low[k]) / side).astype(np.int64)
    order: np.ndarray = sorted_by_count(cells, int(np.prod(counts)))
    return order


@compiled
def sorted_by_count(keys: Any, count: int) -> Any:
    """The numbers of the keys 0..count - 1, sorted by key; those of equal keys in their order."""
    starts = np.zeros(count + 1, np.int64)
    for key in keys:
        starts[key + 1] += 1
    for k in range(count):
        starts[k + 1] += starts[k]
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[starts[keys[i]]] = i
        starts[keys[i]] += 1
    return order
