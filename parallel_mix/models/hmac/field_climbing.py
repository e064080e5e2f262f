"""Many ascents on all workers, where the density is read from a field (one to three columns).

The waves of the density are summed over blocks of rows, one sum for all; each worker makes the field from them. Blocks
of start points, nearby ones together, climb wherever there is room. What a block gives depends on its start points and
the field alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.extras import need
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.field import NODES_A_BANDWIDTH, Field, Grid, Spectrum, field_of, spectrum, wider
from parallel_mix.kernels.density.field_climb import ascend_on_field
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.locality import order_by_cell
from parallel_mix.kernels.density.modal_em import ascend
from parallel_mix.models.core.run import HowFar, State
from parallel_mix.models.core.sources import RowSource, blocks_of_rows
from parallel_mix.models.core.tasks import Arrays, ResumableMap, parts_of_state
from parallel_mix.models.hmac.points import Frame, Points

ROWS_FOR_A_FIELD = 10_000
"""From so many rows on the density is read from a field, where it can be."""
MOST_NODES = 33_554_432
"""The most nodes of a field (256 MB)."""
ROWS_A_SUM = 262_144
"""Rows whose waves are summed together, at least; there are at most 64 such blocks."""
STARTS_A_BLOCK = 65_536
"""Start points that climb together, at most."""
FEWEST_A_BLOCK = 2_048
"""Start points that climb together, at least."""
BLOCKS = 16
"""The blocks that a level has, where these bounds allow it."""


def chosen_density(asked: str, approach: int, rows: int, extent: Array, smallest: float) -> str:
    """Where the density of so many rows is to come from, field or exact sums, as far as the user leaves it open."""
    d = len(extent)
    if asked == "exact" or (asked == "auto" and (approach == 1 or rows < ROWS_FOR_A_FIELD)):
        return "exact"
    why = ""
    if d not in NODES_A_BANDWIDTH:
        why = f"A field is for one to three columns, not {d}"
    elif approach == 1:
        why = "Approach 1 is by exact sums"
    elif Grid.over(extent / smallest).size > MOST_NODES:
        size = f"more than {MOST_NODES:,} nodes: the bandwidth is small, or some rows lie far out"
        why = f"At bandwidth {smallest:g} a field would have {size}"
    if asked == "auto":
        return "exact" if why or find_spec("finufft") is None else "field"
    if why:
        raise InputError(f"{why}. Leave out --density field.")
    need("field", "--density field")
    return "field"


def extent_of(source: RowSource, frame: Frame) -> Array:
    """The range of each column in the coordinates of the analysis, whose origin is its middle."""
    blocks = [np.abs(frame.inward(rows)).max(axis=0) for rows in blocks_of_rows(source)]
    extent: Array = 2.0 * np.max(blocks, axis=0)
    return extent


@dataclass(frozen=True)
class Density:
    """What a worker makes fields from: the waves of the density at the smallest bandwidth."""

    sums: Spectrum
    extent: Array  # (d) of the rows, in the coordinates of the analysis
    smallest: float

    @classmethod
    def of(cls, backend: Backend, rows: int, extent: Array, smallest: float) -> Density:
        """The waves, summed over the rows by all workers, which share the points."""
        step = max(ROWS_A_SUM, -(-rows // 64))
        blocks = [(a, min(a + step, rows)) for a in range(0, rows, step)]
        sums = backend.map_reduce(partial(waves_of_block, extent=extent, smallest=smallest), blocks, np.add)
        return cls(sums, extent, smallest)

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


# what a worker runs


def waves_of_block(points: Points, block: tuple[int, int], extent: Array, smallest: float) -> Spectrum:
    """The waves of some rows."""
    rows = points.all_rows()[slice(*block)] / smallest
    return spectrum(rows, np.exp(points.log_weights[slice(*block)]), Grid.over(extent / smallest))


def climb_rows(points: Points, block: tuple[int, int], sigma: float, density: Density) -> Arrays:
    """Climb from some rows, in the order of their cells."""
    some = order_of_rows(points, density)[slice(*block)]
    return climb(points, points.all_rows()[some], points.log_weights[some], sigma, density)


def climb_starts(points: Points, task: tuple[Array, Array], sigma: float, density: Density) -> Arrays:
    """Climb from some start points, with a lower bound or guess of the log density at each."""
    return climb(points, *task, sigma, density)


def order_of_rows(points: Points, density: Density) -> np.ndarray:
    """The rows, those near each other together."""
    order: np.ndarray = points.kept(
        ("order", density.smallest), lambda: order_by_cell(points.all_rows(), density.smallest)
    )
    return order


def climb(points: Points, starts: Array, log_density: Array, sigma: float, density: Density) -> Arrays:
    """Climb to the ends: these, and which of them each start comes to."""
    ascents, owner, lost = ascend_on_field(starts / sigma, log_density, density.field(points, sigma))
    if (exactly := np.flatnonzero(lost)).size:
        begin = Ascents.begin(ascents.points[exactly], log_density[exactly], stepwise=False)
        ended = ascend(begin, points.kernels(sigma))
        ended.iterations[:] += ascents.iterations[exactly]
        ascents.put(exactly, ended)
    ends, member = np.unique(owner, return_inverse=True)
    return {
        "points": ascents.points[ends],
        "log_density": ascents.log_density[ends],
        "iterations": ascents.iterations[ends],
        "member": member.astype(np.int32),
        "unsure": ascents.unsure,
    }


# the loop on rank 0


class MapOfClimbs(ResumableMap):
    """The blocks of start points of one level; what a checkpoint keeps and how far it is, the whole fit tells."""

    def __init__(
        self, tasks: Sequence[Any], state: State | None, fit: Callable[[], State], fits_how_far: Callable[[], HowFar]
    ) -> None:
        super().__init__(tasks, "blocks of start points", state)
        self.parts: dict[int, Arrays] = parts_of_state(state)
        self.state, self.how_far = fit, fits_how_far  # type: ignore[method-assign]

    def keep(self, number: int, result: Arrays) -> None:
        """Keep the ends of a block."""
        self.parts[number] = result

    def arrays(self) -> Arrays:
        """The ends of all blocks that are done."""
        return {f"part/{number}/{name}": value for number, part in self.parts.items() for name, value in part.items()}

    @property
    def share_done(self) -> float:
        """The share of the blocks that are done."""
        return float(self.done.mean())

    @property
    def arrived(self) -> int:
        """How many ascents have arrived."""
        return sum(len(part["member"]) for part in self.parts.values())

    def ends(self) -> Arrays:
        """The ends of all blocks together, in the order of the blocks."""
        parts = [self.parts[k] for k in range(len(self.tasks))]
        first = np.cumsum([0, *[len(part["points"]) for part in parts]])
        together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        together["member"] = np.concatenate([part["member"] + a for part, a in zip(parts, first, strict=False)])
        return together


def blocks_of(count: int) -> list[tuple[int, int]]:
    """Cut so many start points into blocks."""
    step = min(max(-(-count // BLOCKS), FEWEST_A_BLOCK), STARTS_A_BLOCK)
    return [(a, min(a + step, count)) for a in range(0, count, step)]
