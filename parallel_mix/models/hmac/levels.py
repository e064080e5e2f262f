"""Hierarchical mode association clustering, level by level (Li, Ray & Lindsay 2007; dissertation 4.2, ch. 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.ascents import Ascents, hit_the_limit
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.density.modal_em import warm_up as warm_up
from parallel_mix.kernels.density.mode_merging import highest_ends, merge_ends
from parallel_mix.kernels.density.tree_climb import TOGETHER
from parallel_mix.models.core.run import HowFar, QuietRun, Run, State
from parallel_mix.models.core.sources import RowSource, blocks_of
from parallel_mix.models.core.tasks import Arrays
from parallel_mix.models.hmac.climb_map import Density, MapOfClimbs, climb_rows, climb_slice, climb_starts, slices_of
from parallel_mix.models.hmac.climbing import Streams, climb_by_blocks, climb_by_steps, most_in_a_block
from parallel_mix.models.hmac.density_choice import decided, density_of, refuse_rows_far_out
from parallel_mix.models.hmac.density_choice import warm_up as warm_up_for
from parallel_mix.models.hmac.forecast import STEPS, STEPS_ON_LEAVES, Forecast, expected_work
from parallel_mix.models.hmac.mode_tree import (
    DIGITS,
    Level,
    Members,
    distinct_rows,
    most_persistent,
    plateaus,
    relabelled,
)
from parallel_mix.models.hmac.points import Frame, PointsRecipe, measure_frame
from parallel_mix.models.hmac.result import HmacResult, HmacSettings
from parallel_mix.progress import plural


def fit_hmac(
    source: RowSource,
    settings: HmacSettings,
    backend: Backend,
    run: Run | None = None,
    frame: Frame | None = None,
) -> HmacResult:
    """Cluster the rows of `source` at every bandwidth; `frame` is theirs, where it has been measured already."""
    frame = frame or measure_frame(source, settings.standardize)
    settings, _ = decided(source, settings, frame)
    refuse_rows_far_out(frame, float(settings.ladder(frame.spread)[0]))
    return _Fit(source, settings, backend, run or QuietRun(), frame).result()


class _Fit:
    """The state of one fit: finished levels, the ascents of the present one, and how to save and restore both."""

    def __init__(self, source: RowSource, settings: HmacSettings, backend: Backend, run: Run, frame: Frame) -> None:
        self.source = source
        self.settings = settings
        self.backend = backend
        self.run = run
        self.n = source.shape[0]
        self.frame = frame
        self.bandwidths = settings.ladder(self.frame.spread)
        self.levels: list[Level] = []
        self.members: Members | None = None  # of the clusters that rows climbed to last
        self.ascents: Ascents | None = None
        self.streams: Streams | None = None
        self.works: list[float] = []  # of the finished levels
        self.forecast: Forecast | None = None
        self.density: Density | None = None
        self.climbs: MapOfClimbs | None = None
        self.kept_climbs: State | None = None  # of the level that an earlier attempt was at

    def result(self) -> HmacResult:
        """Climb all levels that an earlier attempt has not finished, and put the result together."""
        kind = self.settings.density
        warm_up_for(kind)
        self._restore()
        self.backend.share(PointsRecipe(self.source, self.frame, not self._in_slices))
        if len(self.levels) < len(self.bandwidths):
            smallest = float(self.bandwidths[0])
            self.density = density_of(kind, self.backend, self.source, self.frame, smallest)
        try:
            while len(self.levels) < len(self.bandwidths):
                self._climb_level()
        finally:
            self.run.offer(self._state)
        ranges = plateaus(self._clusters_of_several())
        default = most_persistent(ranges, self.bandwidths)
        return HmacResult(self.settings, self.frame, self.bandwidths, self.levels, ranges, default)

    # one level

    def _climb_level(self) -> None:
        sigma = float(self.bandwidths[len(self.levels)])
        if self.density is not None:
            self._climb_by_map(sigma, self.density)
            return
        if self.ascents is None:
            starts, log_density = self._starts()
            self.ascents = Ascents.begin(starts / sigma, log_density, stepwise=self.settings.approach == 1)
        for _ in self._climb(sigma):
            self.run.report(self._how_far)
            self.run.offer(self._state)
        ascents = self.ascents
        ends = (ascents.points, ascents.log_density, ascents.iterations)
        end = np.arange(len(ascents.points), dtype=np.int32)
        self._finish_level(sigma, *ends, end, np.flatnonzero(ascents.unsure), float(ascents.work.sum()))

    def _climb_by_map(self, sigma: float, density: Density) -> None:
        kernel, tasks, places = self._tasks(sigma, density)
        self.climbs = MapOfClimbs(tasks, self.kept_climbs, self._state, self._how_far)
        self.climbs.work_off(self.backend, self.run, partial(kernel, sigma=sigma, density=density))
        ends = self.climbs.ends()
        near = self._climb_by_sums(sigma, ends) if "lost" in ends and ends["lost"].any() else None
        end, unsure = self.climbs.of_starts(places)
        if near is not None and near.any():
            unsure = np.union1d(unsure, np.flatnonzero(near[end]))
        work = self.climbs.work if density.counts_pairs else 0.0
        self._finish_level(sigma, ends["points"], ends["log_density"], ends["iterations"], end, unsure, work)

    def _tasks(self, sigma: float, density: Density) -> tuple[Callable[..., Arrays], list[Any], list[Any]]:
        """What a worker does for a block of start points, the blocks, and where the start points of each are."""
        if self._in_slices and not self._goes_on:
            slices = slices_of(self.n)
            return climb_slice, slices, [slice(*rows) for rows in slices]
        starts, log_density = self._starts()
        order = density.order(starts, sigma if self._goes_on else density.smallest)
        blocks = density.share.cut(len(starts))
        parts = [order[a:b] for a, b in blocks]
        if self._goes_on:
            return climb_starts, [(starts[some], log_density[some]) for some in parts], parts
        return climb_rows, blocks, parts

    def _climb_by_sums(self, sigma: float, ends: Arrays) -> np.ndarray:
        """Climb from where ascents left the field, by sums over all rows; which of all ends are near a watershed."""
        lost = np.flatnonzero(ends["lost"])
        if self.ascents is None:
            self.ascents = Ascents.begin(ends["points"][lost], ends["log_density"][lost])
        for _ in climb_by_steps(self.backend, self.n, sigma, self.ascents):
            self.run.report(self._how_far)
            self.run.offer(self._state)
        ends["points"][lost], ends["log_density"][lost] = self.ascents.points, self.ascents.log_density
        ends["iterations"][lost] += self.ascents.iterations
        near = np.zeros(len(ends["points"]), dtype=bool)
        near[lost] = self.ascents.unsure
        return near

    @property
    def _in_slices(self) -> bool:
        """Whether nobody holds all rows."""
        return self.settings.approach == 3

    @property
    def _goes_on(self) -> bool:
        """Whether the present level begins at the modes of the one before."""
        return self.settings.nested and bool(self.levels)

    def _starts(self) -> tuple[Array, Array]:
        """Where the ascents of the present level begin, with a lower bound or guess of log f there."""
        if self._goes_on:
            return self.levels[-1].modes, self.levels[-1].log_density
        X = self._rows()
        if (weight := self.source.weights()) is None:
            return X, np.full(self.n, -np.log(self.n))
        with np.errstate(divide="ignore"):
            return X, np.log(weight / weight.sum())

    def _rows(self) -> Array:
        """All rows in the coordinates of the analysis."""
        return np.concatenate([self.frame.inward(self.source.rows(*block)) for block in blocks_of(self.n)])

    def _climb(self, sigma: float) -> Iterator[None]:
        assert self.ascents is not None  # noqa: S101
        if self.settings.approach == 1:
            return climb_by_steps(self.backend, self.n, sigma, self.ascents)
        if self.streams is None:
            self.streams = Streams.cut(np.flatnonzero(self.ascents.moving), self.ascents.points, self.n)
        return climb_by_blocks(self.backend, self.n, sigma, self.ascents, self.streams)

    def _finish_level(
        self,
        sigma: float,
        ends: Array,
        log_density: Array,
        iterations: np.ndarray,
        end: np.ndarray,
        unsure: np.ndarray,
        work: float,
    ) -> None:
        """Make a level of the ends of its ascents, the `end` of each (which is used up), and which are `unsure`."""
        k, member = merge_ends(ends)
        below = self.levels[-1] if self._goes_on else None
        end_of = relabelled(end, member)  # of each ascent
        labels = end_of if below is None else end_of[below.through]
        if below is None or self.members is None:
            self.members = Members.of(labels if below is None else below.first_labels, self.source)
        members = self.members if below is None else self.members.joined(labels)
        best = highest_ends(member, log_density)
        digits = DIGITS if self.density is None else self.density.digits
        order = members.order(log_density[best], digits)
        rank = np.empty(k, dtype=np.int32)
        rank[order] = np.arange(k)
        longest = np.zeros(k, dtype=np.int32)
        np.maximum.at(longest, member, iterations)
        if below is None:
            self.members = Members(members.sizes[order], members.mass[order], members.first[order])
        level = Level(
            bandwidth=sigma,
            modes=ends[best[order]] * sigma,
            log_density=log_density[best[order]],
            first_labels=relabelled(labels, rank) if below is None else below.first_labels,
            joins=np.zeros(0, dtype=np.int32) if below is None else rank[labels],
            sizes=members.sizes[order].astype(np.int64),
            iterations=longest[order],
            capped=int(hit_the_limit(iterations).sum()),
            boundary=unsure if below is None or not unsure.size else np.flatnonzero(np.isin(below.labels, unsure)),
            parent=np.full(k, -1, dtype=np.int32),
        )
        if below is not None:
            below.parent = rank[end_of]
        if self.levels:
            one, other = (some.first_labels if below is None else some.through for some in (self.levels[-1], level))
            level.unchanged = bool(np.array_equal(one, other))
        self.levels.append(level)
        self.works.append(work)
        self.ascents = self.streams = self.climbs = self.kept_climbs = None
        self.run.offer(self._state)

    def _clusters_of_several(self) -> list[int]:
        """The number of clusters of more than one distinct row at each level."""
        climbed = [level for level in self.levels if not level.joins.size]
        counts = distinct_rows(self.source, [level.first_labels for level in climbed])
        if self.settings.nested:
            counts += [np.bincount(level.joins, weights=counts[0]) for level in self.levels[1:]]
        return [int((count > 1).sum()) for count in counts]

    # progress and checkpoint

    def _how_far(self) -> HowFar:
        level, total, starts = (
            min(len(self.levels), len(self.bandwidths) - 1),
            len(self.bandwidths),
            self._starts_so_far(),
        )
        now = starts[level] if level < len(starts) else 0
        text = f"level {level + 1}/{total}, bandwidth {self.bandwidths[level]:.4g}, {plural(now, 'ascent')}"
        if self.density is not None and not self.density.counts_pairs:
            return *self._ascents_done_and_to_do(level, starts), text
        if self.forecast is None:
            if self.density is not None:
                together, steps = TOGETHER, STEPS_ON_LEAVES
            else:
                together, steps = self.n if self.settings.approach == 1 else most_in_a_block(self.n), STEPS
            self.forecast = Forecast.of(self._rows(), self.bandwidths, together, steps)
        works, done = list(self.works), sum(self.works)
        if self.ascents is not None:
            expected = expected_work(self.ascents, self.forecast.pairs[level])
            works += [expected] if expected is not None else []
            done += float(self.ascents.work.sum())
        if self.climbs is not None and self.climbs.arrived:
            works.append(self.climbs.work * now / self.climbs.arrived)
            done += self.climbs.work
        return done, max(self.forecast.total(starts, works, self.n, self.settings.nested), done), text

    def _ascents_done_and_to_do(self, level: int, starts: list[int]) -> tuple[float, float]:
        """Ascents that have arrived, of those of all levels: each to come is thought to have as many as the present."""
        now = starts[level] if level < len(starts) else len(self.levels[-1].modes)
        done = float(sum(starts[:level]) + (self.climbs.share_done * now if self.climbs else 0.0))
        ahead = sum(starts[:level]) + now * (1 if self.settings.nested and not level else len(self.bandwidths) - level)
        return done, max(float(ahead), done)

    def _starts_so_far(self) -> list[int]:
        """How many ascents the finished levels had, and the present one has."""
        levels = len(self.levels) + (self.ascents is not None or self.climbs is not None)
        if not self.settings.nested:
            return [self.n] * levels
        return [self.n, *[len(level.modes) for level in self.levels]][:levels]

    def _done(self) -> int:
        """How many ascents have arrived, of all levels."""
        before = self._starts_so_far()[: len(self.levels)]
        if self.climbs is not None:
            return sum(before) + self.climbs.arrived
        return sum(before) + (int((~self.ascents.moving).sum()) if self.ascents else 0)

    def _state(self) -> State:
        state: State = {"done": self._done(), "levels": len(self.levels), "works": np.array(self.works)}
        for number, level in enumerate(self.levels):
            kept = {f"level{number}/{field.name}": getattr(level, field.name) for field in fields(level)}
            if level.joins.size:
                del kept[f"level{number}/first_labels"]  # those of the lowest level
            state |= kept
        if self.ascents is not None:
            state |= self.ascents.state()
        if self.streams is not None:
            state |= self.streams.state()
        if self.climbs is not None:
            state |= {"tasks": self.climbs.done, **self.climbs.arrays()}
        return state

    def _restore(self) -> None:
        state = self.run.restored()
        if state is None:
            return
        for number in range(int(state["levels"])):
            names = [field.name for field in fields(Level) if f"level{number}/{field.name}" in state]
            kept = {name: state[f"level{number}/{name}"] for name in names}
            kept.setdefault("first_labels", state["level0/first_labels"])
            scalars = {"bandwidth": float(kept["bandwidth"]), "capped": int(kept["capped"])}
            self.levels.append(Level(**{**kept, **scalars, "unchanged": bool(kept["unchanged"])}))
        self.works = state["works"].tolist()
        if "ascents/points" in state:
            self.ascents = Ascents.from_state(state)
        self.streams = Streams.from_state(state)
        self.kept_climbs = state if "tasks" in state else None
