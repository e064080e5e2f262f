"""The Dirichlet prior of histograms, of largest likelihood (Minka's fixed point; the Polya distribution).

    alpha_j <- alpha_j sum_i [psi(n_ij + alpha_j) - psi(alpha_j)] / sum_i [psi(n_i + A) - psi(A)],    A = sum alpha

As counts are whole, psi(n + a) - psi(a) = 1/a + ... + 1/(a + n - 1): what matters of the histograms is how many have
more than t in bin j, and how many more than t in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled

Ints = np.ndarray
LEAST = 1e-6
"""The least parameter."""
MOST_STEPS = 1_000
"""The most steps of the iteration."""
LARGEST = 1e6
"""The sum of the parameters at which the iteration stops."""
TOLERANCE = 1e-9
"""The relative change of a parameter at which the iteration ends."""


@compiled
def exceedances(counts: Ints) -> Ints:
    """How many of the values are above t, for t = 0, 1, ... up to the largest."""
    most = 0
    for n in counts:
        most = max(most, n)
    above = np.zeros(max(most, 1), np.int64)
    for n in counts:
        if n > 0:
            above[n - 1] += 1
    for t in range(len(above) - 2, -1, -1):
        above[t] += above[t + 1]
    return above


@compiled
def dirichlet_prior(histograms: Ints) -> Any:
    """The parameters alpha (r) of largest likelihood for histograms (n, r), of which empty ones do not count.

    Where all are empty, each alpha is 1/r.

    Histograms more alike than multinomial ones have no finite maximum: it stops at a sum of `LARGEST`.
    """
    n, r = histograms.shape
    totals = histograms.sum(axis=1)
    if totals.sum() == 0:
        return np.full(r, 1.0 / r)
    alpha = np.zeros(r)
    for i in range(n):
        if totals[i] > 0:
            alpha += histograms[i] / totals[i]
    alpha = np.maximum(alpha / alpha.sum(), LEAST)
    above = [exceedances(histograms[:, j]) for j in range(r)]
    above_all = exceedances(totals)
    for _ in range(MOST_STEPS):
        A, below = alpha.sum(), 0.0
        for t in range(len(above_all)):
            below += above_all[t] / (A + t)
        change = 0.0
        for j in range(r):
            up = 0.0
            for t in range(len(above[j])):
                up += above[j][t] / (alpha[j] + t)
            value = max(alpha[j] * up / below, LEAST)
            change = max(change, abs(value - alpha[j]) / (alpha[j] + value))
            alpha[j] = value
        if change < TOLERANCE or alpha.sum() > LARGEST:
            break
    return alpha
