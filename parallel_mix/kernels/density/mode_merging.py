"""Which ends of ascents are one mode: single linkage over all coordinates.

The outcome is the set of connected components of "closer than the tolerance", so it depends on no order of points or
columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.density.kernel_sums import Array

Pairs = NDArray[np.intp]

MERGE_TOLERANCE = 1e-2
"""Ends closer than this, in bandwidths, are one mode."""

FINER = 100.0
"""So much closer are ends of which one is enough to tell which are one mode."""

HASH = np.int64(-7046029254386353131)
"""An odd number whose powers make one key of the coordinates of a cell."""
EXACT_IN_FLOAT = 2.0**53
"""Whole numbers below this are exact in double precision."""


def merge_ends(ends: Array, tolerance: float = MERGE_TOLERANCE) -> tuple[int, np.ndarray]:
    """The number of modes, and the mode of each end (0..k-1, in order of first appearance); lengths in bandwidths."""
    cells, first, member = _group_close(ends, tolerance)
    # Ends of one cell are linked. Two cells are linked if any two of their ends are.
    links = close_pairs(ends[first], 2.0 * tolerance)
    if len(links):
        gaps = np.linalg.norm(ends[first][links[:, 0]] - ends[first][links[:, 1]], axis=1)
        unsure = gaps > tolerance
        gaps[unsure] = _gaps(ends, member, cells, links[unsure])
        links = links[gaps <= tolerance]
    if cells == len(ends) and not len(links):
        return cells, np.arange(cells)
    labels = _components(cells, links)[member]
    _, start, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(start), dtype=np.intp)
    rank[np.argsort(start)] = np.arange(len(start))
    return len(start), rank[codes]


def highest_ends(member: np.ndarray, log_density: Array) -> np.ndarray:
    """The end of each group where the density is highest; of equals the first."""
    order = np.lexsort((np.arange(len(member)), -log_density, member))
    _, first = np.unique(member[order], return_index=True)
    return order[first]


def thinned(ends: Array, log_density: Array) -> tuple[np.ndarray, np.ndarray]:
    """Of ends that all but coincide the highest: which ends these are, and which of them stands for each end.

    They lie in one cell, a two-hundredth of the tolerance across. So `merge_ends` makes of those that stay what it
    makes of all, but where a gap differs from the tolerance by less than a hundredth of it.
    """
    _, _, member = _group_close(ends, MERGE_TOLERANCE / FINER)
    return highest_ends(member, log_density), member


def close_pairs(points: Array, radius: float) -> Pairs:
    """Pairs of points within the radius, by a sweep along a direction in which distinct points differ.

    Pairs that are close along it are compared along another direction, and those close along both in all coordinates.
    (SciPy's tree would do it too; its import takes longer than a hundred sweeps over ten thousand modes.)
    """
    direction = np.sqrt(np.arange(2.0, 2.0 + points.shape[1]))
    direction /= np.linalg.norm(direction)
    along, across = points @ direction, points @ (direction * (-1.0) ** np.arange(points.shape[1]))
    order = np.argsort(along, kind="stable")
    along, across = along[order], across[order]
    close = [np.zeros((0, 2), dtype=np.intp)]
    here = np.arange(len(points))
    for shift in range(1, len(points)):
        here = here[here + shift < len(points)]
        here = here[along[here + shift] - along[here] <= radius]
        if not here.size:
            break
        near = here[np.abs(across[here + shift] - across[here]) <= radius]
        pairs = np.column_stack([order[near], order[near + shift]])
        gaps = points[pairs[:, 0]] - points[pairs[:, 1]]
        close.append(pairs[np.einsum("ij,ij->i", gaps, gaps) <= radius**2])
    return np.concatenate(close)


def _group_close(ends: Array, tolerance: float) -> tuple[int, np.ndarray, np.ndarray]:
    """Group ends into cells half a tolerance across, surely linked: how many, one end of each, each end's cell."""
    side = tolerance / (2.0 * np.sqrt(ends.shape[1]))
    grid = np.floor((ends - ends.min(axis=0)) / side)
    if grid.max() < EXACT_IN_FLOAT:  # one number for each cell: ten times faster than to compare all coordinates
        keys = grid.astype(np.int64) @ np.multiply.accumulate(np.full(grid.shape[1], HASH))
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        if np.array_equal(grid[first][member], grid):
            return len(first), first, member
    _, first, member = np.unique(grid, axis=0, return_index=True, return_inverse=True)
    return len(first), first, member.ravel()


def _gaps(ends: Array, member: np.ndarray, cells: int, pairs: Pairs) -> Array:
    """The smallest distance between the ends of each pair of cells."""
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(cells + 1))
    closest = np.empty(len(pairs))
    for k, (a, b) in enumerate(pairs):
        one, other = (ends[order[starts[c] : starts[c + 1]]] for c in (a, b))
        squares = ((point - other) ** 2 for point in one) if len(one) < len(other) else ((p - one) ** 2 for p in other)
        closest[k] = np.sqrt(min(square.sum(axis=1).min() for square in squares))
    return closest


def _components(count: int, links: Pairs) -> np.ndarray:
    """The connected component of each cell, named by its first cell."""
    name = np.arange(count)
    while True:
        one, other = name[links[:, 0]], name[links[:, 1]]
        if np.array_equal(one, other):
            return name
        np.minimum.at(name, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(shorter := name[name], name):
            name = shorter
