"""The potential support vector machine (Hochreiter & Obermayer 2006): a lasso in a box.

    minimise   1/2 |y - X a|^2 + eps |a|_1,   |a_j| <= C        X: similarities, centred, of unit variance by column

by coordinates, from the Gram matrix: a_j <- clip(soft(c_j + a_j g_jj, eps) / g_jj, -C, C), c = X'(y - X a). eps is the
price in all, not for each sample (with that the paper's figures do not come out: sonar 32 % instead of 19). A new
point's similarities get the training data's shift and scale; f(x) = s'a + mean(y), one class against another by its
sign.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

TOLERANCE = 1e-6
"""The largest step of a sweep, over the largest response, at which sweeps end."""
MOST_SWEEPS = 1_000
"""The most sweeps over all weights."""


@compiled
def box_lasso(gram: Array, response: Array, price: float, C: float, a: Array) -> None:
    """Improve the weights `a` in place by coordinate descent; `gram` is X'X and `response` X'y."""
    n = len(a)
    left = response - gram @ a
    scale = np.abs(response).max()
    for _ in range(MOST_SWEEPS):
        largest = 0.0
        for j in range(n):
            own = gram[j, j]
            if own <= 0:
                continue
            pull = left[j] + a[j] * own
            value = max(abs(pull) - price, 0.0) / own
            value = min(value, C) * (1.0 if pull > 0 else -1.0)
            step = value - a[j]
            if step != 0.0:
                a[j] = value
                for i in range(n):
                    left[i] -= step * gram[i, j]
                largest = max(largest, abs(step) * own)
        if largest <= TOLERANCE * scale:
            break


def standardized(S: Array) -> tuple[Array, Array, Array]:
    """Columns of mean 0 and variance 1, and the means and scales that make them so; constant columns become 0."""
    mean, sd = S.mean(axis=0), S.std(axis=0)
    scale = np.where(sd > 1e-12 * np.maximum(np.abs(mean), 1.0), sd, np.inf)
    return (S - mean) / scale, mean, scale
