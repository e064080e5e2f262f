"""Similarities in neighbourhoods, for local similarity discriminant analysis, and exponential pmfs of largest entropy.

Similarities are those of a finite set Omega, omega_1 < ... < omega_r (`bins_of`). Of the neighbourhood of a point x,
its k nearest training points N(x), N_h those of class h:

    mu_h = argmax_{v in N_h} sum_{a in N_h} s(a, v)                                  (lowest index of equal ones)
    m_gh = mean of s(z, mu_h), z in N_g             (2)       pairwise: of s(z, z'), z in N_g, z' in N_h          (8)
    theta_gh[j] = exp(lambda_gh omega_j) / Z,           sum_j omega_j theta_gh[j] = m_gh

A point's similarity to itself is left out of these where its class has other neighbours.

paper <-> code    Omega <-> omega    N(x) <-> near    mu_h <-> centroids    m (histogram) <-> counts
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array

Ints = np.ndarray
MOST_VALUES = 64
"""With more distinct similarities than these, they are put into bins."""
BINS = 20
"""How many bins there are by default."""
EXTREME = 1e-9
"""A mean nearer to an end of Omega than this share of its range lies at that end."""
ROUNDING = float(np.finfo(np.float64).eps)
"""The relative error of a sum's term by rounding."""
MOST_LAMBDA = 1e3
"""The largest magnitude of an exponent lambda, for values from 0 to 1."""
STEPS = 200
"""The most steps of Newton's method."""


def similarity_values(S: Array, bins: int | None = None) -> Array:
    """The values Omega of similarities: the distinct ones of a matrix, or if these are many, centres of equal bins."""
    off = S[~np.eye(len(S), dtype=bool)]
    if bins is None:
        distinct = np.unique(off)
        if len(distinct) <= MOST_VALUES and len(np.unique(np.diagonal(S))) <= MOST_VALUES:
            return np.unique(np.concatenate([distinct, np.diagonal(S)]))
    count, low, high = bins or BINS, float(off.min()), float(off.max())
    if low == high:
        return np.array([low])
    return low + (high - low) * (np.arange(count) + 0.5) / count


def bins_of(S: Array, omega: Array) -> Ints:
    """The place in Omega of the value nearest to each similarity."""
    return np.searchsorted((omega[1:] + omega[:-1]) / 2.0, S).astype(np.int64)


@compiled
def centroids_of(S: Array, y: Ints, near: Ints, classes: int) -> Ints:
    """The centroid mu_h of each class in each neighbourhood, (rows, classes); -1 where the class has no neighbours.

    S are similarities of the training points.

    Sums that differ by no more than the roundings of their terms are equal: else the order of the neighbours, or the
    unit of S, would choose among them.
    """
    m, k = near.shape
    centroids = np.full((m, classes), -1, np.int64)
    totals = np.empty(k)
    for row in range(m):
        best, largest = np.full(classes, -np.inf), np.zeros(classes)
        for p in range(k):
            v = near[row, p]
            h = y[v]
            total, size, others = 0.0, 0.0, 0
            for q in range(k):
                a = near[row, q]
                if y[a] == h and a != v:
                    total += S[a, v]
                    size += abs(S[a, v])
                    others += 1
            if others == 0:
                total, size = S[v, v], abs(S[v, v])
            totals[p] = total
            best[h], largest[h] = max(best[h], total), max(largest[h], size)
        for p in range(k):
            v = near[row, p]
            h = y[v]
            if totals[p] >= best[h] - 2.0 * k * ROUNDING * largest[h] and (
                centroids[row, h] < 0 or v < centroids[row, h]
            ):
                centroids[row, h] = v
    return centroids


@compiled
def histograms_to_centroids(place: Ints, y: Ints, near: Ints, centroids: Ints, r: int) -> Ints:
    """Counts of s(z, mu_h), z in N_g: (rows, g, h, r); `place` are places in Omega between training points."""
    m, k = near.shape
    classes = centroids.shape[1]
    counts = np.zeros((m, classes, classes, r), np.int64)
    for row in range(m):
        size = np.zeros(classes, np.int64)
        for p in range(k):
            size[y[near[row, p]]] += 1
        for h in range(classes):
            mu = centroids[row, h]
            if mu < 0:
                continue
            for p in range(k):
                z = near[row, p]
                if z != mu or size[h] == 1:
                    counts[row, y[z], h, place[z, mu]] += 1
    return counts


@compiled
def histograms_of_pairs(place: Ints, y: Ints, near: Ints, classes: int, r: int) -> Ints:
    """Counts of s(z, z'), z in N_g, z' in N_h: (rows, g, h, r)."""
    m, k = near.shape
    counts = np.zeros((m, classes, classes, r), np.int64)
    for row in range(m):
        size = np.zeros(classes, np.int64)
        for p in range(k):
            size[y[near[row, p]]] += 1
        for p in range(k):
            z = near[row, p]
            for q in range(k):
                other = near[row, q]
                if z != other or size[y[z]] == 1:
                    counts[row, y[z], y[other], place[z, other]] += 1
    return counts


def means_of(counts: Ints, omega: Array) -> Array:
    """The mean similarities of histograms (..., r); NaN for empty ones."""
    total = counts.sum(axis=-1)
    return np.asarray(np.where(total > 0, (counts @ omega) / np.maximum(total, 1), np.nan))


def are_extreme(means: Array, omega: Array) -> Any:
    """Which means no exponential pmf has, as they lie at an end of Omega."""
    reach = EXTREME * (omega[-1] - omega[0])
    return (means <= omega[0] + reach) | (means >= omega[-1] - reach)


def exponential_pmfs(means: Array, omega: Array) -> Array:
    """Exponential pmfs theta (..., r) of these means; for a mean at an end of Omega, all weight there; NaN of NaN."""
    flat = means.ravel()
    theta = np.full((len(flat), len(omega)), np.nan)
    known, extreme = np.isfinite(flat), are_extreme(flat, omega)
    theta[known & extreme] = 0.0
    ends = np.flatnonzero(known & extreme)
    theta[ends, np.where(flat[ends] >= omega[-1] - EXTREME * (omega[-1] - omega[0]), len(omega) - 1, 0)] = 1.0
    inner = np.flatnonzero(known & ~extreme)
    if len(inner):
        x = (omega - omega[0]) / (omega[-1] - omega[0])
        target = (flat[inner] - omega[0]) / (omega[-1] - omega[0])
        theta[inner] = np.exp(_log_pmfs(solve_lambdas(target, x), x))
    return theta.reshape(*means.shape, len(omega))


def _log_pmfs(lambdas: Array, x: Array) -> Array:
    exponent = lambdas[:, None] * x
    exponent -= exponent.max(axis=1, keepdims=True)
    return np.asarray(exponent - np.log(np.exp(exponent).sum(axis=1, keepdims=True)))


def solve_lambdas(target: Array, x: Array) -> Array:
    """The exponents lambda whose pmfs on the values x, from 0 to 1, have the means `target`; by Newton's method.

    The mean rises with lambda, and its slope is the variance.
    """
    low, high = np.full(len(target), -MOST_LAMBDA), np.full(len(target), MOST_LAMBDA)
    lambdas = np.zeros(len(target))
    left = np.arange(len(target))
    for _ in range(STEPS):
        theta = np.exp(_log_pmfs(lambdas[left], x))
        mean = theta @ x
        gap = mean - target[left]
        high[left] = np.where(gap > 0, np.minimum(high[left], lambdas[left]), high[left])
        low[left] = np.where(gap < 0, np.maximum(low[left], lambdas[left]), low[left])
        variance = np.maximum(theta @ (x * x) - mean**2, 1e-300)
        step = np.where(np.abs(gap) > 1e-15, lambdas[left] - gap / variance, lambdas[left])
        outside = (step < low[left]) | (step > high[left])
        step[outside] = (low[left] + high[left])[outside] / 2.0
        moved = np.abs(step - lambdas[left])
        lambdas[left] = step
        left = left[(moved > 1e-12 * np.maximum(np.abs(step), 1.0)) & (np.abs(gap) > 1e-15)]
        if not len(left):
            break
    return lambdas
