"""Results of `parallel-mix distances --knn`: the nearest of each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.store.results import Tree, read_attribute, read_result

LAYOUT = (
    ("/@metric, @k; @p, @sigma, @symmetric, @symmetrize", "what decided the neighbours; the last ones where they have "
     "a say"),
    ("/neighbours/indices, distances (n, k)", "the old rows nearest to each new one, counted from 0, and how far they "
     "are, by rising distance, of equals the lowest row; no row is its own neighbour"),
    ("/y, rows, w", "known classes, names and weights of the rows"),
    ("/old/y, rows, w", "those of the old rows, where they are other things"),
)  # fmt: skip


def tree_of(indices: np.ndarray, distances: np.ndarray) -> Tree:
    """The group of the neighbours."""
    return {"neighbours": {"indices": indices, "distances": distances}}


def read_neighbours(path: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """Indices and distances of the neighbours, and the metric."""
    tree = read_result(path, "neighbours")
    return tree["indices"], tree["distances"], read_attribute(path, "metric")
