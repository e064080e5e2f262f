"""New points climb the density of the old ones, level by level, until they stand on a mode that is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.extras import need
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.locality import order_by_cell
from parallel_mix.kernels.density.modal_em import warm_up as warm_up
from parallel_mix.kernels.density.mode_merging import MERGE_TOLERANCE
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import RowSource
from parallel_mix.models.hmac.climbing import Streams, climb_by_blocks
from parallel_mix.models.hmac.field_climbing import Density, MapOfClimbs, blocks_of, climb_starts, extent_of
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
    warm_up()
    run = run or QuietRun()
    level = result.level_number(level)
    backend.share(PointsRecipe(source, result.frame))
    density: Density | None = None
    if result.settings.density == "field":
        need("field", "A result whose density is from a field")
        extent = extent_of(source, result.frame)
        density = Density.of(backend, source.shape[0], extent, float(result.bandwidths[0]))
    labels = np.full(len(X), -1, dtype=np.int32)
    at = result.frame.inward(X)
    far = np.flatnonzero(~(np.abs(at).max(axis=1, initial=0.0) < FARTHEST * result.bandwidths[0]))
    if far.size:
        raise InputError(f"Row {far[0] + 1} of the new points is more than {FARTHEST:g} bandwidths away from the data.")
    open_rows = np.arange(len(X))
    first = 0
    state = run.restored()
    ascents: Ascents | None = None
    streams: Streams | None = None
    climbs: State | None = None
    if state is not None:
        labels, at, open_rows, first = state["labels"], state["at"], state["open_rows"], int(state["level"])
        if density is None:
            ascents, streams = Ascents.from_state(state), Streams.from_state(state)
        else:
            climbs = state
    for number in range(first if result.settings.nested else level, level + 1):
        here = result.levels[number]
        progress = {"labels": labels, "at": at, "open_rows": open_rows, "level": number}
        text = f"level {number + 1}/{level + 1}, {len(open_rows)} points"
        if density is not None:
            at[open_rows] = _ends_on_field(backend, run, density, here.bandwidth, progress, climbs, text)
            climbs = None
            open_rows = _label(result, number, level, at, open_rows, labels)
            if not open_rows.size:
                break
            continue
        if ascents is None or streams is None:
            unknown = np.full(len(open_rows), np.nan)
            ascents = Ascents.begin(at[open_rows] / here.bandwidth, unknown, stepwise=False)
            streams = Streams.cut(np.arange(len(open_rows)), ascents.points, source.shape[0])
        how_far = partial(_how_far, ascents, len(X), text)
        state_now = partial(_state, progress, ascents, streams, how_far)
        for _ in climb_by_blocks(backend, source.shape[0], here.bandwidth, ascents, streams):
            run.report(how_far)
            run.offer(state_now)
        at[open_rows] = ascents.points * here.bandwidth
        open_rows, ascents, streams = _label(result, number, level, at, open_rows, labels), None, None
        if not open_rows.size:
            break
    return labels


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


def _ends_on_field(
    backend: Backend, run: Run, density: Density, sigma: float, progress: State, kept: State | None, text: str
) -> Array:
    """Where the ascents of the open rows end; `kept` is what an earlier attempt left of this level."""
    open_rows = progress["open_rows"]
    starts = progress["at"][open_rows]
    order = order_by_cell(starts, sigma)
    unknown = np.full(len(starts), np.nan)
    tasks = [(starts[order[a:b]], unknown[a:b]) for a, b in blocks_of(len(starts))]

    def how_far() -> HowFar:
        """How many of all points have arrived."""
        points = len(progress["labels"])
        return points - len(open_rows) + climbs.arrived, points, text

    def state() -> State:
        """What a checkpoint keeps."""
        return {**progress, "done": how_far()[0], "tasks": climbs.done, **climbs.arrays()}

    climbs = MapOfClimbs(tasks, kept, state, how_far)
    arrived: Array = np.empty_like(starts)
    climbs.work_off(backend, run, partial(climb_starts, sigma=sigma, density=density))
    ends = climbs.ends()
    arrived[order] = ends["points"][ends["member"]] * sigma
    return arrived


def _how_far(ascents: Ascents, points: int, text: str) -> HowFar:
    return points - int(ascents.moving.sum()), points, text


def _state(progress: State, ascents: Ascents, streams: Streams, how_far: Callable[[], HowFar]) -> State:
    return {**progress, "done": how_far()[0], **ascents.state(), **streams.state()}


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
