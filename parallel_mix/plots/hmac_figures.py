"""The figures of a clustering by mode association."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parallel_mix.models.hmac.result import HmacResult
from parallel_mix.plots.figures import new_figure, tidy
from parallel_mix.plots.maps import Cloud, Group, draw_bins, scatter_groups
from parallel_mix.plots.palette import GREY, Styles

Array = NDArray[np.float64]
MOST_POINTS = 20_000
"""The most points that are drawn one by one; more are counted in bins."""
BINS, BINS_OF_A_PAIR = 250, 100
"""Bins of a picture of all points, and of one of its parts in the picture of all pairs of columns."""
MOST_NAMED = 12
"""The most clusters that a legend names."""


def draw_tree(result: HmacResult, styles: Styles) -> Any:
    """The tree of modes over bandwidth: a line a cluster, as thick as it is large, joined where clusters merge."""
    from matplotlib.collections import LineCollection

    figure = new_figure(9, 6)
    axes = figure.add_subplot()
    places = _places(result)
    sigma = result.bandwidths
    top = sigma[-1] * (sigma[-1] / sigma[-2] if len(sigma) > 1 else 1.2) ** 0.5
    n = result.levels[0].rows
    segments, colours, widths = [], [], []
    for number, level in enumerate(result.levels):
        upper = sigma[number + 1] if number + 1 < len(sigma) else top
        for cluster, size in enumerate(level.sizes):
            x, colour = places[number][cluster], styles.colour(number, cluster)
            width = 0.5 + 5.5 * np.sqrt(size / n)
            if colour == GREY:  # many small ones become a light wash, not a wall
                width *= min(1.0, 200 / len(level.sizes))
            segments.append([(x, sigma[number] * 0.997), (x, upper * 1.003)])  # overlapping: no seams
            colours.append(colour)
            widths.append(width)
            if number + 1 < len(sigma):
                segments.append([(x, upper), (places[number + 1][level.parent[cluster]], upper)])
                colours.append(colour)
                widths.append(min(width, 1.5))
    order = np.argsort([colour != GREY for colour in colours], kind="stable")
    lines = LineCollection(
        [segments[k] for k in order],
        colors=[colours[k] for k in order],
        linewidths=[widths[k] for k in order],
        capstyle="butt",
    )
    axes.add_collection(lines)
    axes.set_yscale("log")
    axes.set_ylim(sigma[0] * 0.95, top * 1.05)
    axes.set_xlim(-0.01, 1.01)
    axes.set_xticks([])
    _bandwidth_ticks(axes.yaxis, sigma)
    axes.axhline(sigma[result.default_level], color="black", linewidth=0.8, linestyle=":")
    axes.text(1.01, sigma[result.default_level], " shown", va="center", fontsize=8)
    axes.set_ylabel("bandwidth")
    axes.set_xlabel("clusters (thickness: rows; grey: under 1 % of the rows)")
    axes.set_title("Tree of modes")
    tidy(axes)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    return figure


def _places(result: HmacResult) -> list[Array]:
    """A place between 0 and 1 for each cluster: the middle of its children's, every lowest cluster sqrt(size) wide."""
    levels = result.levels
    chains = [np.arange(len(levels[0].sizes))]
    for level in levels[:-1]:
        chains.append(level.parent[chains[-1]])
    order = np.lexsort(chains)  # the last key, the top level, sorts first
    width = np.sqrt(levels[0].sizes[order].astype(float))
    middle = np.empty(len(order))
    middle[order] = (np.cumsum(width) - width / 2) / width.sum()
    weight = np.empty(len(order))
    weight[order] = width
    return [
        np.bincount(chain, weights=middle * weight, minlength=len(level.sizes))
        / np.bincount(chain, weights=weight, minlength=len(level.sizes))
        for chain, level in zip(chains, levels, strict=True)
    ]


def draw_counts(result: HmacResult) -> Any:
    """Number of clusters against bandwidth, stable ranges marked."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    sigma = result.bandwidths
    every = [len(level.sizes) for level in result.levels]
    several = [count or np.nan for count in result.several]
    axes.plot(sigma, every, marker="o", color="#56B4E9", markersize=4, linewidth=1.2, label="clusters")
    axes.plot(sigma, several, marker="s", color="#D55E00", markersize=4, linewidth=1.2, label="of more than one row")
    labelled = False
    for first, last, count in result.plateaus:
        if last > first and count >= 2:
            axes.axvspan(
                sigma[first], sigma[last], color="#009E73", alpha=0.15, label=None if labelled else "stable range"
            )
            axes.annotate(
                f"{count}", (np.sqrt(sigma[first] * sigma[last]), count), xytext=(0, 9), textcoords="offset points",
                ha="center", fontsize=9, color="#00684B", fontweight="bold",
            )  # fmt: skip
            labelled = True
    shown = result.default_level
    axes.axvline(sigma[shown], color="black", linewidth=0.8, linestyle=":", label=f"shown: level {shown}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if t <= max(every) * 1.5]
    axes.set_yticks(ticks, [f"{t:,}" for t in ticks])
    axes.set_ylim(0.8, max(every) * 1.6)
    _bandwidth_ticks(axes.xaxis, sigma)
    axes.set_xlabel("bandwidth")
    axes.set_ylabel("number")
    axes.set_title("Clusters against bandwidth")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def draw_scatter(result: HmacResult, styles: Styles, cloud: Cloud, names: tuple[str, str], level: int) -> Any:
    """Points in two coordinates, clusters in their colours and markers; of many points their number in each bin."""
    figure = new_figure(7.5, 6)
    axes = figure.add_subplot()
    _scatter(axes, result, styles, cloud, level, size=14, bins=BINS, named=True)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    chosen = result.levels[level]
    k, several = len(chosen.sizes), result.several[level]
    of_them = "" if several == k else f", {several} of more than one row"
    axes.set_title(f"Level {level}, bandwidth {chosen.bandwidth:.4g}: {k} cluster{'s' if k != 1 else ''}{of_them}")
    _legend(axes, result, styles, level)
    tidy(axes)
    return figure


def draw_pairs(result: HmacResult, styles: Styles, cloud: Cloud, names: list[str], level: int) -> Any:
    """The points in every pair of columns, clusters in their colours and markers."""
    d = len(cloud.low)
    figure = new_figure(2.0 * d + 1, 2.0 * d + 0.5)
    grid = figure.subplots(d, d, squeeze=False)
    for row in range(d):
        for column in range(d):
            axes = grid[row][column]
            if row == column:
                edges, heights = _histogram(cloud.columns(row), 30)
                axes.stairs(heights, edges, fill=True, color="#BBBBBB")
                axes.set_yticks([])
            else:
                _scatter(axes, result, styles, cloud.columns(column, row), level, size=5, bins=BINS_OF_A_PAIR)
            axes.tick_params(labelsize=6)
            if row == d - 1:
                axes.set_xlabel(names[column], fontsize=8)
            if column == 0:
                axes.set_ylabel(names[row], fontsize=8)
            tidy(axes)
    figure.suptitle(f"Level {level}, bandwidth {result.bandwidths[level]:.4g}: all pairs of columns")
    return figure


def draw_densities(result: HmacResult, styles: Styles, level: int) -> Any:
    """Log density at the modes of a level against the size of their clusters."""
    figure = new_figure(7.5, 4.5)
    axes = figure.add_subplot()
    chosen = result.levels[level]
    log_density = chosen.outward(result.frame).log_density / np.log(10)
    for style in sorted({(styles.colour(level, k), styles.marker(level, k)) for k in range(len(chosen.sizes))}):
        here = [k for k in range(len(chosen.sizes)) if (styles.colour(level, k), styles.marker(level, k)) == style]
        axes.scatter(chosen.sizes[here], log_density[here], color=style[0], marker=style[1], s=40, zorder=3)
    for k in range(min(12, len(chosen.sizes))):
        axes.annotate(str(k), (chosen.sizes[k], log_density[k]), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    near = chosen.sizes.max() < 10 * chosen.sizes.min()  # no power of ten may lie between
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:,.0f}" if near else "")
    axes.tick_params(axis="x", which="both", length=4, pad=4)
    axes.set_xlabel("rows of the cluster")
    axes.set_ylabel("log10 of the density at its mode")
    axes.set_title(f"Density at the modes of level {level}, bandwidth {chosen.bandwidth:.4g}")
    tidy(axes)
    return figure


def _histogram(cloud: Cloud, bins: int) -> tuple[Array, NDArray[np.int64]]:
    """The edges of bins of one coordinate, and the number of points in each."""
    between = (float(cloud.low[0]), float(cloud.high[0]))
    counts = np.sum([np.histogram(part, bins, between)[0] for _, part in cloud.parts()], axis=0)
    return np.histogram_bin_edges(np.array(between), bins), counts


def principal_coordinates(cloud: Cloud) -> tuple[Array, Array, Array]:
    """First two principal axes of points: mean, axes (2, d), shares of the variance."""
    half = cloud.high / 2.0 - cloud.low / 2.0
    reach = float(half.max()) or 1.0  # squares, and sums, of very large numbers are infinite
    middle = cloud.low + half
    mean = sum(((some - middle) / reach).sum(axis=0) for _, some in cloud.parts()) / cloud.count
    centred = ((some - middle) / reach - mean for _, some in cloud.parts())
    values, vectors = np.linalg.eigh(sum(some.T @ some for some in centred))
    mean = middle + mean * reach
    axes = vectors[:, ::-1][:, :2].T
    flip = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return mean, axes * flip[:, None], values[::-1][:2] / values.sum()


def _scatter(
    axes: Any,
    result: HmacResult,
    styles: Styles,
    cloud: Cloud,
    level: int,
    size: float,
    bins: int,
    named: bool = False,
) -> None:
    """Draw the points, or their number in each bin with the numbers of the clusters that are named in the legend."""
    chosen = result.levels[level]

    def styles_of(start: int, stop: int) -> NDArray[np.int64]:
        """The style numbers of the rows start..stop."""
        return np.asarray(styles.numbers[level][chosen.labels_of(start, stop)])

    if cloud.count <= MOST_POINTS:
        numbers = styles_of(0, cloud.count)
        groups = [Group(numbers == number, int(number)) for number in np.unique(numbers)]
        scatter_groups(axes, cloud.all(), groups, size)
        return
    fullest = draw_bins(axes, cloud, styles_of, bins)
    for cluster in _named(styles, level) if named else []:
        place = fullest[int(styles.numbers[level][cluster])]
        axes.text(*place, str(cluster), ha="center", va="center", fontsize=9, fontweight="bold", zorder=3)


def _named(styles: Styles, level: int) -> list[int]:
    """The largest clusters, those that a legend names."""
    return [int(k) for k in np.flatnonzero(styles.numbers[level] >= 0)[:MOST_NAMED]]


def _legend(axes: Any, result: HmacResult, styles: Styles, level: int) -> None:
    """The largest clusters, and what grey is."""
    from matplotlib.lines import Line2D

    sizes = result.levels[level].sizes
    named = _named(styles, level)
    handles = [
        Line2D([], [], linestyle="", marker=styles.marker(level, k), color=styles.colour(level, k), label=f"{k}: {s:,}")
        for k, s in ((k, sizes[k]) for k in named)
    ]
    rest = len(sizes) - len(named)
    if rest:
        handles.append(Line2D([], [], linestyle="", marker=".", color=GREY, label=f"{rest} more"))
    many = ";\nthe darker, the more" if result.levels[level].rows > MOST_POINTS else ""
    axes.legend(
        handles=handles, title=f"cluster: rows{many}", fontsize=8, title_fontsize=8, loc="center left",
        bbox_to_anchor=(1.0, 0.5), frameon=False,
    )  # fmt: skip


def _bandwidth_ticks(axis: Any, sigma: Array) -> None:
    """Ticks at some of the bandwidths, not crowded on a log scale."""
    from matplotlib.ticker import NullLocator

    ticks = [sigma[0]]
    for value in sigma[1:]:
        if value / ticks[-1] > (sigma[-1] / sigma[0]) ** (1 / 9) or value == sigma[-1]:
            ticks.append(value)
    axis.set_ticks(ticks, [f"{t:.3g}" for t in ticks])
    axis.set_minor_locator(NullLocator())
