"""Levels of a clustering: the order of their clusters, the tree between them, and the level to show first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.core.sources import RowSource, blocks_of
from parallel_mix.models.hmac.points import Frame

DIGITS, FEWER_DIGITS = 9, 5
"""How many decimals of a log density count in the order of modes: of exact sums, and of the others."""


@dataclass
class Level:
    """The clustering at one bandwidth. Modes are numbered by falling size (weight), then density, then lowest row."""

    bandwidth: float
    modes: Array  # (m, d) in the coordinates of the analysis, or (`outward`) of the data
    log_density: Array  # (m) at the modes: log of the weighted sum of kernels, or (`outward`) of the density
    first_labels: (
        np.ndarray
    )  # (n) int32: the cluster of each row at the level that rows climbed at: the lowest nested one
    joins: np.ndarray  # int32: the cluster here of each cluster there; of no length where that level is this one
    sizes: np.ndarray  # (m) rows
    iterations: np.ndarray  # (m) the longest ascent that ended there
    capped: int  # ascents ended by the iteration limit
    boundary: np.ndarray  # rows whose ascent came close to a saddle, so that they lie near a watershed
    parent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    unchanged: bool = False

    @property
    def labels(self) -> np.ndarray:
        """The cluster of each row, (n) int32."""
        return relabelled(self.first_labels.copy(), self.joins) if self.joins.size else self.first_labels

    def labels_of(self, start: int, stop: int) -> np.ndarray:
        """The cluster of each of the rows start..stop."""
        first = self.first_labels[start:stop]
        return np.asarray(self.joins[first]) if self.joins.size else first

    @property
    def through(self) -> np.ndarray:
        """The cluster here of each cluster of the level that rows climbed at."""
        return self.joins if self.joins.size else np.arange(len(self.sizes), dtype=np.int32)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.first_labels)

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


def relabelled(labels: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The labels with the new one in place of each, in the same memory."""
    for a, b in blocks_of(len(labels)):
        labels[a:b] = new[labels[a:b]]
    return labels


class Members(NamedTuple):
    """The rows of each cluster, in numbers."""

    sizes: np.ndarray  # (k) int64: how many
    mass: np.ndarray  # (k) float64: their weight
    first: np.ndarray  # (k) int64: the number of the first one

    @classmethod
    def of(cls, labels: np.ndarray, source: RowSource) -> Members:
        """The members of clusters of some rows with these labels, of which each has some."""
        k = int(labels.max()) + 1
        sizes, mass, first = np.zeros(k, dtype=np.int64), np.zeros(k), np.full(k, len(labels))
        for a, b in reversed(blocks_of(len(labels))):
            some, weight = labels[a:b], source.weights(a, b)
            counts = np.bincount(some, minlength=k)
            sizes += counts
            mass += counts if weight is None else np.bincount(some, weight, k)
            first[some[::-1]] = np.arange(b - 1, a - 1, -1)  # of those of one cluster the last that is written stays
        return cls(sizes, mass, first)

    def joined(self, joins: np.ndarray) -> Members:
        """The members of the clusters that these are joined to."""
        sizes = np.bincount(joins, weights=self.sizes).astype(np.int64)
        first = np.full(len(sizes), np.iinfo(np.int64).max)
        np.minimum.at(first, joins, self.first)
        return Members(sizes, np.bincount(joins, weights=self.mass), first)

    def order(self, log_density: Array, digits: int = DIGITS) -> np.ndarray:
        """The order of the clusters: by falling size (weight), falling density, lowest row.

        Densities that differ by a rounding are equal: they may come out otherwise by the other approach.
        """
        return np.lexsort((self.first, -np.round(log_density, digits), -self.mass))


def distinct_rows(source: RowSource, labels: Sequence[np.ndarray]) -> list[np.ndarray]:
    """How many distinct rows of positive weight each cluster has, by each of some labels: 0, 1, or 2 where more."""
    n, d = source.shape
    counts = [np.zeros(some.max() + 1, dtype=np.int64) for some in labels]
    known = [np.empty((len(count), d)) for count in counts]
    for start, stop in blocks_of(n):
        X, w, there = source.rows(start, stop), source.weights(start, stop), np.arange(start, stop)
        if w is not None:
            X, there = X[w > 0.0], there[w > 0.0]
        for some, count, row in zip(labels, counts, known, strict=True):
            here, undecided = some[there], count[some[there]] < 2
            here, rows = here[undecided], X[undecided]
            clusters, first = np.unique(here, return_index=True)
            new = count[clusters] == 0
            row[clusters[new]], count[clusters[new]] = rows[first[new]], 1
            count[here[(row[here] != rows).any(axis=1)]] = 2
    return counts


def plateaus(counts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Ranges of levels (first, last, clusters) over which the number of clusters of more than one distinct row stays.

    `counts` are the numbers of such clusters, level by level.
    """
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
