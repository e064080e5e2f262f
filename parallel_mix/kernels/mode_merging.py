"""Which ends of ascents are one mode: single linkage over all coordinates.

The outcome is the set of connected components of "closer than the tolerance", so it depends on no order of points or
columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.density import Array

Pairs = NDArray[np.intp]

MERGE_TOLERANCE = 1e-2
"""Ends closer than this, in bandwidths, are one mode."""


SEARCHED_COLUMNS = 6


def merge_ends(ends: Array, tolerance: float = MERGE_TOLERANCE) -> tuple[int, np.ndarray]:
    """Number of modes and each end's mode (0..k-1, in order of first appearance)."""
    cells, first, member = _group_close(ends, tolerance)
    # Ends of one cell are linked. Two cells are linked if any two of their ends are.
    links = _close_pairs(ends[first], 2.0 * tolerance)
    if len(links):
        links = links[_gaps(ends, member, cells, links) <= tolerance]
    return _components(member, cells, links)


def _group_close(ends: Array, tolerance: float) -> tuple[int, np.ndarray, np.ndarray]:
    """Group ends into cells half a tolerance across, surely linked: how many, one end of each, each end's cell."""
    side = tolerance / (2.0 * np.sqrt(ends.shape[1]))
    grid = np.floor((ends - ends.min(axis=0)) / side) + 0.0
    keys = np.ascontiguousarray(grid).view(np.dtype((np.void, grid.itemsize * grid.shape[1]))).ravel()
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    return len(first), first, member


def _close_pairs(points: Array, radius: float) -> Pairs:
    """Pairs of points within the radius: looked for in the widest columns, then checked in all."""
    from scipy.spatial import cKDTree

    widest = np.argsort(np.ptp(points, axis=0))[-SEARCHED_COLUMNS:]
    pairs: Pairs = cKDTree(points[:, widest]).query_pairs(radius, output_type="ndarray")
    gaps = points[pairs[:, 0]] - points[pairs[:, 1]]
    kept: Pairs = pairs[np.einsum("ij,ij->i", gaps, gaps) <= radius**2]
    return kept


def _gaps(ends: Array, member: np.ndarray, cells: int, pairs: np.ndarray) -> Array:
    """Smallest distance between the ends of each pair of cells."""
    from scipy.spatial import cKDTree

    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(cells + 1))
    closest = np.empty(len(pairs))
    for k, (a, b) in enumerate(pairs):
        one, other = (ends[order[starts[c] : starts[c + 1]]] for c in (a, b))
        closest[k] = cKDTree(one).query(other, k=1)[0].min()
    return closest


def _components(member: np.ndarray, cells: int, links: np.ndarray) -> tuple[int, np.ndarray]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(cells, cells))
    _, component = connected_components(graph, directed=False)
    labels = component[member]
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return len(first), rank[codes]
