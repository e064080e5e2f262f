"""Tables of any size, drawn as the shared workloads are: 17 columns as W1, 64 as W2, 10 as W4, all others as W3."""

from __future__ import annotations

import numpy as np

Rows = np.ndarray


def drawn(n: int, d: int) -> Rows:
    """`n` rows of `d` columns, the same at every call."""
    r = np.random.default_rng([n, d])
    return {10: _crowded, 17: _scaled, 64: _wide}.get(d, _scattered)(r, n, d)


def _scattered(r: np.random.Generator, n: int, d: int) -> Rows:
    """Twelve round clusters, and a tenth of the rows anywhere (W3)."""
    return _clusters_and_noise(r, r.uniform(-10, 10, (12, d)), r.uniform(0.35, 1.2, 12), n, (0.1, 13))


def _crowded(r: np.random.Generator, n: int, d: int) -> Rows:
    """Fifteen round clusters, and a twentieth of the rows anywhere (W4)."""
    return _clusters_and_noise(r, r.normal(0, 3, (15, d)), r.uniform(0.6, 1.4, 15), n, (0.05, 9))


def _clusters_and_noise(
    r: np.random.Generator, centres: Rows, spread: np.ndarray, n: int, noise: tuple[float, float]
) -> Rows:
    share, reach = noise
    which = r.integers(0, len(centres), n)
    X: Rows = centres[which] + spread[which, None] * r.normal(size=(n, centres.shape[1]))
    anywhere = r.random(n) < share
    X[anywhere] = r.uniform(-reach, reach, (int(anywhere.sum()), centres.shape[1]))
    return X


def _scaled(r: np.random.Generator, n: int, d: int) -> Rows:
    """Twelve clusters whose columns go together, with heavy tails and columns of unlike units (W1)."""
    which = r.choice(12, n, p=r.dirichlet(np.full(12, 4.0)))
    centres, spread = r.normal(0, 2.2, (12, d)), np.exp(r.normal(-0.4, 0.35, (12, d)))
    loadings = r.normal(0, 0.35, (12, d, 3))
    X: Rows = centres[which] + spread[which] * r.normal(size=(n, d))
    X += np.einsum("ndk,nk->nd", loadings[which], r.normal(size=(n, 3)))
    heavy = r.random(n) < 0.05
    X[heavy] = centres[which[heavy]] + 1.5 * r.standard_t(3, size=(int(heavy.sum()), d))
    units = np.exp(r.uniform(-1.2, 1.2, d))
    return X * units + r.normal(0, 3, d) * units


def _wide(r: np.random.Generator, n: int, d: int) -> Rows:
    """Five classes of three clusters each, along ten common directions, ever narrower columns (W2)."""
    which = r.integers(0, 5, n)
    directions = r.normal(size=(d, 10)) / np.sqrt(10)
    parts, part = r.normal(0, 0.55, (5, 3, d)), r.integers(0, 3, n)
    X: Rows = r.normal(0, 0.55, (5, d))[which] + parts[which, part]
    X += 0.8 * r.normal(size=(n, 10)) @ directions.T + 0.6 * r.normal(size=(n, d))
    return X / np.sqrt(1 + 0.08 * np.arange(d))
