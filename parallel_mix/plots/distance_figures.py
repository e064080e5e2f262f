"""The figures of a matrix of distances, and of nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parallel_mix.plots.figures import new_figure, tidy
from parallel_mix.plots.maps import short
from parallel_mix.plots.palette import COLOURS

Array = NDArray[np.float64]
Classes = NDArray[np.str_]
MOST_CLASSES = 24
"""With more classes than these none is named at the sides of a matrix."""
UNKNOWN = "?"
"""The class that stands for rows whose class is not known."""
BINS = 80
"""Bins of the histogram of distances."""


def draw_matrix(D: Array, rows: Classes | None, columns: Classes | None, own: bool, what: str, about: str) -> Any:
    """A picture of all distances, with classes marked at its sides; `own`: of things to each other."""
    figure = new_figure(7.5, 6.5)
    axes = figure.add_subplot()
    image = axes.imshow(D, cmap="viridis", interpolation="nearest", aspect="equal" if own else "auto")
    figure.colorbar(image, ax=axes, label=what, shrink=0.85)
    for axis, classes in ((axes.yaxis, rows), (axes.xaxis, columns)):
        if classes is None or len(np.unique(classes)) > MOST_CLASSES:
            axis.set_ticks([])
            continue
        starts = np.flatnonzero(np.r_[True, classes[1:] != classes[:-1]])
        ends = np.r_[starts[1:], len(classes)]
        axis.set_ticks((starts + ends - 1) / 2, [short(classes[start]) for start in starts])
        axis.set_tick_params(labelsize=8, length=0)
        for end in ends[:-1]:
            (axes.axhline if axis is axes.yaxis else axes.axvline)(end - 0.5, color="white", linewidth=0.8)
    if not own:
        axes.set_ylabel("new")
        axes.set_xlabel("old")
    order = "" if not own else ", like beside like" if rows is None else ", class by class"
    axes.set_title(f"Distances ({what}), {about}{order}")
    return figure


def draw_histogram(D: Array, y: Classes | None, of_columns: Classes | None, own: bool, what: str) -> Any:
    """A histogram of the distances, within and between classes where these are known."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    counted = np.arange(D.shape[0])[:, None] < np.arange(D.shape[1]) if own else np.ones(D.shape, dtype=bool)
    if own and not np.array_equal(D, D.T):
        counted |= counted.T
    edges = np.histogram_bin_edges(D[counted], BINS)
    if y is None or of_columns is None or len(np.unique(y)) < 2:
        axes.hist(D[counted], edges, color="#56B4E9")
        axes.set_ylabel("pairs")
    else:
        same = y[:, None] == of_columns
        counted &= (y != UNKNOWN)[:, None] & (of_columns != UNKNOWN)
        for chosen, colour, label in ((same, "#0072B2", "of one class"), (~same, "#E69F00", "of two classes")):
            values = D[chosen & counted]
            if values.size:
                axes.hist(values, edges, density=True, color=colour, alpha=0.55, label=f"{label}: {values.size:,}")
        axes.set_ylabel("density")
        axes.legend(frameon=False)
    axes.set_xlabel(what)
    axes.set_title("How far things are apart")
    tidy(axes)
    return figure


def draw_neighbours(distances: Array, what: str) -> Any:
    """Distances to the first, a middle and the last neighbour, each in rising order: a knee tells dense from sparse."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    k = distances.shape[1]
    percent = np.linspace(0.0, 100.0, len(distances))
    for number, colour in zip(sorted({0, k // 2, k - 1}), COLOURS, strict=False):
        axes.plot(percent, np.sort(distances[:, number]), color=colour, linewidth=1.4, label=f"neighbour {number + 1}")
    axes.set_xlabel("% of the rows, by rising distance")
    axes.set_ylabel(what)
    axes.set_title(f"Distances to the {k} nearest")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def draw_agreement(same: Array) -> Any:
    """The share of rows, in %, whose first, second, ... neighbour is of their own class."""
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    shares = 100.0 * same.mean(axis=0)
    axes.plot(np.arange(1, len(shares) + 1), shares, marker="o", markersize=4, color=COLOURS[0], linewidth=1.2)
    axes.set_xlabel("neighbour")
    axes.set_ylabel("% of the rows whose neighbour is of their class")
    axes.set_ylim(0, 102)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title("Neighbours of the same class")
    tidy(axes)
    return figure
