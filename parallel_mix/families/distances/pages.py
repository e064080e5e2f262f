"""Pictures of a matrix of distances, of a sample of its rows where it is large."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parallel_mix.errors import InputError
from parallel_mix.families.distances.file import read_matrix_of
from parallel_mix.kernels.metrics.classical_scaling import scaled_coordinates
from parallel_mix.models.distances.checks import sample_of
from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.plots import distance_figures as figures
from parallel_mix.plots.distance_figures import UNKNOWN, Array, Classes
from parallel_mix.plots.figures import save
from parallel_mix.plots.maps import draw_map, groups_of_classes
from parallel_mix.store.stored_matrix import read_sides

TITLE = "Classical scaling: near things are near, as far as two coordinates can show it"


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """The matrix, how often each distance is, and where it is of things with themselves a map."""
    matrix, what = read_matrix_of(path)
    new, old = read_sides(path)
    own = old is None
    random = np.random.default_rng(0)
    rows = sample_of(matrix.shape[0], random)
    columns = rows if own else sample_of(matrix.shape[1], random)
    D = np.asarray(matrix.among(rows, columns), dtype=np.float64)
    if not np.isfinite(D).all():
        raise InputError(f"{path} has distances that are NaN or infinite: there is nothing to draw.")
    y = _taken(new.y, rows)
    across = y if old is None else _taken(old.y, columns)
    order = in_order(D, y) if own else _by_class(y, len(rows))
    order_across = order if own else _by_class(across, len(columns))
    size = " x ".join(f"{n:,}" for n in matrix.shape)
    about = size if D.shape == matrix.shape else f"{D.shape[0]:,} x {D.shape[1]:,} at random of {size}"
    sides = _taken(y, order), _taken(across, order_across)
    figure = figures.draw_matrix(D[np.ix_(order, order_across)], *sides, own, what, about)
    written = save(figure, folder, "matrix", formats)
    written += save(figures.draw_histogram(D, y, across, own, what), folder, "distances", formats)
    if own and len(D) > 2:
        written += save(
            draw_map(*scaled_coordinates(D), groups_of_classes(y, len(D), UNKNOWN), TITLE), folder, "map", formats
        )
    return written


def in_order(D: Array, y: Classes | None) -> NDArray[np.int64]:
    """Rows class by class, near ones beside each other."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(D) < 3:
        return _by_class(y, len(D))
    leaves = leaves_list(linkage(((D + D.T) / 2.0)[np.triu_indices(len(D), 1)], "average"))
    if y is None:
        return np.asarray(leaves, dtype=np.int64)
    place = np.empty(len(D), dtype=np.int64)
    place[leaves] = np.arange(len(D))
    return np.lexsort((place, y))


def _by_class(y: Classes | None, n: int) -> NDArray[np.int64]:
    return np.arange(n) if y is None else np.argsort(y, kind="stable")


def _taken(y: Classes | None, chosen: NDArray[np.int64]) -> Classes | None:
    """Classes of some rows; '?' where they are not known."""
    return None if y is None else np.where(is_known(y), y, UNKNOWN)[chosen]
