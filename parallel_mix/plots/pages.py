"""The pictures of a result of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from parallel_mix.errors import InputError
from parallel_mix.extras import need
from parallel_mix.plots.cluster_pages import plot_clusters
from parallel_mix.plots.crossval_pages import plot_comparison
from parallel_mix.plots.distance_pages import plot_distances, plot_neighbours
from parallel_mix.plots.hlm_pages import plot_hlm
from parallel_mix.plots.hmac_pages import LevelChoices, plot_hmac
from parallel_mix.store.results import kind_of

FORMATS = ("png", "svg", "pdf")
PLAIN: dict[str, Callable[[Path, Path, tuple[str, ...]], list[Path]]] = {
    "distances": plot_distances,
    "neighbours": plot_neighbours,
    "clusters": plot_clusters,
    "hlm": plot_hlm,
    "crossval": plot_comparison,
}


def plot_result(path: Path, folder: Path, formats: tuple[str, ...], choices: LevelChoices) -> list[Path]:
    """Draw all figures of a result; returns the files written."""
    need("plots", "Pictures")
    if unknown := [kind for kind in formats if kind not in FORMATS]:
        raise InputError(f"There is no format {unknown[0]!r}: use {', '.join(FORMATS)}.")
    kind = kind_of(path)
    if kind not in (*PLAIN, "hmac"):
        raise InputError(f"{path} is a result of the kind {kind!r}, of which there are no pictures.")
    if kind in PLAIN and choices != LevelChoices():
        raise InputError(f"{path} is a result of the kind {kind!r}: it has no --level and no --columns to choose.")
    if kind in PLAIN:
        return PLAIN[kind](path, folder, formats)
    return plot_hmac(path, folder, formats, choices)
