"""The properties of a matrix of distances: are its entries distances, is it symmetric, metric, Euclidean?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.metrics.classical_scaling import centred_products, unit_distances

TRIPLES = 200_000
"""How many random triples the triangle inequality is tried on."""
SAMPLE = 1_000
"""The most rows of the sample: a matrix of them fits into memory."""
ROUNDING = 1e-9
"""Eigenvalues below this share of the largest magnitude count as 0."""


class Matrix(Protocol):
    """A matrix of which some rows are read at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""

    @property
    def rounding(self) -> float:
        """The relative error of an entry by rounding."""

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Array]]:
        """The rows start..stop, in blocks: the number of the first row, and the entries."""


@dataclass(frozen=True)
class Properties:
    """The properties of a matrix of distances, from one pass over all entries and from samples of rows and triples."""

    shape: tuple[int, int]
    lowest: float
    mean: float
    highest: float
    negative: int
    not_finite: int
    diagonal: float | None = None  # largest magnitude on it, where the matrix is square
    asymmetry: float | None = None  # largest difference of D and its transpose, over the largest entry
    sampled: int = 0  # rows of the sample
    violations: float | None = None  # share of the sampled triples that break the triangle inequality
    negative_eigenfraction: float | None = None

    def lines(self) -> list[str]:
        """The properties as lines for a person."""
        n, m = self.shape
        of_pairs = "" if self.diagonal is None else " of pairs"
        lines = [f"{n:,} x {m:,},{of_pairs} from {self.lowest:.6g} to {self.highest:.6g}, mean {self.mean:.6g}"]
        if self.negative:
            lines.append(f"{self.negative:,} entries are negative: these are no distances")
        if self.not_finite:
            lines.append(f"{self.not_finite:,} entries are NaN or infinite")
        if self.diagonal is None or self.asymmetry is None or self.violations is None:
            return lines
        zero = "zero" if self.diagonal == 0 else f"not zero (up to {self.diagonal:.3g})"
        of = "all" if self.sampled == n else f"{self.sampled:,} random"
        apart = f"not symmetric (apart by up to {self.asymmetry:.2g} of the largest entry)"
        apart = f"{apart if self.asymmetry else 'symmetric'}" + ("" if self.sampled == n else f" (of {of} rows)")
        return [
            *lines,
            f"diagonal {zero}, {apart}",
            f"triangle inequality broken by {self.violations:.3%} of {TRIPLES:,} random triples of {of} rows",
            f"negative eigenfraction {self.negative_eigenfraction:.3%} of {of} rows (0: Euclidean distances)",
        ]


def can_be_squared(largest: float) -> bool:
    """Whether distances up to this one have squares, and sums of these, that are numbers."""
    return largest == 0 or 1e-140 < largest < 1e140


def properties_of(matrix: Matrix, own: bool = True, seed: int = 0) -> Properties:
    """The properties of a matrix, by one pass over its entries and by samples; `own`: of things to each other."""
    n, m = matrix.shape
    random = np.random.default_rng(seed)
    which = sample_of(n, random)
    sample = np.empty((len(which), len(which)) if own else (len(which), 0))
    count = 0
    lowest, highest, total, negative, odd, diagonal = np.inf, -np.inf, 0.0, 0, 0, 0.0
    for a, rows in matrix.blocks(0, n):
        wanted = np.isfinite(rows)
        odd += rows.size - int(wanted.sum())
        if own:
            wanted[np.arange(len(rows)), a + np.arange(len(rows))] = False
            diagonal = max(diagonal, float(np.abs(rows.diagonal(a)).max()))
            first, last = np.searchsorted(which, (a, a + len(rows)))
            sample[first:last] = rows[which[first:last] - a][:, which]
        finite = rows[wanted]
        count += finite.size
        lowest, highest = min(lowest, finite.min(initial=np.inf)), max(highest, finite.max(initial=-np.inf))
        total += float(finite.sum(dtype=np.float64))
        negative += int((rows < 0).sum())
    plain = Properties((n, m), float(lowest), total / max(count, 1), float(highest), negative, odd)
    if not own or odd:
        return plain
    return replace(
        plain,
        diagonal=diagonal,
        asymmetry=float(np.abs(sample - sample.T).max()) / (highest or 1.0),
        sampled=len(which),
        violations=triangle_violations(sample, random, matrix.rounding),
        negative_eigenfraction=negative_eigenfraction(sample),
    )


def asymmetry_of(matrix: Any) -> float:
    """The largest difference of D and its transpose among some rows, over the largest entry there."""
    which = sample_of(matrix.shape[0], np.random.default_rng(0))
    D = matrix.among(which, which)
    return float(np.abs(D - D.T).max()) / (float(np.abs(D).max()) or 1.0)


def sample_of(n: int, random: np.random.Generator) -> np.ndarray:
    """The numbers of all n rows, or of `SAMPLE` random ones, in rising order."""
    return np.arange(n) if n <= SAMPLE else np.sort(random.choice(n, SAMPLE, replace=False))


def triangle_violations(D: Array, random: np.random.Generator, rounding: float) -> float:
    """The share of random triples with d(i, k) > d(i, j) + d(j, k), roundings apart."""
    i, j, k = random.integers(0, len(D), (3, TRIPLES))
    return float(np.mean(D[i, k] > (D[i, j] + D[j, k]) * (1.0 + rounding)))


def negative_eigenfraction(D: Array) -> float:
    """The share of the negative eigenvalues of -J D^2 J / 2 (J centres) in the sum of all magnitudes, from 0 to 1."""
    values = np.linalg.eigvalsh(centred_products(unit_distances(D)[0]))
    magnitudes = np.abs(values)
    small = magnitudes < ROUNDING * magnitudes.max(initial=0.0)
    values[small] = magnitudes[small] = 0.0
    return float(magnitudes[values < 0].sum() / magnitudes.sum()) if magnitudes.any() else 0.0
