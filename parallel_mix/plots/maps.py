"""Maps: points in two coordinates, group by group, each in its colour and marker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parallel_mix.plots.figures import new_figure, tidy
from parallel_mix.plots.palette import MOST_STYLES, colour_of, marker_of

Array = NDArray[np.float64]
MOST_LISTED = 24
"""The most groups that a legend lists."""
MOST_DRAWN_EXACTLY = 2000
"""More points are an image within the picture, so that its file stays small."""
FAINTEST = 0.25
"""How opaque a bin with one point is; the fullest one is opaque."""


class Group(NamedTuple):
    """Points that belong together."""

    here: NDArray[np.bool_]
    style: int
    """Number of its colour and marker; -1: small grey dots."""
    label: str | None = None


def scatter_groups(axes: Any, Z: Array, groups: Sequence[Group], size: float) -> None:
    """Draw the points of each group, grey ones below the others."""
    many = len(Z) > MOST_DRAWN_EXACTLY
    for group in groups:
        grey = group.style < 0
        axes.scatter(
            Z[group.here, 0], Z[group.here, 1], s=size * (0.7 if grey else 1.0), linewidths=0,
            alpha=0.6 if grey else 0.8, zorder=1 if grey else 2, rasterized=many, label=group.label,
            color=colour_of(group.style), marker=marker_of(group.style),
        )  # fmt: skip


@dataclass(frozen=True)
class Cloud:
    """Points that are looked at part by part, as there may be too many to hold them all."""

    parts: Callable[[], Iterable[tuple[int, Array]]]  # the number of the first point of each part, and its points
    count: int
    low: Array  # the range of each coordinate
    high: Array

    @classmethod
    def of(cls, parts: Callable[[], Iterable[tuple[int, Array]]]) -> Cloud:
        """The cloud of these parts."""
        ranges = [(some.min(axis=0), some.max(axis=0), len(some)) for _, some in parts()]
        low, high, counts = zip(*ranges, strict=True)
        return cls(parts, sum(counts), np.min(low, axis=0), np.max(high, axis=0))

    def columns(self, *which: int) -> Cloud:
        """The same points in some of the coordinates."""
        chosen = list(which)
        return Cloud(
            lambda: ((first, part[:, chosen]) for first, part in self.parts()),
            self.count,
            self.low[chosen],
            self.high[chosen],
        )

    def all(self) -> Array:
        """All points together."""
        return np.concatenate([some for _, some in self.parts()])


def draw_bins(
    axes: Any, cloud: Cloud, styles_of: Callable[[int, int], NDArray[np.int64]], bins: int
) -> dict[int, tuple[float, float]]:
    """Draw many points as an image of `bins` x `bins`: each bin in the colour of most of its points, the more opaque
    the more there are; return the middle of each style's fullest bin. `styles_of` gives the style numbers of the points
    start..stop.
    """
    from matplotlib.colors import to_rgb

    low, high = cloud.low, cloud.high
    half = np.where(high > low, high / 2.0 - low / 2.0, 0.5)  # of the range, which itself may be too large for a double
    of_styles = np.zeros((MOST_STYLES + 1, bins, bins), dtype=np.int64)  # the first: of grey ones, whose style is -1
    for first, Z in cloud.parts():
        column, row = np.minimum((Z / 2.0 - low / 2.0) / half * bins, bins - 1).astype(np.int64).T
        np.add.at(of_styles, (styles_of(first, first + len(Z)) + 1, row, column), 1)
    there = of_styles.any(axis=(1, 2))
    counts, styles = of_styles[there], (np.flatnonzero(there) - 1).tolist()
    total = counts.sum(axis=0)
    image = np.empty((bins, bins, 4))
    image[..., :3] = np.array([to_rgb(colour_of(style)) for style in styles])[counts.argmax(axis=0)]
    opaque = FAINTEST + (1.0 - FAINTEST) * np.log(np.maximum(total, 1)) / np.log(max(total.max(), 2))
    image[..., 3] = np.where(total > 0, opaque, 0.0)
    (left, bottom), (right, top) = low, low + half + half
    axes.imshow(image, extent=(left, right, bottom, top), origin="lower", interpolation="nearest", zorder=2)
    axes.set_aspect("auto")
    fullest = [np.unravel_index(count.argmax(), count.shape) for count in counts]
    middles = [low + 2.0 * ((np.array([x, y]) + 0.5) / bins * half) for y, x in fullest]
    return {style: (float(x), float(y)) for style, (x, y) in zip(styles, middles, strict=True)}


def draw_map(
    Z: Array, shares: Array, groups: Sequence[Group], title: str, legend: str = "", crosses: Array | None = None
) -> Any:
    """A map by classical scaling, of which `shares` says how much each coordinate shows; `crosses` mark some places.

    Only the first groups that have a label are listed.
    """
    figure = new_figure(7.5, 6)
    axes = figure.add_subplot()
    scatter_groups(axes, Z, groups, size=14)
    if crosses is not None:
        axes.scatter(crosses[:, 0], crosses[:, 1], s=70, color="black", marker="+", linewidths=1.5)
    listed = sum(group.label is not None for group in groups)
    more = f"the first {listed} of {len(groups)}" if 0 < listed < len(groups) else ""
    if listed:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        heading = "\n".join(filter(None, (legend, more)))
        axes.legend(frameon=False, fontsize=8, title=heading or None, title_fontsize=8, **place)
    axes.set_aspect("equal", "datalim")
    axes.set_xlabel(f"first coordinate ({shares[0]:.0%} of all)")
    axes.set_ylabel(f"second coordinate ({shares[1]:.0%} of all)")
    axes.set_title(title)
    tidy(axes)
    return figure


def groups_of_classes(y: NDArray[np.str_] | None, rows: int, unknown: str) -> list[Group]:
    """A group for each class, the unknown one grey; without classes one group of all rows."""
    if y is None:
        return [Group(np.ones(rows, dtype=bool), 0)]
    names = [str(name) for name in np.unique(y)]
    return [
        Group(y == name, -1) if name == unknown or number >= MOST_LISTED else Group(y == name, number, short(name))
        for number, name in enumerate(names)
    ]


def short(name: str) -> str:
    """The name, cut short where it does not fit into a legend."""
    return name if len(name) <= 16 else name[:15] + "…"
