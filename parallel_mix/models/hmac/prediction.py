"""New points climb the density of the old ones, level by level, until they stand on a mode that is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.modal_em import warm_up as warm_up
from parallel_mix.kernels.density.mode_merging import MERGE_TOLERANCE
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import RowSource
from parallel_mix.models.hmac.climb_map import Density, MapOfClimbs, climb_starts
from parallel_mix.models.hmac.climbing import Streams, climb_by_blocks, climb_by_steps
from parallel_mix.models.hmac.density_choice import density_of
from parallel_mix.models.hmac.density_choice import warm_up as warm_up_for
from parallel_mix.models.hmac.mode_tree import Level
from parallel_mix.models.hmac.points import PointsRecipe
from parallel_mix.models.hmac.result import HmacResult

FARTHEST = 1e13
"""Bandwidths beyond which float64 cannot tell which training point is nearer."""


def predict_hmac(
    result: HmacResult, source: RowSource, X: Array, level: int, backend: Backend, run: Run | None = None
) -> np.ndarray:
    """The labels of the rows of X at a level; -1 for a mode to which no training point climbed.

    In a nested result a point goes the way a training point went: it climbs at the smallest bandwidth first, and from
    the mode it meets it follows the tree; so a training point gets its own label again, but for those on a boundary.
    """
    level = result.level_number(level)
    at = result.frame.inward(X)
    far = np.flatnonzero(~(np.abs(at).max(axis=1, initial=0.0) < FARTHEST * result.bandwidths[0]))
    if far.size:
        raise InputError(f"Row {far[0] + 1} of the new points is more than {FARTHEST:g} bandwidths away from the data.")
    kind = result.settings.density
    warm_up_for(kind)
    backend.share(PointsRecipe(source, result.frame, whole=result.settings.approach != 3))
    density = density_of(kind, backend, source, result.frame, float(result.bandwidths[0]))
    rows = source.shape[0]
    climber: _Climber = _ByBlocks(backend, rows) if density is None else _ByMap(backend, rows, density)
    run = run or QuietRun()
    state = run.restored()
    labels, open_rows, first = np.full(len(X), -1, dtype=np.int32), np.arange(len(X)), 0
    if state is not None:
        labels, at, open_rows, first = state["labels"], state["at"], state["open_rows"], int(state["level"])
    for number in range(first if result.settings.nested else level, level + 1):
        if not open_rows.size:
            break
        text = f"level {number + 1}/{level + 1}, {len(open_rows)} points"
        progress = {"labels": labels, "at": at, "open_rows": open_rows, "level": number}
        at = at.copy()  # what a checkpoint of this level keeps stays as it was
        at[open_rows] = climber.ends(result.levels[number].bandwidth, run, progress, text, state)
        state = None
        open_rows = _label(result, number, level, at, open_rows, labels)
    return labels


class _Climber(Protocol):
    """One way to climb from the open rows to their ends."""

    def ends(self, sigma: float, run: Run, progress: State, text: str, kept: State | None) -> Array:
        """Where the ascents of the open rows end; `kept` is what an earlier attempt left of this level."""


@dataclass(frozen=True)
class _ByBlocks:
    """Ascents by exact sums, in waves of blocks."""

    backend: Backend
    rows: int  # of the data

    def ends(self, sigma: float, run: Run, progress: State, text: str, kept: State | None) -> Array:
        """Where the ascents of the open rows end."""
        starts, points = progress["at"][progress["open_rows"]], len(progress["labels"])
        streams = Streams.from_state(kept) if kept else None
        if kept is not None and streams is not None:
            ascents = Ascents.from_state(kept)
        else:
            ascents = Ascents.begin(starts / sigma, np.full(len(starts), np.nan), stepwise=False)
            streams = Streams.cut(np.arange(len(starts)), ascents.points, self.rows)

        def how_far() -> HowFar:
            """How many of all points have arrived."""
            return points - int(ascents.moving.sum()), points, text

        def state() -> State:
            """What a checkpoint keeps."""
            return {**progress, "done": how_far()[0], **ascents.state(), **streams.state()}

        for _ in climb_by_blocks(self.backend, self.rows, sigma, ascents, streams):
            run.report(how_far)
            run.offer(state)
        ends: Array = ascents.points * sigma
        return ends


@dataclass(frozen=True)
class _ByMap:
    """Ascents on a density of another kind, block after block."""

    backend: Backend
    rows: int  # of the data
    density: Density

    def ends(self, sigma: float, run: Run, progress: State, text: str, kept: State | None) -> Array:
        """Where the ascents of the open rows end."""
        starts, points = progress["at"][progress["open_rows"]], len(progress["labels"])
        order = self.density.order(starts, sigma)
        unknown = np.full(len(starts), np.nan)
        parts = [order[a:b] for a, b in self.density.share.cut(len(starts))]
        tasks = [(starts[some], unknown[some]) for some in parts]

        def how_far() -> HowFar:
            """How many of all points have arrived."""
            still = 0 if ascents is None else int(ascents.moving.sum())
            return points - len(starts) + climbs.arrived - still, points, text

        def state() -> State:
            """What a checkpoint keeps."""
            of_ascents = {} if ascents is None else ascents.state()
            return {**progress, "done": how_far()[0], "tasks": climbs.done, **climbs.arrays(), **of_ascents}

        ascents = Ascents.from_state(kept) if kept is not None and "ascents/points" in kept else None
        climbs = MapOfClimbs(tasks, kept, state, how_far)
        climbs.work_off(self.backend, run, partial(climb_starts, sigma=sigma, density=self.density))
        ends = climbs.ends()
        lost = np.flatnonzero(ends.get("lost", False))
        if lost.size:  # they left the field where nobody has all rows: they go on by sums over all of them
            ascents = ascents or Ascents.begin(ends["points"][lost], ends["log_density"][lost])
            for _ in climb_by_steps(self.backend, self.rows, sigma, ascents):
                run.report(how_far)
                run.offer(state)
            ends["points"][lost] = ascents.points
        arrived: Array = ends["points"][climbs.of_starts(parts)[0]] * sigma
        return arrived


def _label(
    result: HmacResult, number: int, level: int, at: Array, open_rows: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Label the open rows that stand on a known mode of a level, by that of `level` above it; those still open."""
    here = result.levels[number]
    known = nearest_mode(here, at[open_rows] / here.bandwidth)
    met = known >= 0
    labels[open_rows[met]] = follow_tree(result, number, level)[known[met]]
    still: np.ndarray = open_rows[~met]
    return still


def nearest_mode(level: Level, ends: Array) -> np.ndarray:
    """The number of the level's mode within the merging tolerance of each end of an ascent (in bandwidths), or -1."""
    from scipy.spatial import cKDTree

    tree = cKDTree(level.modes / level.bandwidth)
    distance, index = tree.query(ends, k=1, distance_upper_bound=MERGE_TOLERANCE)
    nearest: np.ndarray = np.where(np.isfinite(distance), index, -1)
    return nearest


def follow_tree(result: HmacResult, level: int, upper: int) -> np.ndarray:
    """For each mode of `level` the number of the mode of level `upper` that it goes to."""
    ancestor = np.arange(len(result.levels[level].modes))
    for number in range(level, upper):
        ancestor = result.levels[number].parent[ancestor]
    return ancestor
