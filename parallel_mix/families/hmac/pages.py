"""All pictures of one clustering, drawn from its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parallel_mix.errors import InputError
from parallel_mix.families.hmac.file import read_clustering
from parallel_mix.models.hmac.result import HmacResult
from parallel_mix.plots import hmac_figures as figures
from parallel_mix.plots.figures import save
from parallel_mix.plots.maps import Cloud
from parallel_mix.plots.palette import style_clusters
from parallel_mix.store.results import read_data, read_names

Array = NDArray[np.float64]
MOST_PAIR_COLUMNS = 6


@dataclass(frozen=True)
class LevelChoices:
    """Which levels and columns to scatter."""

    level: str | None = None
    columns: str | None = None

    def levels(self, result: HmacResult) -> list[int]:
        """Numbers of the levels to scatter."""
        if self.level == "all":
            return list(range(len(result.levels)))
        try:
            asked = [None] if self.level is None else [int(part) for part in self.level.split(",")]
        except ValueError:
            raise InputError(f"--level must be numbers or `all`, not {self.level!r}.") from None
        return [result.level_number(number) for number in asked]

    def pair(self, names: list[str]) -> tuple[int, int] | None:
        """Two columns by name or number, or None for principal coordinates."""
        if self.columns is None:
            return None
        parts = self.columns.split(",")
        numbered = [str(k + 1) for k in range(len(names))]
        places = [names.index(p) if p in names else numbered.index(p) if p in numbered else -1 for p in parts]
        if len(places) != 2 or -1 in places:
            raise InputError(
                f"--columns takes two of {', '.join(names[:12])}, by name or counted from 1; not {self.columns!r}."
            )
        return places[0], places[1]


def draw(path: Path, folder: Path, formats: tuple[str, ...], choices: LevelChoices) -> list[Path]:
    """Draw the tree, the counts, and scatters and densities of some levels."""
    result = read_clustering(path)
    table = read_data(path, whole=result.settings.approach != 3)
    names = read_names(path)[1] or [f"column {k + 1}" for k in range(table.X.shape[1])]
    levels, pair = choices.levels(result), choices.pair(names)
    points = Cloud.of(table.parts)
    shown, axes_names = in_two_coordinates(result, points, names, pair)
    styles = style_clusters(result)
    written = []
    if result.settings.nested:
        written += save(figures.draw_tree(result, styles), folder, "tree", formats)
    written += save(figures.draw_counts(result), folder, "clusters", formats)
    for level in levels:
        figure = figures.draw_scatter(result, styles, shown, axes_names, level)
        written += save(figure, folder, f"scatter-level-{level:02d}", formats)
        if 3 <= len(names) <= MOST_PAIR_COLUMNS and pair is None:
            figure = figures.draw_pairs(result, styles, points, names, level)
            written += save(figure, folder, f"pairs-level-{level:02d}", formats)
        written += save(figures.draw_densities(result, styles, level), folder, f"densities-level-{level:02d}", formats)
    return written


def in_two_coordinates(
    result: HmacResult, points: Cloud, names: list[str], pair: tuple[int, int] | None
) -> tuple[Cloud, tuple[str, str]]:
    """The points in two columns, or in their principal coordinates, and the names of these two."""
    d = len(points.low)
    if pair is not None or d == 2:
        one, other = pair or (0, 1)
        return points.columns(one, other), (names[one], names[other])
    if d == 1:
        numbered = changed(points, lambda first, X: np.column_stack([X[:, 0], first + np.arange(len(X))]))
        return numbered, (names[0], "row")
    inward = changed(points, lambda _, X: result.frame.inward(X))
    mean, axes, share = figures.principal_coordinates(inward)
    along_axes = changed(inward, lambda _, Z: (Z - mean) @ axes.T)
    return along_axes, (f"first principal coordinate ({share[0]:.0%})", f"second principal coordinate ({share[1]:.0%})")


def changed(cloud: Cloud, change: Callable[[int, Array], Array]) -> Cloud:
    """The points of a cloud after a change of each part, of which the number of the first one is told."""
    return Cloud.of(lambda: ((first, change(first, part)) for first, part in cloud.parts()))
