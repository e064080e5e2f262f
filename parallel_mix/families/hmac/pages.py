"""All pictures of one clustering, drawn from its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parallel_mix.errors import InputError
from parallel_mix.families.hmac.file import read_clustering
from parallel_mix.models.hmac.result import HmacResult
from parallel_mix.plots import hmac_figures as figures
from parallel_mix.plots.figures import save
from parallel_mix.plots.palette import Styles, style_clusters
from parallel_mix.store.results import read_data, read_names

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
    X = read_data(path).X
    names = read_names(path)[1] or [f"column {k + 1}" for k in range(X.shape[1])]
    levels, pair = choices.levels(result), choices.pair(names)
    styles = style_clusters(result)
    written = []
    if result.settings.nested:
        written += save(figures.draw_tree(result, styles), folder, "tree", formats)
    written += save(figures.draw_counts(result), folder, "clusters", formats)
    for level in levels:
        written += _plot_level(result, styles, X, names, pair, level, folder, formats)
    return written


def _plot_level(
    result: HmacResult,
    styles: Styles,
    X: NDArray[np.float64],
    names: list[str],
    pair: tuple[int, int] | None,
    level: int,
    folder: Path,
    formats: tuple[str, ...],
) -> list[Path]:
    if pair is not None:
        shown, labels = X[:, list(pair)], (names[pair[0]], names[pair[1]])
    elif X.shape[1] == 1:
        shown, labels = np.column_stack([X[:, 0], np.arange(len(X))]), (names[0], "row")
    elif X.shape[1] == 2:
        shown, labels = X, (names[0], names[1])
    else:
        Z = result.frame.inward(X)
        mean, axes, share = figures.principal_coordinates(Z)
        shown = (Z - mean) @ axes.T
        labels = (f"first principal coordinate ({share[0]:.0%})", f"second principal coordinate ({share[1]:.0%})")
    figure = figures.draw_scatter(result, styles, shown, labels, level)
    written = save(figure, folder, f"scatter-level-{level:02d}", formats)
    if 3 <= X.shape[1] <= MOST_PAIR_COLUMNS and pair is None:
        figure = figures.draw_pairs(result, styles, X, names, level)
        written += save(figure, folder, f"pairs-level-{level:02d}", formats)
    written += save(figures.draw_densities(result, styles, level), folder, f"densities-level-{level:02d}", formats)
    return written
