"""Many ascents on all workers, where the density is read from a field (one to three columns).

The waves of the density are summed over blocks of rows, one sum for all; each worker makes the field from them. Where
the density is too low to be read from it, sums over leaves of nearby rows take over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.field import Field, Grid, Spectrum, field_of, spectrum, wider
from parallel_mix.kernels.density.field_climb import ascend_on_field
from parallel_mix.kernels.density.field_climb import warm_up as warm_up
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.locality import order_by_cell
from parallel_mix.kernels.density.mode_merging import thinned
from parallel_mix.kernels.density.tree_climb import ascend_on_tree
from parallel_mix.models.core.sources import Block, blocks_of
from parallel_mix.models.core.tasks import Arrays
from parallel_mix.models.hmac.climb_map import Share
from parallel_mix.models.hmac.mode_tree import FEWER_DIGITS
from parallel_mix.models.hmac.points import Points
from parallel_mix.models.hmac.tree_climbing import leaves_at

ROWS_A_SUM = 262_144
"""Rows whose waves are summed together, at least; there are at most 64 such blocks."""


@dataclass(frozen=True)
class FieldDensity:
    """What a worker makes fields from: the waves of the density at the smallest bandwidth."""

    sums: Spectrum
    extent: Array  # (d) of the rows, in the coordinates of the analysis
    smallest: float
    digits: int = FEWER_DIGITS
    share: Share = Share(blocks=16, fewest=2_048, most=65_536)
    counts_pairs: bool = False

    @classmethod
    def of(cls, backend: Backend, rows: int, extent: Array, smallest: float) -> FieldDensity:
        """The waves, summed over the rows by all workers, which share the points."""
        step = max(ROWS_A_SUM, -(-rows // 64))
        blocks = blocks_of(rows, step)
        sums = backend.map_reduce(partial(waves_of_block, extent=extent, smallest=smallest), blocks, np.add)
        return cls(sums, extent, smallest)

    def order(self, starts: Array, sigma: float) -> np.ndarray:
        """The numbers of some start points, those of one cell together."""
        return order_by_cell(starts, sigma)

    def order_of_rows(self, points: Points) -> np.ndarray:
        """The numbers of all rows, those of one cell together."""
        order: np.ndarray = points.kept(("order", self.smallest), lambda: self.order(points.all_rows(), self.smallest))
        return order

    def field(self, points: Points, sigma: float) -> Field:
        """The field at a bandwidth: from the one whose bandwidth is a power of two times the smallest, next below."""
        power = max(math.floor(math.log2(sigma / self.smallest) + 1e-9), 0)
        below = self._of_power(points, power)
        ratio = sigma / (self.smallest * 2.0**power)
        if ratio == 1.0:
            return below
        name = ("field", self.smallest, sigma)
        made: Field = points.kept(name, lambda: wider(below, self.extent / sigma, ratio))
        return made

    def _of_power(self, points: Points, power: int) -> Field:
        """The field at 2^power times the smallest bandwidth, from that of the power below, which is at hand mostly."""

        def make() -> Field:
            """The field itself."""
            if not power:
                return field_of(self.sums, Grid.over(self.extent / self.smallest))
            return wider(self._of_power(points, power - 1), self.extent / (self.smallest * 2.0**power), 2.0)

        made: Field = points.kept(("power", self.smallest, power), make)
        return made

    def climb(self, points: Points, starts: Array, log_density: Array, sigma: float) -> Arrays:
        """Climb to the ends: these, and which of them each start comes to."""
        ascents, owner, lost = ascend_on_field(starts / sigma, log_density, self.field(points, sigma))
        if (low := np.flatnonzero(lost)).size and points.whole:
            ended = ascend_on_tree(ascents.points[low], log_density[low], leaves_at(points, sigma))
            ended.iterations[:] += ascents.iterations[low]
            ascents.put(low, ended)
            lost[:] = False
        ends, member = np.unique(owner, return_inverse=True)
        stay, cell = thinned(ascents.points[ends], np.where(lost[ends], -np.inf, ascents.log_density[ends]))
        longest = np.zeros(len(stay), dtype=np.int32)
        np.maximum.at(longest, cell, ascents.iterations[ends])
        ends = ends[stay]
        return {
            "points": ascents.points[ends],
            "log_density": ascents.log_density[ends],
            "iterations": longest,
            "member": cell[member].astype(np.min_scalar_type(len(ends))),
            "unsure": np.flatnonzero(ascents.unsure),
            "lost": lost[ends],
        }


def waves_of_block(points: Points, block: Block, extent: Array, smallest: float) -> Spectrum:
    """The waves of some rows."""
    rows = points.rows_of(*block) / smallest
    return spectrum(rows, np.exp(points.log_weights_of(*block)), Grid.over(extent / smallest))
