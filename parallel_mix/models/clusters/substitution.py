"""Vertex substitution, whatever the size of the data: which variant is used, and why.

All variants make the same exchanges, and so come to the same medoids and losses bit by bit. They differ in where the
distances are and in how a candidate is judged; the figures are from `benchmarks/substitution_ablation.py`:

- Rows spread over workers, as none can hold the matrix (`cluster --shard`): `sharded_substitution`, for its memory; on
  one worker it takes 2.6 to 3.8 times as long as the search.
- Up to `MOST_POINTS` points and `MOST_MEDOIDS` medoids: `table_substitution`; the search takes 2.5 to 4.9 times as
  long.
- All others: the search of `vertex_substitution`; the table has 8 bytes a distance, and of 7,000 points takes 1.7 times
  as long (of 2,000 as long or a little less).

Models over classes of few points have all of a class's work in one compiled call (`mixtures.few_classes`), which uses
the table, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parallel_mix.kernels.medoids.table_substitution import fits_table, substitute_by_table
from parallel_mix.kernels.medoids.vertex_substitution import substitute_by_search
from parallel_mix.models.clusters.sharded_substitution import SpreadRows, substitute_in_shards

if TYPE_CHECKING:
    from parallel_mix.models.clusters.groups import Group

Ints = np.ndarray


def substitute(points: Group | SpreadRows, medoids: Ints) -> Ints:
    """Exchange the medoids of some starts (in place, one start a row) until that brings nothing.

    Returned are the losses of the starts, in steps. There are 2 medoids or more.
    """
    if isinstance(points, SpreadRows):
        return substitute_in_shards(points, medoids)
    if fits_table(len(points.w), medoids.shape[1]):
        return np.asarray(substitute_by_table(points.table, medoids))
    return np.asarray(substitute_by_search(points.E, points.w, medoids, points.steps))
