"""Pictures of nearest neighbours."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.families.neighbours.file import read_neighbours
from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.plots import distance_figures as figures
from parallel_mix.plots.figures import save
from parallel_mix.store.stored_matrix import read_sides


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """How far the neighbours are, and how many of them are of the row's class."""
    indices, distances, what = read_neighbours(path)
    written = save(figures.draw_neighbours(distances, what), folder, "neighbours", formats)
    new, old = read_sides(path)
    of_old = new.y if old is None else old.y
    if new.y is not None and of_old is not None:
        near, known = of_old[indices], is_known(new.y)
        same = (near == new.y[:, None])[known]
        written += save(figures.draw_agreement(same), folder, "agreement", formats)
    return written
