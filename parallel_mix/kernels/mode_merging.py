"""Which ends of ascents are one mode: single linkage over all coordinates.

The outcome is the set of connected components of "closer than the tolerance", so it depends on no order of points or
columns.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density import Array

MERGE_TOLERANCE = 1e-2
"""Ends closer than this, in bandwidths, are one mode."""


def merge_ends(ends: Array, tolerance: float = MERGE_TOLERANCE) -> tuple[int, np.ndarray]:
    """Number of modes and each end's mode (0..k-1, in order of first appearance)."""
    from scipy.spatial import cKDTree

    cells, member = _group_close(ends, tolerance)
    # Ends of one cell are linked. Two cells are linked if any two of their ends are.
    first = np.unique(member, return_index=True)[1]
    tree = cKDTree(ends[first])
    candidates = tree.query_pairs(2.0 * tolerance, output_type="ndarray")
    if len(candidates) and len(first) < len(ends):
        candidates = candidates[_closest_pairs(ends, member, cells, candidates) <= tolerance]
    elif len(candidates):
        gaps = np.linalg.norm(ends[first][candidates[:, 0]] - ends[first][candidates[:, 1]], axis=1)
        candidates = candidates[gaps <= tolerance]
    return _components(member, cells, candidates)


def _group_close(ends: Array, tolerance: float) -> tuple[int, np.ndarray]:
    """Group ends into cells half a tolerance across, which are surely linked."""
    side = tolerance / (2.0 * np.sqrt(ends.shape[1]))
    grid = np.floor((ends - ends.min(axis=0)) / side)
    member = np.zeros(len(ends), dtype=np.intp)
    for column in grid.T:
        _, codes = np.unique(column, return_inverse=True)
        _, member = np.unique(member * (codes.max() + 1) + codes, return_inverse=True)
    return int(member.max()) + 1, member


def _closest_pairs(ends: Array, member: np.ndarray, cells: int, pairs: np.ndarray) -> Array:
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
