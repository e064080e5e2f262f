"""Groups of points that lie near each other."""

from __future__ import annotations

import numpy as np

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
