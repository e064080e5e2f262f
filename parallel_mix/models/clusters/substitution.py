"""Vertex substitution, whatever the size of the data: which variant is used, and why.

All variants make the same exchanges, and so come to the same medoids and losses bit by bit. They differ in where the
distances are and in how a candidate is judged; the figures are from `benchmarks/substitution_ablation.py`:

| points | variant | why |
|---|---|---|
| rows spread over workers, as no worker can hold the matrix | `sharded_substitution` | memory; it takes longer |
| up to `MOST_POINTS` and `MOST_MEDOIDS` | `table_substitution` | the search takes 2.2 to 4.4 times as long |
| all others | `vertex_substitution` (search) | the table takes 1.1 to 2.9 times as long, and 8 bytes a distance |

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
