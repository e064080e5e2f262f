"""Hierarchical mode association clustering, level by level (Li, Ray & Lindsay 2007; dissertation 4.2, ch. 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.modal_em import Ascents
from parallel_mix.kernels.mode_merging import merge_ends
from parallel_mix.kernels.saddle import NUDGE, rising_directions
from parallel_mix.models.climbing import Wave, climb_by_blocks, climb_by_steps, moments
from parallel_mix.models.mode_tree import Level, canonical_order, most_persistent, plateaus
from parallel_mix.models.points import Frame, PointsRecipe, RowSource, measure_frame, passes
from parallel_mix.models.run import QuietRun, Run, State
from parallel_mix.progress import plural

MOST_NUDGES = 10
"""Rounds of leaving saddles at one level; a start that is still on one then stays there and is listed."""


@dataclass(frozen=True)
class HmacSettings:
    """What decides the answer."""

    bandwidths: tuple[float, ...] | None = None
    levels: int = 20
    range: tuple[float, float] = (0.1, 2.0)
    standardize: bool = False
    nested: bool = True
    approach: Literal[1, 2] = 2

    def ladder(self, spread: float) -> Array:
        """The bandwidths: those given, or equally spaced over the range in largest standard deviations."""
        if self.bandwidths is not None:
            sigma = np.array(self.bandwidths, dtype=np.float64)
        else:
            if self.levels < 1:
                raise InputError(f"The number of levels must be 1 or more, not {self.levels}.")
            if len(self.range) != 2:
                raise InputError(f"--range takes two numbers, lowest and highest; not {len(self.range)}.")
            sigma = np.linspace(self.range[0], self.range[1], self.levels) * spread
        if not (sigma.size and np.isfinite(sigma).all() and (sigma > 0).all()):
            raise InputError(f"Bandwidths must be positive numbers, not {_listed(sigma)}.")
        if (np.diff(sigma) <= 0).any():
            raise InputError(f"Bandwidths must rise from level to level; got {_listed(sigma)}.")
        return sigma


def _listed(sigma: Array) -> str:
    shown = ", ".join(f"{s:g}" for s in sigma[:6])
    return shown + (", ..." if len(sigma) > 6 else "") if len(sigma) else "none"


@dataclass
class HmacResult:
    """All levels of a fit, in the coordinates of the analysis (`frame`)."""

    settings: HmacSettings
    frame: Frame
    bandwidths: Array
    levels: list[Level]
    plateaus: list[tuple[int, int, int]]
    default_level: int

    @property
    def labels(self) -> np.ndarray:
        """(L, n) int32."""
        return np.stack([level.labels for level in self.levels])

    def level_number(self, asked: int | None) -> int:
        """The number of a level asked for (negative: from the last), or of the default one."""
        if asked is None:
            return self.default_level
        if not -len(self.levels) <= asked < len(self.levels):
            raise InputError(f"There is no level {asked}: the result has levels 0 to {len(self.levels) - 1}.")
        return asked % len(self.levels)

    def summary(self) -> list[str]:
        """Lines that tell a person what was found."""
        n, d = len(self.levels[0].labels), self.levels[0].modes.shape[1]
        kind = "nested" if self.settings.nested else "flat"
        levels = plural(len(self.levels), f"{kind} level")
        lines = [f"{n:,} rows, {plural(d, 'column')}; {levels} by approach {self.settings.approach}", ""]
        lines.append("level   bandwidth  clusters  of more than one row  largest  longest ascent, steps  remarks")
        stable = {level: (first, last) for first, last, count in self.plateaus for level in range(first, last + 1)}
        for number, level in enumerate(self.levels):
            first, last = stable[number]
            notes = ["default"] if number == self.default_level else []
            notes += ["as the level before"] if level.unchanged else []
            notes += [f"stable over {first}-{last}"] if last > first and number == first else []
            notes += [f"{level.capped} ascents hit the limit"] if level.capped else []
            notes += [f"{len(level.boundary)} rows on a boundary"] if len(level.boundary) else []
            several = int((level.sizes > 1).sum())
            lines.append(
                f"{number:5d} {level.bandwidth:11.5g} {len(level.sizes):9d} {several:21d} {level.sizes[0]:8d} "
                f"{level.iterations.max():22d}  {', '.join(notes)}".rstrip()
            )
        chosen = self.levels[self.default_level]
        shown = ", ".join(map(str, chosen.sizes[:8])) + (", ..." if len(chosen.sizes) > 8 else "")
        lines += ["", f"labels shown: level {self.default_level}, the most persistent clustering; sizes {shown}"]
        return lines

    def as_tree(self) -> dict[str, Any]:
        """The result as a store keeps it; modes and densities in the coordinates of the data."""
        tree: dict[str, Any] = {
            "@settings": json.dumps(asdict(self.settings)),
            "@spread": self.frame.spread,
            "@default_level": self.default_level,
            "centre": self.frame.centre,
            "scale": self.frame.scale,
            "bandwidths": self.bandwidths,
            "labels": self.labels,
            "plateaus": np.array(self.plateaus, dtype=np.int32).reshape(-1, 3),
        }
        levels = {f"{number:03d}": level.as_tree(self.frame) for number, level in enumerate(self.levels)}
        return tree | {"levels": levels}

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> HmacResult:
        """The result back from a store."""
        settings = json.loads(tree["@settings"])
        settings["range"] = tuple(settings["range"])
        settings["bandwidths"] = tuple(settings["bandwidths"]) if settings["bandwidths"] else None
        frame = Frame(tree["centre"], tree["scale"], float(tree["@spread"]))
        levels = [
            Level.from_tree(tree["levels"][f"{number:03d}"], labels, frame)
            for number, labels in enumerate(tree["labels"])
        ]
        ranges = [(int(a), int(b), int(c)) for a, b, c in tree["plateaus"]]
        default = int(tree["@default_level"])
        return cls(HmacSettings(**settings), frame, tree["bandwidths"], levels, ranges, default)


def fit_hmac(source: RowSource, settings: HmacSettings, backend: Backend, run: Run | None = None) -> HmacResult:
    """Cluster the rows of `source` at every bandwidth."""
    fit = _Fit(source, settings, backend, run or QuietRun())
    return fit.result()


class _Fit:
    """One fit: the finished levels, the ascents of the present one, and how to save and restore both."""

    def __init__(self, source: RowSource, settings: HmacSettings, backend: Backend, run: Run) -> None:
        self.source = source
        self.settings = settings
        self.backend = backend
        self.run = run
        self.n = source.shape[0]
        self.weight = source.weights()
        self.frame = measure_frame(source, settings.standardize)
        self.bandwidths = settings.ladder(self.frame.spread)
        self.levels: list[Level] = []
        self.ascents: Ascents | None = None
        self.wave: Wave | None = None
        self.nudged = np.zeros(0, dtype=np.int32)  # how often each start of the present level was moved off a saddle

    def result(self) -> HmacResult:
        self._restore()
        self.backend.share(PointsRecipe(self.source, self.frame))
        try:
            while len(self.levels) < len(self.bandwidths):
                self._climb_level()
        finally:
            self.run.offer(self._state)
        labels = np.stack([level.labels for level in self.levels])
        ranges = plateaus(labels, self._distinct_rows())
        default = most_persistent(ranges, self.bandwidths)
        return HmacResult(self.settings, self.frame, self.bandwidths, self.levels, ranges, default)

    # one level

    def _climb_level(self) -> None:
        sigma = float(self.bandwidths[len(self.levels)])
        if self.ascents is None:
            starts, log_density = self._starts()
            self.ascents = Ascents.begin(starts / sigma, log_density)
            self.nudged = np.zeros(len(starts), dtype=np.int32)
        while True:
            for _ in self._climb(sigma):
                self._report()
                self.run.offer(self._state)
            k, member = merge_ends(self.ascents.points)
            if not self._leave_saddles(sigma, k, member):
                break
        self._finish_level(sigma, k, member)

    def _starts(self) -> tuple[Array, Array]:
        """Where the ascents of the present level begin, with a lower bound or guess of log f there."""
        if self.settings.nested and self.levels:
            return self.levels[-1].modes, self.levels[-1].log_density
        X = np.concatenate([self.frame.inward(rows) for rows in passes(self.source)])
        return X, np.full(self.n, -np.log(self.n))

    def _climb(self, sigma: float) -> Iterator[None]:
        assert self.ascents is not None  # noqa: S101
        if self.settings.approach == 1:
            return climb_by_steps(self.backend, self.n, sigma, self.ascents)
        if self.wave is None:
            self.wave = Wave.cut(np.flatnonzero(self.ascents.moving), self.ascents.points, self.n)
        return climb_by_blocks(self.backend, self.n, sigma, self.ascents, self.wave)

    def _leave_saddles(self, sigma: float, k: int, member: np.ndarray) -> bool:
        """Move the ends that lie on a saddle off it; True where any was moved."""
        ascents = self.ascents
        assert ascents is not None  # noqa: S101
        suspects = _highest_ends(member, ascents.log_density)
        suspects = suspects[ascents.spread[suspects] >= 1.0]
        rising, _ = self._directions(sigma, suspects)
        on_saddle = np.flatnonzero(np.isin(member, member[suspects[rising]]) & (self.nudged < MOST_NUDGES))
        rising, directions = self._directions(sigma, on_saddle)
        off = on_saddle[rising]
        self.nudged[off] += 1
        ascents.restart(off, ascents.points[off] + NUDGE * directions[rising])
        self.wave = None
        return bool(ascents.moving.any())

    def _directions(self, sigma: float, which: np.ndarray) -> tuple[np.ndarray, Array]:
        ascents = self.ascents
        assert ascents is not None  # noqa: S101
        if not which.size:
            return np.zeros(0, dtype=bool), np.zeros((0, ascents.points.shape[1]))
        at, log_density = ascents.points[which], ascents.log_density[which]
        return rising_directions(moments(self.backend, self.settings.approach, self.n, sigma, at, log_density))

    def _finish_level(self, sigma: float, k: int, member: np.ndarray) -> None:
        ascents = self.ascents
        assert ascents is not None  # noqa: S101
        nested = self.settings.nested and bool(self.levels)
        labels = member[self.levels[-1].labels] if nested else member
        best = _highest_ends(member, ascents.log_density)
        sizes, order = canonical_order(labels, self.weight, ascents.log_density[best])
        rank = np.empty(k, dtype=np.int32)
        rank[order] = np.arange(k)
        longest = np.zeros(k, dtype=np.int32)
        np.maximum.at(longest, member, ascents.iterations)
        met_saddle = self.nudged > 0
        level = Level(
            bandwidth=sigma,
            modes=ascents.points[best[order]] * sigma,
            log_density=ascents.log_density[best[order]],
            labels=rank[labels],
            sizes=sizes[order].astype(np.int64),
            iterations=longest[order],
            capped=int(ascents.capped.sum()),
            boundary=np.flatnonzero(met_saddle[self.levels[-1].labels] if nested else met_saddle),
            parent=np.full(k, -1, dtype=np.int32),
        )
        if nested:
            self.levels[-1].parent = rank[member]
        if self.levels:
            level.unchanged = bool(np.array_equal(level.labels, self.levels[-1].labels))
        self.levels.append(level)
        self.ascents = self.wave = None
        self.run.offer(self._state)

    def _distinct_rows(self) -> np.ndarray:
        """One row (of positive weight) of each set of equal rows."""
        X = np.concatenate(list(passes(self.source)))
        keep = np.arange(self.n) if self.weight is None else np.flatnonzero(self.weight > 0)
        keys = np.ascontiguousarray(X[keep] + 0.0).view(np.dtype((np.void, X.dtype.itemsize * X.shape[1]))).ravel()
        return np.sort(keep[np.unique(keys, return_index=True)[1]])

    # progress and checkpoint

    def _report(self) -> None:
        level, total = len(self.levels), len(self.bandwidths)
        now = len(self.ascents.points) if self.ascents else 0
        ahead = now * (total - level - 1)
        text = f"level {level + 1}/{total}, bandwidth {self.bandwidths[level]:.4g}, {now} ascents"
        self.run.report(self._done(), self._starts_before() + now + ahead, text)

    def _done(self) -> int:
        """Ascents that have arrived, of all levels."""
        arrived = int((~self.ascents.moving).sum()) if self.ascents else 0
        return self._starts_before() + arrived

    def _starts_before(self) -> int:
        if not self.settings.nested:
            return self.n * len(self.levels)
        return sum([self.n, *[len(level.modes) for level in self.levels]][: len(self.levels)])

    def _state(self) -> State:
        state: State = {"done": self._done(), "levels": len(self.levels)}
        for number, level in enumerate(self.levels):
            state |= {f"level{number}/{field.name}": getattr(level, field.name) for field in fields(level)}
        if self.ascents is not None:
            state |= {**self.ascents.state(), "nudged": self.nudged}
        if self.wave is not None:
            state |= self.wave.state()
        return state

    def _restore(self) -> None:
        state = self.run.restored()
        if state is None:
            return
        for number in range(int(state["levels"])):
            kept = {field.name: state[f"level{number}/{field.name}"] for field in fields(Level)}
            scalars = {"bandwidth": float(kept["bandwidth"]), "capped": int(kept["capped"])}
            self.levels.append(Level(**{**kept, **scalars, "unchanged": bool(kept["unchanged"])}))
        if "nudged" in state:
            self.ascents, self.nudged = Ascents.from_state(state), state["nudged"]
        if "wave/members" in state:
            self.wave = Wave.from_state(state)


def _highest_ends(member: np.ndarray, log_density: Array) -> np.ndarray:
    """The end of each mode where the density is highest; of equals the first."""
    order = np.lexsort((np.arange(len(member)), -log_density, member))
    _, first = np.unique(member[order], return_index=True)
    return order[first]
