"""The k nearest of all, for each row: a stripe of rows at a time against everything."""

from __future__ import annotations

from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import TaskError
from parallel_mix.kernels.density import Array
from parallel_mix.models.pairwise import Pairs, PairsRecipe
from parallel_mix.models.run import HowFar, QuietRun, Run, State

Nearest = tuple[np.ndarray, Array]
"""Indices (m, k) and distances (m, k), by rising distance, of equals the lowest index."""


def nearest_of_stripe(pairs: Pairs, stripe: tuple[int, int], k: int) -> Nearest:
    """The k nearest of some rows; a row is not its own neighbour."""
    a, b = stripe
    n, side = len(pairs.old), pairs.metric.side
    indices, distances = np.zeros((b - a, 0), dtype=np.int64), np.zeros((b - a, 0))
    for c in range(0, n, side):
        d = min(c + side, n)
        own = pairs.own and a == c
        D = pairs.metric.tile(pairs.new, slice(a, b), pairs.old, slice(c, d), own)
        if own:
            np.fill_diagonal(D, np.inf)
        few = lowest(D, k)
        indices = np.concatenate([indices, few + c], axis=1)
        distances = np.concatenate([distances, np.take_along_axis(D, few, axis=1)], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        indices, distances = np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
    return indices, distances


def lowest(D: Array, k: int) -> np.ndarray:
    """Columns of the k lowest entries of each row, in rising order; of equal ones the first."""
    if k >= D.shape[1]:
        return np.broadcast_to(np.arange(D.shape[1]), D.shape)
    limit = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    below, equal = limit > D, limit == D
    wanted = k - below.sum(axis=1, keepdims=True)
    chosen = below | (equal & (np.cumsum(equal, axis=1) <= wanted))
    return np.nonzero(chosen)[1].reshape(len(D), k)


def find_neighbours(recipe: PairsRecipe, k: int, backend: Backend, run: Run | None = None) -> Nearest:
    """The k nearest old things of each (new) one."""
    run = run or QuietRun()
    n, side = len(recipe.new or recipe.old), recipe.metric.side
    stripes = [(a, min(a + side, n)) for a in range(0, n, side)]
    state = run.restored() or {}
    done = np.array(state.get("stripes", np.zeros(len(stripes))), dtype=bool)
    indices = np.array(state.get("indices", np.zeros((n, k))), dtype=np.int64)
    distances = np.array(state.get("distances", np.zeros((n, k))), dtype=np.float64)
    left = np.flatnonzero(~done)
    backend.share(recipe)

    def how_far() -> HowFar:
        return float(done.sum()), float(len(stripes)), f"{k} nearest, stripe {int(done.sum())}/{len(stripes)}"

    def ledger() -> State:
        return {"done": int(done.sum()), "stripes": done, "indices": indices, "distances": distances}

    try:
        for number, found in backend.map(partial(nearest_of_stripe, k=k), [stripes[s] for s in left]):
            span = slice(*stripes[left[number]])
            indices[span], distances[span] = found
            done[left[number]] = True
            run.report(how_far)
            run.offer(ledger)
    except TaskError as error:
        raise error.renumbered(int((~done[: left[error.failure.task]]).sum())) from None
    return indices, distances
