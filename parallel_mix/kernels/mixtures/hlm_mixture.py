"""Mixtures by hypothetical local mapping: gamma distributions of squared distances to centroids (hlm.txt, 2.1 and 3).

    phi(z | class k) = sum_j omega_j (pi b_j)^(-s) exp(-D^2(z, eta_j) / b_j)        (5), its logarithm here
    b_j = lambda u_j / s + (1 - lambda) u / s,    lambda = |I_j| / (|I_j| + 1)      s: `gamma_shape`

u_j is the mean squared distance to centroid j, u that of all clusters. The centroid itself is not counted in I_j, nor
are points that lie on it (zeros). |I_j| counts points, whatever their weights: these are only compared with each other,
so that their unit has no say. Clusters of fewer than three points, and those with nothing but zeros, are left out
of the estimation and get lambda = 0. The density's s is rounded to s* (a whole dimension 2 s*), b is that of the
unrounded s.

paper <-> code    |I_j| <-> counted    W_j <-> counts / their sum    u_j <-> means    omega_j <-> sizes / their sum
                  -sum log(u_i / u_j) <-> spreads
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from parallel_mix.kernels.compiled import compiled
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.mixtures.gamma_shape import solve_shape, spread_of_logs, whole_dimension

LEAST_POINTS = 3
"""Clusters of fewer points take no part in the estimation."""
LEAST_DISTANCES = 5
"""Components with fewer distances that are not zero have no say in how shapes are grouped."""
SHAPES = ("common", "class", "grouped")
FIELDS = ("sizes", "counts", "means", "spreads", "points", "zeros", "counted")
"""The rows of the table of `ClusterSums`, which explains each."""


@compiled
def sums_of_clusters(u: Array, labels: np.ndarray, medoids: np.ndarray, w: Array, stands_for: Array) -> Array:
    """The `FIELDS` (rows) of each cluster (columns), as `ClusterSums` has them.

    `u` are squared distances to the medoids, w weights; a point stands for `stands_for` points.
    """
    k = len(medoids)
    table, is_counted = np.zeros((len(FIELDS), k)), u > 0
    sizes, counts, means, spreads, points, zeros, counted = table
    for j in range(k):
        is_counted[medoids[j]] = False
    for i in range(len(u)):
        j = labels[i]
        sizes[j] += w[i]
        points[j] += 1
        if is_counted[i]:
            counts[j] += w[i]
            counted[j] += stands_for[i]
            means[j] += w[i] * u[i]
        elif medoids[j] != i:
            zeros[j] += 1
    for j in range(k):
        means[j] = means[j] / counts[j] if counts[j] > 0 else 0.0
    for i in range(len(u)):
        if is_counted[i] and means[labels[i]] > 0:
            spreads[labels[i]] -= w[i] * np.log(u[i] / means[labels[i]])
    for j in range(k):
        spreads[j] = max(spreads[j], 0.0)
    return table


@compiled
def nearest_sums(D: Array, medoids: np.ndarray, w: Array, stands_for: Array) -> tuple[np.ndarray, Array]:
    """The number of each point's nearest medoid (a medoid's is its own), and `sums_of_clusters` of these clusters."""
    labels, u = np.empty(len(D), np.int64), np.empty(len(D))
    for i in range(len(D)):
        best = 0
        for j in range(1, len(medoids)):
            if D[i, medoids[j]] < D[i, medoids[best]]:
                best = j
        labels[i] = best
    for j in range(len(medoids)):
        labels[medoids[j]] = j
    for i in range(len(D)):
        u[i] = np.float64(D[i, medoids[labels[i]]]) ** 2
    return labels, sums_of_clusters(u, labels, medoids, w, stands_for)


@compiled
def first_of_clusters(labels: np.ndarray, mass: Array, order: np.ndarray, most: int) -> tuple[np.ndarray, Array]:
    """The first points of each cluster by `order`, at most `most`, and all points of no cluster (-1); in rising order.

    Returned with them is how many points each stands for: an equal part of its cluster's mass, or 1.
    """
    n = len(labels)
    count, total, chosen = np.zeros(labels.max() + 1), np.zeros(labels.max() + 1), labels < 0
    for i in order:
        if labels[i] >= 0:
            total[labels[i]] += mass[i]
            chosen[i] = count[labels[i]] < most
            count[labels[i]] += chosen[i]
    stands_for = np.ones(n)
    for i in range(n):
        if labels[i] >= 0:
            stands_for[i] = total[labels[i]] / count[labels[i]]
    return np.flatnonzero(chosen), stands_for[chosen]


@compiled
def mean_square(D: Array) -> float:
    """The mean square of the distances that are not zero; 0 where all are zero."""
    total, count = 0.0, 0
    for row in D:
        here = 0.0
        for d in row:
            here += np.float64(d) * np.float64(d)
            count += d != 0
        total += here
    return total / max(count, 1)


@dataclass(frozen=True)
class ClusterSums:
    """All that the estimation needs of clusters; the sums of batches are joined (`joined`) to those of all rows."""

    classes: np.ndarray  # (m) number of the class
    table: Array  # (fields, m): the properties below

    @classmethod
    def joined(cls, batches: list[ClusterSums]) -> ClusterSums:
        """The sums of several classes, or batches, one after the other."""
        return cls(
            np.concatenate([batch.classes for batch in batches]),
            np.concatenate([batch.table for batch in batches], axis=1),
        )

    @property
    def sizes(self) -> Array:
        """How many points each cluster has, or their weights; the centroid is one of them."""
        return np.asarray(self.table[0])

    @property
    def counts(self) -> Array:
        """The total weight of the distances that are counted in each cluster."""
        return np.asarray(self.table[1])

    @property
    def means(self) -> Array:
        """The mean squared distance in each cluster; 0 where none is counted."""
        return np.asarray(self.table[2])

    @property
    def spreads(self) -> Array:
        """The spread - sum w log(u / mean) of the squared distances u of each cluster."""
        return np.asarray(self.table[3])

    @property
    def points(self) -> np.ndarray:
        """How many points each cluster has; the centroid is one of them."""
        return np.asarray(self.table[4], dtype=np.int64)

    @property
    def zeros(self) -> np.ndarray:
        """How many other points of each cluster lie on its centroid."""
        return np.asarray(self.table[5], dtype=np.int64)

    @property
    def counted(self) -> Array:
        """|I_j|: how many distances are counted in each cluster, or how many points these stand for."""
        return np.asarray(self.table[6])

    @property
    def usable(self) -> np.ndarray:
        """Which clusters take part in the estimation: those of enough points, with distances that are not zero."""
        return (self.points >= LEAST_POINTS) & (self.counts > 0)


@dataclass(frozen=True)
class GammaParameters:
    """The scale and the shapes of each component."""

    b: Array
    s: Array  # as estimated
    whole: Array  # s*, as used in the density
    groups: np.ndarray  # components of one number have their shape in common


def estimate(sums: ClusterSums, fallback: Array, shape: str = "common", groups: int = 3) -> GammaParameters:
    """Scales and shapes by equations (3) and (4), the scales shrunk to those of all.

    `fallback` is a squared distance for each class, where too few distances are counted.
    """
    group_of = sums.classes
    if shape != "class":
        group_of = shape_groups(sums, groups) if shape == "grouped" else np.zeros(len(sums.classes), dtype=np.int64)
    usable = sums.usable
    distances, c, mean = pooled(sums.table, usable, group_of, int(group_of.max(initial=-1)) + 1)
    shapes = np.array([solve_shape(side) if some >= 2 else 0.5 for some, side in zip(distances, c, strict=True)])
    s, b = scales(sums.table, usable, sums.classes, group_of, distances, mean, shapes, fallback)
    return GammaParameters(b, s, whole_dimension(s), group_of)


@compiled
def pooled(table: Array, usable: np.ndarray, group_of: np.ndarray, groups: int) -> Array:
    """For each group's usable clusters: distances that are not zero, the side c of the shape's equation, the mean u."""
    sums = np.zeros((3, groups))
    n = np.zeros(groups)
    for j in range(len(group_of)):
        if usable[j]:
            _, count, mean, spread, points, zeros, _ = table[:, j]
            group = group_of[j]
            sums[0, group] += points - 1.0 - zeros
            sums[1, group] += spread
            sums[2, group] += count * mean
            n[group] += count
    for group in range(groups):
        if n[group] > 0:
            sums[1:, group] /= n[group]
    return sums


@compiled
def scales(
    table: Array,
    usable: np.ndarray,
    classes: np.ndarray,
    group_of: np.ndarray,
    distances: Array,
    mean: Array,
    shapes: Array,
    fallback: Array,
) -> tuple[Array, Array]:
    """The shape s and the shrunk scale b of each cluster; the fallback where its group has fewer than two distances."""
    s, b = shapes[group_of], np.empty(len(group_of))
    for j in range(len(group_of)):
        group, counted = group_of[j], table[6, j]
        if distances[group] < 2:
            b[j] = fallback[classes[j]]
            continue
        own_share = counted / (counted + 1.0) if usable[j] else 0.0
        b[j] = (own_share * table[2, j] + (1.0 - own_share) * mean[group]) / s[j]
    return s, b


def shape_groups(sums: ClusterSums, groups: int) -> np.ndarray:
    """Components in a few groups of like shape: their own shapes, by their logarithm, cut where that costs least.

    A shape of a few points says little: as b, its equation's side c is drawn to that of all by 1 / (|I_j| + 1). The
    cost is the weighted sum of squares about the groups' means; components of fewer than `LEAST_DISTANCES` counted
    points, and those that are left out, go to the middle group.
    """
    used = np.flatnonzero(sums.usable & (sums.points - 1 - sums.zeros >= LEAST_DISTANCES))
    if not len(used):
        return np.zeros(len(sums.classes), dtype=np.int64)
    counts, spreads, counted = sums.counts[used], sums.spreads[used], sums.counted[used]
    of_all = spreads.sum() / counts.sum()
    x = np.log([solve_shape(c) for c in (counted * spreads / counts + of_all) / (counted + 1.0)])
    order = np.argsort(x, kind="stable")
    x, w = x[order], (counts / counts.sum())[order]
    n, most = len(x), min(groups, len(x))
    W, S, Q = (np.concatenate([[0.0], np.cumsum(values)]) for values in (w, w * x, w * x * x))

    best, cuts = np.full((most + 1, n + 1), np.inf), np.zeros((most + 1, n + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for g in range(1, most + 1):
        for c in range(g, n + 1):
            a = np.arange(g - 1, c)
            options = best[g - 1, a] + Q[c] - Q[a] - (S[c] - S[a]) ** 2 / (W[c] - W[a])
            cuts[g, c] = g - 1 + int(np.argmin(options))
            best[g, c] = options.min()
    label, c = np.empty(n, dtype=np.int64), n
    for g in range(most, 0, -1):
        start = int(cuts[g, c])
        label[start:c], c = g - 1, start
    group_of = np.full(len(sums.classes), most // 2, dtype=np.int64)
    group_of[used[order]] = label
    return group_of


def kernel_parameters(u: Array, w: Array, fallback: float, shape: float | None = None) -> tuple[float, float]:
    """The shape s (unless given) and the scale b of Kernel HLM, by equation (4) with one cluster.

    `u` are squared distances, of weights w, to the nearest row of the same class; zeros do not count.
    """
    u, w = u[u > 0], w[u > 0]
    if len(u) < 2:
        return shape or 0.5, fallback
    s = shape or solve_shape(spread_of_logs(u, w) / float(w.sum()))
    return s, float(w @ u) / float(w.sum()) / s


def log_densities(squares: Array, b: Array, s: Array, log_weights: Array, classes: np.ndarray, count: int) -> Array:
    """The log density log phi(z | class) of each class (columns), for rows of squared distances to all components."""
    terms = log_weights - s * np.log(np.pi * b) - squares / b
    densities = np.full((len(squares), count), -np.inf)
    for k in range(count):
        here = classes == k
        if here.any():
            densities[:, k] = logsumexp(terms[:, here], axis=1)
    return densities


def posteriors(log_density: Array, prior: Array) -> Array:
    """The posteriors of the classes (columns) by equation (6), in logarithms; the prior where densities underflow."""
    with np.errstate(divide="ignore"):
        joint = log_density + np.log(prior)
    top = joint.max(axis=1, keepdims=True)
    some = np.isfinite(top)
    relative = np.exp(joint - np.where(some, top, 0.0))
    return np.where(some, relative / np.maximum(relative.sum(axis=1, keepdims=True), 1.0), prior)
