"""The settings of a clustering by mode association, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.hmac.mode_tree import Level
from parallel_mix.models.hmac.points import Frame
from parallel_mix.progress import plural

DENSITIES = ("auto", "exact", "field", "tree")
"""The ways to sum a density; of `auto` a fit makes one of the others."""


@dataclass(frozen=True)
class HmacSettings:
    """The options of a clustering that decide its result."""

    bandwidths: tuple[float, ...] | None = None
    levels: int = 20
    range: tuple[float, float] = (0.1, 2.0)
    standardize: bool = False
    nested: bool = True
    approach: int = 2
    density: str = "auto"

    @classmethod
    def asked(
        cls,
        bandwidths: tuple[float, ...] | None,
        levels: int | None,
        between: tuple[float, ...] | None,
        standardize: bool,
        nested: bool,
        approach: int,
        density: str,
    ) -> Self:
        """Settings from the options of a user; an option that was not given is None."""
        if bandwidths is not None and (levels is not None or between is not None):
            raise InputError("--bandwidths says it all: leave out --levels and --range, or give these two instead.")
        if between is not None and len(between) != 2:
            raise InputError(f"The range takes two numbers, lowest and highest; not {len(between)}.")
        low, high = between or cls.range
        if (levels or cls.levels) > 1 and not low < high:
            raise InputError(f"The range takes the lowest first, not {low:g},{high:g}.")
        return cls(bandwidths, levels or cls.levels, (low, high), standardize, nested, approach, density)

    def __post_init__(self) -> None:
        if self.approach not in (1, 2, 3):
            raise InputError(f"There are approaches 1, 2 and 3, not {self.approach!r}.")
        if self.density not in DENSITIES:
            raise InputError(f"The density is one of {', '.join(DENSITIES)}, not {self.density!r}.")
        if self.approach == 1 and self.density in ("field", "tree"):
            raise InputError(f"Approach 1 is by exact sums. Leave out --density {self.density}.")
        if self.approach == 3 and self.density in ("exact", "tree"):
            raise InputError(f"Approach 3 takes the density from a field. Leave out --density {self.density}.")

    def ladder(self, spread: float) -> Array:
        """The bandwidths, as lengths of the analysis: those given, or `levels` of equal steps over `range` * spread."""
        if self.bandwidths is not None:
            sigma = np.array(self.bandwidths, dtype=np.float64)
        else:
            if self.levels < 1:
                raise InputError(f"The number of levels must be 1 or more, not {self.levels}.")
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
    """The result of a fit: all its levels, in the coordinates of the analysis (`frame`)."""

    settings: HmacSettings
    frame: Frame
    bandwidths: Array
    levels: list[Level]
    plateaus: list[tuple[int, int, int]]
    default_level: int

    @property
    def labels(self) -> np.ndarray:
        """The label of each row at each level, (L, n) int32."""
        return np.stack([level.labels for level in self.levels])

    def level_number(self, asked: int | None) -> int:
        """The number of a level asked for (negative: from the last), or of the default one."""
        if asked is None:
            return self.default_level
        if not -len(self.levels) <= asked < len(self.levels):
            raise InputError(f"There is no level {asked}: the result has levels 0 to {len(self.levels) - 1}.")
        return asked % len(self.levels)

    @property
    def several(self) -> list[int]:
        """Clusters of more than one row at each level; equal rows count once, rows of no weight not at all."""
        return [count for first, last, count in self.plateaus for _ in range(first, last + 1)]

    def agreement(self, known: np.ndarray, some: np.ndarray) -> str:
        """A line on how the levels agree with the classes of those rows (`some`) of which they are known."""
        from sklearn.metrics import adjusted_rand_score

        scores = [adjusted_rand_score(known[some], level.labels[some]) for level in self.levels]
        shown = self.default_level
        best = max(range(len(scores)), key=lambda level: (scores[level], level == shown))
        return (
            f"agreement with the {len(set(known[some]))} known classes (adjusted Rand index): "
            f"{scores[shown]:.3f} at level {shown}; best {scores[best]:.3f} at level {best}"
        )

    @property
    def density(self) -> str:
        """How the density was summed, in words."""
        of = {"exact": "by exact sums", "tree": "by sums over the rows nearby", "field": "from a field"}
        return f"density {of[self.settings.density]}"

    def summary(self) -> list[str]:
        """Lines for a person: rows and columns, a line for each level, and the level that is shown by default."""
        n, d = self.levels[0].rows, self.levels[0].modes.shape[1]
        kind = "nested" if self.settings.nested else "flat"
        levels = plural(len(self.levels), f"{kind} level")
        lines = [
            f"{n:,} rows, {plural(d, 'column')}; {levels} by approach {self.settings.approach}; {self.density}",
            "",
        ]
        lines.append("level   bandwidth  clusters  of more than one row  largest  longest ascent, steps  remarks")
        several = self.several
        stable = {level: (first, last) for first, last, count in self.plateaus for level in range(first, last + 1)}
        for number, level in enumerate(self.levels):
            first, last = stable[number]
            notes = ["default"] if number == self.default_level else []
            notes += ["as the level before"] if level.unchanged else []
            notes += [f"stable over {first}-{last}"] if last > first and number == first else []
            notes += [f"{level.capped} ascents hit the limit"] if level.capped else []
            notes += [f"{plural(len(level.boundary), 'row')} near a boundary"] if len(level.boundary) else []
            lines.append(
                f"{number:5d} {level.bandwidth:11.5g} {len(level.sizes):9d} {several[number]:21d} {level.sizes[0]:8d} "
                f"{level.iterations.max():22d}  {', '.join(notes)}".rstrip()
            )
        chosen = self.levels[self.default_level]
        first, last = stable[self.default_level]
        if max(several) < 2:
            why = "the last: no level has two clusters of more than one row"
        elif first == last:
            why = "the last with two or more; none stays from one level to the next: more levels would show which last"
        else:
            why = "the most persistent clustering"
        shown = ", ".join(map(str, chosen.sizes[:8])) + (", ..." if len(chosen.sizes) > 8 else "")
        lines += ["", f"labels shown: level {self.default_level}, {why}; sizes {shown}"]
        return lines
