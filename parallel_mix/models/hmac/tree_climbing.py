"""Many ascents on all workers, where the density is summed over leaves of nearby rows.

Each worker puts all rows into leaves. What a block of start points gives depends on these and the rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.leaves import LEAF, Leaves, Tree, leaves_of, tree_of
from parallel_mix.kernels.density.locality import groups_of_nearby
from parallel_mix.kernels.density.tree_climb import ascend_on_tree
from parallel_mix.kernels.density.tree_climb import warm_up as warm_up
from parallel_mix.models.core.tasks import Arrays
from parallel_mix.models.hmac.climb_map import Share
from parallel_mix.models.hmac.mode_tree import FEWER_DIGITS
from parallel_mix.models.hmac.points import Points


@dataclass(frozen=True)
class TreeDensity:
    """The density as a sum over leaves."""

    smallest: float
    digits: int = FEWER_DIGITS
    share: Share = Share(blocks=64, fewest=128, most=4_096)
    counts_pairs: bool = True

    def order(self, starts: Array, sigma: float) -> np.ndarray:
        """The numbers of some start points, leaf after leaf."""
        return np.concatenate(groups_of_nearby(starts, LEAF))

    def order_of_rows(self, points: Points) -> np.ndarray:
        """The numbers of all rows, leaf after leaf."""
        order: np.ndarray = tree_at(points).order
        return order

    def climb(self, points: Points, starts: Array, log_density: Array, sigma: float) -> Arrays:
        """Climb to the ends."""
        ascents = ascend_on_tree(starts / sigma, log_density, leaves_at(points, sigma))
        return {
            "points": ascents.points,
            "log_density": ascents.log_density,
            "iterations": ascents.iterations,
            "member": np.arange(len(starts), dtype=np.int32),
            "unsure": np.flatnonzero(ascents.unsure),
            "work": ascents.work,
        }


def tree_at(points: Points) -> Tree:
    """All rows in leaves; made once."""
    tree: Tree = points.kept(("tree",), lambda: tree_of(points.all_rows(), points.log_weights))
    return tree


def leaves_at(points: Points, sigma: float) -> Leaves:
    """The kernels of all rows at a bandwidth; those of the last one are kept."""
    leaves: Leaves = points.kept(("leaves", sigma), lambda: leaves_of(tree_at(points), sigma))
    return leaves
