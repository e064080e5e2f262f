"""A forecast of how much work the levels of a clustering will be.

Work is counted in pairs of a point and a kernel, as they are summed over. What a level costs is its number of starts,
the modes of the level below, times the steps of an ascent, times the kernels near enough to matter. All three can be
estimated from a few rows: by the share that a row's own kernel has in the density there (where that is near 1 the
row is a mode by itself), by the trace of J (where it is small one step is enough), and by counting. Ascents go in
blocks of neighbours, and sum over what is near any of them: the wider a block, the less is left out. What has been
measured corrects all that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from parallel_mix.kernels.density.ascent_rule import START_COST
from parallel_mix.kernels.density.ascents import Ascents
from parallel_mix.kernels.density.kernel_sums import Array, kernel_sums, reach, scale_kernels
from parallel_mix.kernels.density.modal_em import LOOKUP_COST

ROWS, KERNELS = 64, 1_024
"""Rows whose ascents are estimated, and kernels from which the densities at these rows are estimated."""

MERGING = 6
"""The number of modes per row is about this power of the share that a row's own kernel has in its density."""

STEPS, STEPS_ON_LEAVES = 25.0, 16.0
"""Work of the steps of an ascent to a mode that it shares with others, in plain steps: by exact sums, and on leaves."""

LOOKUPS = 1.5
"""How often the kernels near an ascent are looked up."""

STILL_MOVING = 1.5
"""How much work an ascent that still moves when its block comes back has ahead, over the work that it has done."""

DOUBT = 0.2
"""The share of the whole forecast that measured work must come to, for it to count as much as the forecast."""


@dataclass(frozen=True)
class Forecast:
    """For each level, per row: how likely it is a mode of its own, and the pairs (start, kernel) of its ascent."""

    modes: Array  # (levels) modes a row
    pairs: Array  # (levels) a start

    @classmethod
    def of(cls, X: Array, bandwidths: Array, block: int, steps_to_mode: float = STEPS, seed: int = 0) -> Self:
        """The forecast from some random rows of X, where at most `block` ascents go together.

        The rows depend on the seed and the number of rows alone, so that every attempt has the same forecast.
        """
        n, d = X.shape
        X, bandwidths = X / bandwidths[0], bandwidths / bandwidths[0]  # numbers whose squares are finite
        chosen = np.random.default_rng([seed, n]).permutation(n)[: ROWS + KERNELS]
        rows, others = X[chosen[:ROWS]], X[chosen[ROWS:]]
        modes, pairs = np.ones(len(bandwidths)), np.full(len(bandwidths), float(n))
        if not len(others):
            return cls(modes, pairs)
        weight = np.full(len(others), -np.log(len(others)))
        gaps = np.maximum((rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * rows @ others.T, 0.0)
        starting = np.ones(len(rows))  # how likely each row is still by itself, and so starts an ascent
        for level, sigma in enumerate(bandwidths):
            sums = kernel_sums(rows / sigma, np.zeros(len(rows)), scale_kernels(others, weight, float(sigma)))
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                density = np.exp(np.log(sums[:, d]) + sums[:, -1])  # of the others' kernels, n of them in all
                own = 1.0 / (1.0 + (n - 1.0) * density)
                mean = sums[:, :d] / sums[:, [d]]
                spread = sums[:, d + 1] / sums[:, d]
                trace = (1.0 - own) * spread - ((1.0 - own) ** 2) * np.einsum("ij,ij->i", mean, mean)
                near = (gaps < (sigma * reach(0.0, -np.log(n * own))[:, None]) ** 2).mean(axis=1)
            trace = np.where(np.isfinite(trace), np.minimum(np.maximum(trace, 0.0), 1.0), 0.0)
            share = min(block / (n * starting.mean()), 1.0)  # of the starts, that a block holds
            near = np.maximum(near, 1.0 / n) ** (1.0 - share ** (2.0 / d))
            steps = LOOKUPS * LOOKUP_COST + steps_to_mode * trace * near
            pairs[level] = START_COST + n * (starting @ steps) / starting.sum()
            starting = np.maximum(np.minimum(starting, own**MERGING), 1.0 / n)
            modes[level] = starting.mean()
        return cls(modes, pairs)

    def total(self, starts: list[int], works: list[float], rows: int, nested: bool) -> float:
        """Work in all, in pairs: of the levels whose `works` are known, or estimated, and of those to come.

        `starts` are those of the levels known, and of one more where it has begun.
        """
        known = len(works)
        expected = np.array(starts[:known], dtype=float) * self.pairs[:known]
        ahead = 0.0
        count = float(starts[known - 1]) if known else float(rows)
        for level in range(known, len(self.pairs)):
            if not nested:
                count = rows
            elif level < len(starts):
                count = starts[level]
            elif level:
                count = min(count, rows * self.modes[level - 1])
            ahead += count * self.pairs[level]
        whole = expected.sum() + ahead
        trust = DOUBT * whole
        factor = (sum(works) + trust) / (expected.sum() + trust) if whole > 0 else 1.0
        return float(sum(works) + factor * ahead)


def expected_work(ascents: Ascents, forecast: float) -> float | None:
    """The work of a level under way, in pairs, from that of its ascents so far; None where none has begun.

    `forecast` is what one of them was thought to take. It holds for those that move, while few have arrived: these are
    the short ones.
    """
    begun = ascents.iterations > 0
    if not begun.any():
        return None
    work, moving = ascents.work[begun], ascents.moving[begun]
    if moving.mean() < 0.5:
        expected = work + STILL_MOVING * work.mean() * moving
    else:
        expected = np.where(moving, np.maximum(STILL_MOVING * work, forecast), work)
    return float(len(begun) * expected.mean())
