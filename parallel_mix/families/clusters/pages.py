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
from parallel_mix.plots.maps import MOST_LISTED, Group, draw_map, short
from parallel_mix.plots.palette import COLOURS, MOST_STYLES
from parallel_mix.store.results import read_source
from parallel_mix.store.stored_matrix import matrix_at


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """A map of each clustering (from the distances, where they still are), and losses where there are several."""
    clusterings = read_clusterings(path)
    written: list[Path] = []
    if len(clusterings) > 1:
        written += save(_draw_losses(clusterings), folder, "losses", formats)
    source, dataset = read_source(path)
    if not source.exists():
        if not written:
            raise InputError(f"{source}, whose distances {path} was made from, is not there: there is nothing to draw.")
        return written
    matrix = matrix_at(source, dataset)
    if matrix.shape[0] != len(clusterings[0].labels):
        raise InputError(f"{source} has changed since {path} was made from it: make the result again.")
    chosen = sample_of(matrix.shape[0], np.random.default_rng(0))
    chosen = np.union1d(chosen, np.concatenate([one.centroids for one in clusterings]))
    Z, shares = scaled_coordinates(np.asarray(matrix.among(chosen, chosen), dtype=np.float64))
    for one in clusterings:
        figure = _draw_map(Z, shares, one.labels[chosen], np.searchsorted(chosen, one.centroids), one)
        written += save(figure, folder, f"map-{one.count:03d}-clusters", formats)
    return written


def _draw_map(Z: Any, shares: Any, labels: Any, medoids: Any, one: StoredClustering) -> Any:
    groups = [
        Group(labels == cluster, cluster if cluster < MOST_STYLES else -1, _label(one, cluster))
        for cluster in range(one.count)
    ]
    title = f"{one.count} clusters, total distance {one.loss:.5g}"
    return draw_map(Z, shares, groups, title, "cluster: rows (cross: medoid)", Z[medoids])


def _label(one: StoredClustering, cluster: int) -> str | None:
    of = f" {short(one.classes[cluster])}" if one.classes is not None else ""
    return f"{cluster}{of}: {one.sizes[cluster]:,}" if cluster < MOST_LISTED else None


def _draw_losses(clusterings: list[StoredClustering]) -> Any:
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    counts, losses = [one.count for one in clusterings], [one.loss for one in clusterings]
    axes.plot(counts, losses, marker="o", color=COLOURS[0], linewidth=1.2)
    axes.set_xlabel("clusters")
    axes.set_ylabel("total distance to the medoids")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(x=0.04)
    axes.set_ylim(bottom=0)
    axes.set_title("What each more cluster brings")
    tidy(axes)
    return figure
