"""What `info` says of nearest neighbours."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.families.neighbours.file import read_neighbours


def describe(path: Path) -> list[str]:
    """How many there are, and how far the nearest and the farthest."""
    _, distances, metric = read_neighbours(path)
    (n, k), near, far = distances.shape, distances[:, 0].mean(), distances[:, -1].mean()
    return [
        f"{path}: {k} nearest neighbours of {n:,} ({metric})",
        f"mean distance {near:.6g} to the first, {far:.6g} to the last",
    ]
