"""Whether a classifier is worse than another, by their errors on the same partitions."""

from __future__ import annotations

import numpy as np

LEVEL = 0.05
"""The level of significance."""
FEW = 25
"""Up to so many pairs of errors the test is exact, with ties too."""
MOST_EXACT = 50
"""Up to so many pairs without ties the test is exact."""
LEAST = 5
"""With fewer partitions no difference can be significant."""


def probability_not_worse(errors: np.ndarray, best: np.ndarray) -> float:
    """The p-value of the one-sided signed-rank test (Wilcoxon) that `errors` are not larger than `best`.

    Equal pairs are dropped; where all are equal it is 1. Exact for up to 25 pairs, with ties too, and for up to 50
    without ties; else by the normal approximation.
    """
    from scipy.stats import rankdata, wilcoxon

    both = np.isfinite(errors) & np.isfinite(best)
    gaps = np.round(errors[both] - best[both], 12)
    gaps = gaps[gaps != 0]
    if not len(gaps):
        return 1.0
    if len(gaps) <= FEW:
        twice = np.round(2 * rankdata(np.abs(gaps))).astype(int)
        ways = np.zeros(twice.sum() + 1)  # of signs, by the sum of the positive ranks
        ways[0] = 1.0
        for rank in twice:
            ways[rank:] += ways[: len(ways) - rank].copy()
        return float(ways[twice[gaps > 0].sum() :].sum() / ways.sum())
    method = "exact" if len(np.unique(np.abs(gaps))) == len(gaps) <= MOST_EXACT else "approx"
    return float(wilcoxon(gaps, alternative="greater", method=method).pvalue)


def not_worse(errors: np.ndarray) -> np.ndarray:
    """Which classifiers (rows of errors on the same partitions) are the best or not significantly worse.

    None is, where there are too few partitions for a significant difference: then nothing is known of any.
    """
    enough = np.isfinite(errors).sum(axis=1) >= LEAST
    means = np.array([np.nanmean(row) if known else np.inf for row, known in zip(errors, enough, strict=True)])
    best = int(means.argmin())
    pairs = (np.isfinite(errors) & np.isfinite(errors[best])).sum(axis=1)
    kept = [count >= LEAST and probability_not_worse(row, errors[best]) >= LEVEL
             for row, count in zip(errors, pairs, strict=True)]  # fmt: skip
    return np.array(kept)
