"""Rows by the nearest of some means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.models.core.run import Run
from parallel_mix.models.core.sources import Array, RowSource
from parallel_mix.models.core.tasks import MapOfRows


@dataclass(frozen=True)
class Means:
    """What a worker needs: the rows, the means, and how often to look (a toy has too little to do)."""

    rows: RowSource
    means: Array
    repeat: int = 1

    def load(self) -> Means:
        return self


def nearest(context: Means, block: tuple[int, int]) -> tuple[Array, Array]:
    """The mean nearest to each row of a block, and how far it is."""
    X = context.rows.rows(*block)
    for _ in range(context.repeat):
        distances = np.sqrt(((X[:, None] - context.means) ** 2).sum(axis=2))
    return distances.argmin(axis=1), distances.min(axis=1)


def tell_rows(context: Means, backend: Backend, run: Run) -> dict[str, Any]:
    """The mean nearest to each row (`labels`), and how far it is (`distances`), by blocks of two rows."""
    n = context.rows.shape[0]
    backend.share(context)
    blocks = MapOfRows(n, 2, "block", run.restored(), labels=np.zeros(n, dtype=np.int64), distances=np.zeros(n))
    blocks.work_off(backend, run, nearest)
    return blocks.outputs
