"""Levels of a clustering: the order of their clusters, the tree between them, and the level to show first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.hmac.points import Frame

DIGITS, FEWER_DIGITS = 9, 5
"""How many decimals of a log density count in the order of modes: of exact sums, and of the others."""


@dataclass
class Level:
    """The clustering at one bandwidth. Modes are numbered by falling size (weight), then density, then lowest row."""

    bandwidth: float
    modes: Array  # (m, d) in the coordinates of the analysis, or (`outward`) of the data
    log_density: Array  # (m) at the modes: log of the weighted sum of kernels, or (`outward`) of the density
    labels: np.ndarray  # (n) int32
    sizes: np.ndarray  # (m) rows
    iterations: np.ndarray  # (m) the longest ascent that ended there
    capped: int  # ascents ended by the iteration limit
    boundary: np.ndarray  # rows whose ascent came close to a saddle, so that they lie near a watershed
    parent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    unchanged: bool = False

    def outward(self, frame: Frame) -> Level:
        """The level in the coordinates of the data: its modes, and log densities that belong to them."""
        return replace(self, modes=frame.outward(self.modes), log_density=self.log_density - self._constant(frame))

    @classmethod
    def inward(cls, frame: Frame, **values: Any) -> Level:
        """A level from the values of its fields in the coordinates of the data."""
        level = cls(**{**values, "modes": frame.inward(values["modes"])})
        level.log_density = level.log_density + level._constant(frame)
        return level

    def _constant(self, frame: Frame) -> float:
        """The number to subtract from a log sum of kernels for the log density in the coordinates of the data."""
        d = self.modes.shape[1]
        return float(0.5 * d * (np.log(2 * np.pi) + 2 * np.log(self.bandwidth)) + np.log(frame.scale).sum())


def canonical_order(
    labels: np.ndarray, weight: Array | None, log_density: Array, digits: int = DIGITS
) -> tuple[np.ndarray, np.ndarray]:
    """How many rows each mode has, and the order of the modes: by falling size (weight), falling density, lowest row.

    Densities that differ by a rounding are equal: they may come out otherwise by the other approach.
    """
    k = len(log_density)
    sizes = np.bincount(labels, minlength=k)
    mass = sizes if weight is None else np.bincount(labels, weights=weight, minlength=k)
    first = np.full(k, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    return sizes, np.lexsort((first, -np.round(log_density, digits), -mass))


def plateaus(labels: np.ndarray, distinct: np.ndarray) -> list[tuple[int, int, int]]:
    """Ranges of levels (first, last, clusters) over which the number of clusters of more than one distinct row stays.

    `distinct` marks one row of each set of equal rows.
    """
    counts = [int((np.bincount(row[distinct]) > 1).sum()) for row in labels]
    ranges: list[tuple[int, int, int]] = []
    for level, count in enumerate(counts):
        if ranges and ranges[-1][2] == count:
            ranges[-1] = (ranges[-1][0], level, count)
        else:
            ranges.append((level, level, count))
    return ranges


def most_persistent(ranges: list[tuple[int, int, int]], bandwidths: Array) -> int:
    """The level to show: the last one of the plateau of two or more clusters that is longest in log bandwidth."""
    candidates = [r for r in ranges if r[2] >= 2]
    if not candidates:
        return len(bandwidths) - 1
    log_bandwidth = np.log(bandwidths)
    longest = max(candidates, key=lambda r: (log_bandwidth[r[1]] - log_bandwidth[r[0]], r[1]))
    return longest[1]
