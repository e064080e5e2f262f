"""Classical scaling (Torgerson): points in a few coordinates whose distances come near to given ones."""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array


def centred_products(D: Array) -> Array:
    """The matrix -J D^2 J / 2, J centring: the inner products of the points, where the distances are Euclidean.

    D^2 and its transpose are averaged.
    """
    S = D**2
    S = -0.25 * (S + S.T)
    S -= S.mean(axis=0)
    S -= S.mean(axis=1)[:, None]
    return np.asarray(S)


def unit_distances(D: Array) -> tuple[Array, float]:
    """Distances over the largest of them, and that one: squares of very large or small ones are out of range."""
    largest = float(np.abs(D).max()) or 1.0
    return D / largest, largest


def scaled_coordinates(D: Array, count: int = 2) -> tuple[Array, Array]:
    """Coordinates (n, count) by falling share of the magnitudes of all eigenvalues, and these shares."""
    unit, largest = unit_distances(D)
    values, vectors = np.linalg.eigh(centred_products(unit))
    order = np.argsort(values)[::-1][:count]
    top, axes = np.maximum(values[order], 0.0), vectors[:, order]
    flip = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    total = np.abs(values).sum() or 1.0
    return np.asarray(axes * flip * np.sqrt(top) * largest), np.asarray(top / total)
