"""Pictures of a clustering by distances: a map, and the loss against the number of clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.families.clusters.file import StoredClustering, read_clusterings
from parallel_mix.kernels.metrics.classical_scaling import scaled_coordinates
from parallel_mix.models.distances.checks import sample_of
from parallel_mix.plots.figures import new_figure, save, tidy
from parallel_mix.plots.palette import COLOURS, GREY, MARKERS, MOST_STYLES
from parallel_mix.store.results import read_source
from parallel_mix.store.stored_matrix import matrix_at

MOST_LISTED = 24


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """A map of each clustering (from the distances, where they still are), and losses where there are several."""
    found = read_clusterings(path)
    written: list[Path] = []
    if len(found) > 1:
        written += save(_draw_losses(found), folder, "losses", formats)
    source, dataset = read_source(path)
    if not source.exists():
        if not written:
            raise InputError(f"{source}, whose distances {path} was made from, is not there: there is nothing to draw.")
        return written
    matrix = matrix_at(source, dataset)
    if matrix.shape[0] != len(found[0].labels):
        raise InputError(f"{source} has changed since {path} was made from it: make the result again.")
    chosen = sample_of(matrix.shape[0], np.random.default_rng(0))
    chosen = np.union1d(chosen, np.concatenate([one.centroids for one in found]))
    Z, shares = scaled_coordinates(np.asarray(matrix.among(chosen, chosen), dtype=np.float64))
    for one in found:
        figure = _draw_map(Z, shares, one.labels[chosen], np.searchsorted(chosen, one.centroids), one)
        written += save(figure, folder, f"map-{one.count:03d}-clusters", formats)
    return written


def _draw_map(Z: Any, shares: Any, labels: Any, centroids: Any, one: StoredClustering) -> Any:
    figure = new_figure(7.5, 6)
    axes = figure.add_subplot()
    for cluster in range(one.count):
        here, styled = labels == cluster, cluster < MOST_STYLES
        colour = COLOURS[cluster % len(COLOURS)] if styled else GREY
        marker = MARKERS[(cluster + cluster // len(COLOURS)) % len(MARKERS)] if styled else "."
        of = f" {one.classes[cluster][:16]}" if one.classes is not None else ""
        label = f"{cluster}{of}: {one.sizes[cluster]:,}" if cluster < MOST_LISTED else None
        axes.scatter(Z[here, 0], Z[here, 1], s=14, color=colour, marker=marker, linewidths=0, alpha=0.75, label=label)
    axes.scatter(Z[centroids, 0], Z[centroids, 1], s=70, color="black", marker="+", linewidths=1.5, label="medoids")
    more = "" if one.count <= MOST_LISTED else f"\n(the first {MOST_LISTED} of {one.count})"
    axes.legend(
        title=f"cluster: rows{more}",
        fontsize=8,
        title_fontsize=8,
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    axes.set_aspect("equal", "datalim")
    axes.set_xlabel(f"first coordinate ({shares[0]:.0%} of all)")
    axes.set_ylabel(f"second coordinate ({shares[1]:.0%} of all)")
    axes.set_title(f"{one.count} clusters, total distance {one.loss:.5g}")
    tidy(axes)
    return figure


def _draw_losses(found: list[StoredClustering]) -> Any:
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    axes.plot([one.count for one in found], [one.loss for one in found], marker="o", color=COLOURS[0], linewidth=1.2)
    axes.set_xlabel("clusters")
    axes.set_ylabel("total distance to the medoids")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(x=0.04)
    axes.set_ylim(bottom=0)
    axes.set_title("What each more cluster brings")
    tidy(axes)
    return figure
