"""Pictures of nearest neighbours."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.models.distances.pairwise import is_known
from parallel_mix.plots import distance_figures as figures
from parallel_mix.plots.figures import save
from parallel_mix.store.results import read_attribute, read_result
from parallel_mix.store.stored_matrix import read_sides


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """How far the neighbours are, and how many of them are of the row's class."""
    found, what = read_result(path, "neighbours"), read_attribute(path, "metric")
    written = save(figures.draw_neighbours(found["distances"], what), folder, "neighbours", formats)
    new, old = read_sides(path)
    of_old = new.y if old is None else old.y
    if new.y is not None and of_old is not None:
        near, known = of_old[found["indices"]], is_known(new.y)
        same = (near == new.y[:, None])[known]
        written += save(figures.draw_agreement(same), folder, "agreement", formats)
    return written
