"""Colours and markers that stay with a cluster from level to level, and that the colour-blind can tell apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parallel_mix.models.hmac.result import HmacResult

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7A5195", "#A08A00")
"""Okabe and Ito's colours, black and yellow replaced by darker ones that show on white."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p", "h")
GREY = "#9A9A9A"
MOST_STYLES = len(COLOURS) * len(MARKERS)


def colour_of(style: int) -> str:
    """The colour of a style number; of -1 grey."""
    return GREY if style < 0 else COLOURS[style % len(COLOURS)]


def marker_of(style: int) -> str:
    """The marker of a style number; of -1 a dot."""
    return "." if style < 0 else MARKERS[(style + style // len(COLOURS)) % len(MARKERS)]


@dataclass(frozen=True)
class Styles:
    """The style number of each cluster of each level; -1 for the small ones, which are grey dots."""

    numbers: list[np.ndarray]

    def colour(self, level: int, cluster: int) -> str:
        """The colour of a cluster of a level."""
        return colour_of(int(self.numbers[level][cluster]))

    def marker(self, level: int, cluster: int) -> str:
        """The marker of a cluster of a level."""
        return marker_of(int(self.numbers[level][cluster]))


def style_clusters(result: HmacResult, least_share: float = 0.01) -> Styles:
    """Give styles from the top level down: a cluster's largest part keeps its style, other parts get new ones.

    Clusters under `least_share` of the rows (or of two rows) at every level stay grey.
    """
    n = result.levels[0].rows
    least = max(3, int(np.ceil(least_share * n)))
    numbers: list[np.ndarray] = [np.full(len(level.sizes), -1) for level in result.levels]
    following = 0
    for level in reversed(range(len(result.levels))):
        sizes = result.levels[level].sizes
        above = largest_part(result, level, least) if level + 1 < len(result.levels) else None
        used: set[int] = set()
        for cluster in range(len(sizes)):  # by falling size
            if sizes[cluster] < least:
                break
            number = -1 if above is None else int(numbers[level + 1][above[cluster]])
            if number < 0 or number in used:
                number, following = following % MOST_STYLES, following + 1
            used.add(number)
            numbers[level][cluster] = number
    return Styles(numbers)


def largest_part(result: HmacResult, level: int, least: int) -> np.ndarray:
    """The cluster of the next level that most rows of each cluster of this one are in, where it has `least` rows."""
    chosen = result.levels[level]
    if result.settings.nested:
        return chosen.parent
    labels = chosen.labels
    large = int((chosen.sizes >= least).sum())
    here = labels < large
    next_one = result.levels[level + 1]
    width = len(next_one.sizes)
    together, counts = np.unique(labels[here].astype(np.int64) * width + next_one.labels[here], return_counts=True)
    order = np.lexsort((together, -counts, together // width))
    first = np.unique((together // width)[order], return_index=True)[1]
    return (together % width)[order][first]
