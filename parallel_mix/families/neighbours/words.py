"""What `info` says of nearest neighbours."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.store.results import read_attribute, read_result


def describe(path: Path) -> list[str]:
    """How many there are, and how far the nearest and the farthest."""
    distances = read_result(path, "neighbours")["distances"]
    (n, k), near, far = distances.shape, distances[:, 0].mean(), distances[:, -1].mean()
    return [
        f"{path}: {k} nearest neighbours of {n:,} ({read_attribute(path, 'metric')})",
        f"mean distance {near:.6g} to the first, {far:.6g} to the last",
    ]
