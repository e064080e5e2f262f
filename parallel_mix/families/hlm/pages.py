"""Pictures of a classifier over distances: how it was chosen, whether its posteriors hold, how it grew, a map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parallel_mix.errors import InputError
from parallel_mix.families.hlm.file import read_model
from parallel_mix.kernels.metrics.classical_scaling import scaled_coordinates
from parallel_mix.models.distances.checks import sample_of
from parallel_mix.models.hlm.model import HlmModel
from parallel_mix.plots.distance_figures import UNKNOWN
from parallel_mix.plots.figures import new_figure, save, tidy
from parallel_mix.plots.maps import draw_map, groups_of_classes
from parallel_mix.plots.palette import COLOURS, GREY
from parallel_mix.store.results import read_classes, read_source
from parallel_mix.store.stored_matrix import matrix_at

Array = NDArray[np.float64]
BINS = 10
TITLE = "Classes and their components (crosses), by classical scaling"
TITLE_OF_KERNEL = "Classes, by classical scaling; every row is a component"


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """Errors of the candidates, calibration by rows held out, errors of batches; a map where the distances are."""
    stored = read_model(path)
    names, y = stored.names, read_classes(path)
    written: list[Path] = []
    if stored.selection is not None:
        written += save(_draw_selection(stored.selection, stored.model.count), folder, "selection", formats)
        posteriors = stored.selection["posteriors"]
        truth = np.array(y)[:, None] == np.array(names)
        known = np.isfinite(posteriors).all(axis=1)
        written += save(draw_calibration(posteriors[known], truth[known]), folder, "calibration", formats)
    if len(stored.history["rows"]) > 1:
        written += save(_draw_history(stored.history), folder, "history", formats)
    source, dataset = read_source(path)
    if y is not None and source.exists():
        written += save(
            _draw_components(stored.model, np.array(y), matrix_at(source, dataset), path), folder, "map", formats
        )
    if not written:
        raise InputError(f"{path} knows nothing to draw: no cross-validation, no batches, and {source} is not there.")
    return written


def _draw_selection(selection: dict[str, Any], chosen: int) -> Any:
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    errors, labels = 100.0 * selection["errors"], [str(k) if k else "kernel" for k in selection["candidates"]]
    at = np.arange(len(labels))
    axes.plot(np.repeat(at, errors.shape[1]), errors.ravel(), ".", color=GREY, alpha=0.6, label="a fold")
    means = np.nanmean(errors, axis=1)
    axes.plot(at, means, "o-", color=COLOURS[0], linewidth=1.2, label="mean")
    best = list(selection["candidates"]).index(chosen)
    axes.plot(at[best], means[best], "o", color=COLOURS[5], markersize=9, label=f"chosen: {means[best]:.1f} %")
    axes.set_xticks(at, labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("components of each class")
    axes.set_ylabel("error in rows held out, %")
    axes.set_title("What cross-validation says of each number of components")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def draw_calibration(posteriors: Array, truth: NDArray[np.bool_]) -> Any:
    """Of all rows and classes: how often a row is of a class, against the posterior that said so."""
    p, true = posteriors.ravel(), truth.ravel()
    number = np.minimum((p * BINS).astype(int), BINS - 1)
    counts = np.bincount(number, minlength=BINS)
    some = counts > 0
    said = np.bincount(number, weights=p, minlength=BINS)[some] / counts[some]
    share = np.bincount(number, weights=true, minlength=BINS)[some] / counts[some]
    n, z = counts[some], 1.96  # Wilson's interval
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    figure = new_figure(6, 6)
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":", label="as it should be")
    bars = np.maximum([share - (middle - half), middle + half - share], 0.0)
    axes.errorbar(said, share, yerr=bars, fmt="o-", color=COLOURS[0], linewidth=1.2, capsize=3, label="rows held out")
    axes.set_ylabel("share of rows that are of the class")
    axes.set_title("Do the posteriors keep their word? (95 % intervals)")
    axes.legend(frameon=False)
    below.bar((np.arange(BINS) + 0.5) / BINS, counts, width=0.9 / BINS, color=COLOURS[0])
    below.set_yscale("log")
    below.set_ylabel("how many")
    below.set_xlabel("posterior of the class")
    for panel in (axes, below):
        tidy(panel)
    return figure


def _draw_history(history: dict[str, Any]) -> Any:
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    rows, errors = np.asarray(history["rows"]), 100.0 * np.asarray(history["errors"])
    schemes = np.asarray(history["schemes"])
    for scheme, label, colour in (
        (0, "fit, rows held out", GREY),
        (1, "scheme 1", COLOURS[0]),
        (2, "scheme 2", COLOURS[1]),
    ):
        here = schemes == scheme
        if here.any() and np.isfinite(errors[here]).any():
            axes.plot(rows[here], errors[here], "o-", color=colour, linewidth=1.2, label=label)
    if np.isfinite(errors).any():
        axes.legend(frameon=False)
        axes.set_ylim(0.0, 1.25 * float(np.nanmax(errors)) or 1.0)
    else:
        axes.text(
            0.5, 0.5, "no distances of new rows to the old components were given", ha="center", transform=axes.transAxes
        )
    axes.set_xlabel("rows the model knows after the batch")
    axes.set_ylabel("error, %")
    axes.set_title("Each batch, told by the model before it saw it")
    tidy(axes)
    return figure


def _draw_components(model: HlmModel, y: NDArray[np.str_], matrix: Any, path: Path) -> Any:
    centroids = model.centroids
    if matrix.shape != (len(y), len(y)) or centroids.max() >= len(y):
        raise InputError(f"The distances of {path} have changed since it was made from them: make the result again.")
    chosen = sample_of(len(y), np.random.default_rng(0))
    if model.count:
        chosen = np.union1d(chosen, centroids)
    Z, shares = scaled_coordinates(np.asarray(matrix.among(chosen, chosen), dtype=np.float64))
    groups = groups_of_classes(np.where(y == "", UNKNOWN, y)[chosen], len(chosen), UNKNOWN)
    crosses = Z[np.searchsorted(chosen, centroids)] if model.count else None
    return draw_map(Z, shares, groups, TITLE if model.count else TITLE_OF_KERNEL, crosses=crosses)
