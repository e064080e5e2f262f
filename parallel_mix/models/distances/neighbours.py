"""The k nearest neighbours of each row: a task compares a stripe of rows with all others."""

from __future__ import annotations

from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.core.run import QuietRun, Run, State
from parallel_mix.models.core.tasks import Arrays, MapOfRows
from parallel_mix.models.distances.tile_layout import Layout
from parallel_mix.models.distances.tiles import Pairs, PairsRecipe, measured

Nearest = tuple[np.ndarray, Array]
"""Indices (m, k) and distances (m, k) of neighbours, by rising distance, of equal ones the lowest index first."""


def nearest_of_stripe(pairs: Pairs, stripe: tuple[int, int], k: int, width: int) -> Nearest:
    """The k nearest old things of the rows of a stripe, by tiles `width` columns wide; no row is its own neighbour."""
    a, b = stripe
    n = len(pairs.old)
    indices, distances = np.zeros((b - a, 0), dtype=np.int64), np.zeros((b - a, 0))
    for c in range(0, n, width):
        d = min(c + width, n)
        D = pairs.tile((a, b, c, d))
        if pairs.own:
            itself = np.arange(max(a, c), min(b, d))
            D[itself - a, itself - c] = np.inf
        few = lowest(D, k)
        indices = np.concatenate([indices, few + c], axis=1)
        distances = np.concatenate([distances, np.take_along_axis(D, few, axis=1)], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        indices, distances = np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    return indices, distances


def lowest(D: Array, k: int) -> np.ndarray:
    """The columns of the k lowest entries of each row, columns in rising order; of equal entries the first count."""
    if k >= D.shape[1]:
        return np.broadcast_to(np.arange(D.shape[1]), D.shape)
    limit = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    below, equal = limit > D, limit == D
    wanted = k - below.sum(axis=1, keepdims=True)
    chosen = below | (equal & (np.cumsum(equal, axis=1) <= wanted))
    return np.nonzero(chosen)[1].reshape(len(D), k)


def find_neighbours(recipe: PairsRecipe, k: int, backend: Backend, run: Run | None = None) -> Nearest:
    """The k nearest old things of each new one; without new things, of each old one among the others."""
    run = run or QuietRun()
    n, m = recipe.shape
    state = run.restored()
    backend.share(recipe)
    if state is None:
        layout = Layout.of_neighbours((n, m), recipe.metric.block, measured(backend))
    else:
        layout = Layout.from_numbers(state["layout"])
    stripes = MapOfStripes(layout, n, k, state)
    stripes.work_off(backend, run, partial(nearest_of_stripe, k=k, width=layout.width))
    return stripes.outputs["indices"], stripes.outputs["distances"]


class MapOfStripes(MapOfRows):
    """Tasks that are stripes of rows; kept are the nearest neighbours of each row, and the layout."""

    def __init__(self, layout: Layout, rows: int, k: int, state: State | None) -> None:
        outputs = {"indices": np.zeros((rows, k), dtype=np.int64), "distances": np.zeros((rows, k))}
        super().__init__(rows, layout.height, f"{k} nearest, stripe", state, **outputs)
        self.layout = layout

    def arrays(self) -> Arrays:
        """The layout, and indices and distances of the neighbours so far."""
        return {"layout": self.layout.as_numbers(), **super().arrays()}
