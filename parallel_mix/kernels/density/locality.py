"""Points cut into groups of neighbours."""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array


def groups_of_nearby(points: Array, most: int) -> list[np.ndarray]:
    """Indices of the points in groups of at most `most`, halved across the widest column until they are small."""
    groups: list[np.ndarray] = []
    stack = [np.arange(len(points))]
    while stack:
        group = stack.pop()
        if len(group) <= most:
            groups.append(group)
            continue
        part = points[group]
        column = part[:, np.argmax(part.max(axis=0) - part.min(axis=0))]
        half = most * max(1, round(len(group) / most / 2))
        middle = np.partition(column, half)[half]
        low = column < middle
        low[np.flatnonzero(column == middle)[: half - np.count_nonzero(low)]] = True
        if np.isnan(middle):
            low[:half] = True
        stack += [group[~low], group[low]]
    return groups
