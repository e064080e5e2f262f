"""Results of `parallel-mix hmac`: a clustering at every bandwidth, its modes in the coordinates of the data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.models.hmac.mode_tree import Level
from parallel_mix.models.hmac.points import Frame
from parallel_mix.models.hmac.result import HmacResult, HmacSettings
from parallel_mix.store.results import Tree, read_result

LAYOUT = (
    ("/data/X, w, y, rows, columns", "the data (with `--no-data` only where they are); attributes `digest`, `path`"),
    ("/hmac@default_level, @settings, @spread", "the level shown; what decided the answer; the largest standard "
     "deviation of a column in the coordinates of the analysis"),
    ("/hmac/bandwidths (L)", "the bandwidths, in data units (of standardized data with `--standardize`)"),
    ("/hmac/centre, scale (d)", "the coordinates of the analysis are (x - centre) / scale"),
    ("/hmac/labels (L, n) int32", "the cluster of each row at each level; 0 is the largest (by weight, where rows "
     "have one). Of nested levels with more than 50,000,000 labels together only `(n)`, those of level 0: the `parent` "
     "of each cluster leads to the levels above"),
    ("/hmac/plateaus (p, 3)", "stable ranges: first level, last level, clusters of more than one row"),
    ("/hmac/levels/000/modes (m, d)", "modes in data units, by falling size (weight, where rows have one), then "
     "falling density (nine digits of its log), then lowest row"),
    ("/hmac/levels/000/density, log_density (m)", "the density at the modes"),
    ("/hmac/levels/000/sizes (m)", "the rows of each cluster"),
    ("/hmac/levels/000/parent (m)", "the cluster of the next level; -1 at the last level and with `--flat`"),
    ("/hmac/levels/000/iterations (m)", "the steps of the longest ascent that ended there"),
    ("/hmac/levels/000/boundary (b)", "rows whose ascent was seen within 0.01 bandwidths of a saddle: they lie near a "
     "watershed. Nested levels above keep to what was decided for them here, and do not list them again"),
    ("/hmac/levels/000@bandwidth, @clusters, @capped, @unchanged", "the bandwidth, the number of clusters, ascents "
     "that hit the limit of 100,000 steps, and whether the clustering is that of the level before"),
)  # fmt: skip


MOST_LABELS = 50_000_000
"""Of nested levels with more labels together, those of the lowest level are kept."""


def tree_of(result: HmacResult) -> Tree:
    """The groups of a result."""
    lowest = result.levels[0].first_labels
    only_lowest = result.settings.nested and len(result.levels) * len(lowest) > MOST_LABELS
    tree: Tree = {
        "@settings": json.dumps(asdict(result.settings)),
        "@spread": result.frame.spread,
        "@default_level": result.default_level,
        "centre": result.frame.centre,
        "scale": result.frame.scale,
        "bandwidths": result.bandwidths,
        "labels": lowest if only_lowest else result.labels,
        "plateaus": np.array(result.plateaus, dtype=np.int32).reshape(-1, 3),
    }
    levels = {f"{number:03d}": tree_of_level(level, result.frame) for number, level in enumerate(result.levels)}
    return {"hmac": tree | {"levels": levels}}


def tree_of_level(level: Level, frame: Frame) -> Tree:
    """The group of one level, without its labels."""
    shown = level.outward(frame)
    with np.errstate(over="ignore", under="ignore"):
        density = np.exp(shown.log_density)
    return {
        "@bandwidth": level.bandwidth,
        "@capped": level.capped,
        "@clusters": len(level.sizes),
        "@unchanged": level.unchanged,
        "modes": shown.modes,
        "density": density,
        "log_density": shown.log_density,
        "sizes": level.sizes,
        "parent": level.parent,
        "iterations": level.iterations,
        "boundary": level.boundary,
    }


def read_clustering(path: Path) -> HmacResult:
    """The result in a file."""
    try:
        return result_of(read_result(path, "hmac"))
    except (KeyError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The result is damaged ({error}): make it again.") from error


def result_of(tree: Tree) -> HmacResult:
    """The result from its group."""
    settings = json.loads(tree["@settings"])
    settings.setdefault("density", "exact")  # of files from before there were others
    settings["range"] = tuple(settings["range"])
    settings["bandwidths"] = tuple(settings["bandwidths"]) if settings["bandwidths"] else None
    frame = Frame(tree["centre"], tree["scale"], float(tree["@spread"]))
    groups = [tree["levels"][f"{number:03d}"] for number in range(len(tree["bandwidths"]))]
    levels = [
        level_of(group, *labels, frame)
        for group, labels in zip(groups, _labels_of(tree["labels"], groups), strict=True)
    ]
    ranges = [(int(a), int(b), int(c)) for a, b, c in tree["plateaus"]]
    default = int(tree["@default_level"])
    return HmacResult(HmacSettings(**settings), frame, tree["bandwidths"], levels, ranges, default)


def _labels_of(labels: np.ndarray, groups: list[Tree]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The labels that rows climbed to for each level, and the cluster that each of these is joined to there."""
    joins = np.zeros(0, dtype=np.int32)
    if labels.ndim == 2:
        yield from ((some, joins) for some in labels)
        return
    for number in range(len(groups)):
        yield labels, joins
        parent = groups[number]["parent"]
        joins = parent[joins] if number else parent


def level_of(tree: dict[str, Any], first_labels: np.ndarray, joins: np.ndarray, frame: Frame) -> Level:
    """One level from its group."""
    kept = ("modes", "log_density", "sizes", "iterations", "boundary", "parent")
    return Level.inward(
        frame,
        bandwidth=float(tree["@bandwidth"]),
        first_labels=first_labels,
        joins=joins,
        capped=int(tree["@capped"]),
        unchanged=bool(tree["@unchanged"]),
        **{name: tree[name] for name in kept},
    )
