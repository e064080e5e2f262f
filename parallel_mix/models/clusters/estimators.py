"""Scikit-learn estimators that cluster by precomputed distances: rows of D are points, columns the points of `fit`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from parallel_mix.backends.base import Backend
from parallel_mix.models.clusters.clustering import Clustering, check_counts, cluster_distances
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.distances.estimators import OnDistances, check_symmetric


class _Medoids(ClusterMixin, OnDistances):  # type: ignore[misc]
    """What the clusterings have in common: `fit` by their method, and new points to the nearest medoid."""

    n_clusters: int
    _method: str

    def fit(self, D: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the points of a square matrix of distances."""
        D, _ = self.checked_square(D)
        check_counts([self.n_clusters], len(D))
        if self._method == "ward":
            check_symmetric(D)
        w = self.checked_weights(sample_weight, D)
        clusterings: dict[int, Clustering] = self.on_backend(
            lambda backend: cluster_distances(
                HeldMatrix(D), self._method, [self.n_clusters], w=w, backend=backend, **self._options()
            )
        )
        chosen = clusterings[self.n_clusters]
        self.labels_, self.medoid_indices_, self.inertia_ = chosen.labels, chosen.medoids, chosen.loss
        return self

    def predict(self, D: Any) -> np.ndarray:
        """The cluster of the nearest medoid, from distances to all points of `fit`."""
        return np.asarray(self.checked_new(D)[:, self.medoid_indices_].argmin(axis=1))

    def _options(self) -> dict[str, Any]:
        return {}


class VertexSubstitution(_Medoids):
    """Vertex substitution (Teitz & Bart 1968): medoids of the least total distance, the best of some random starts.

    Parameters
    ----------
    n_clusters : int
    restarts : int
        Random starts.
    random_state : int
    backend : Backend, optional
        Where to run; by default on all cores of this machine.

    Attributes
    ----------
    labels_ : (n), by falling size of the cluster.
    medoid_indices_ : (k) points of `fit`.
    inertia_ : total distance to the medoids.
    """

    _method = "vsh"

    def __init__(
        self, n_clusters: int = 8, *, restarts: int = 20, random_state: int = 0, backend: Backend | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.restarts = restarts
        self.random_state = random_state
        self.backend = backend

    def _options(self) -> dict[str, Any]:
        return {"restarts": self.restarts, "seed": self.random_state}


class GeneralizedKMeans(_Medoids):
    """Generalized k-means (k-medoids by alternation) from a k-center start; attributes as `VertexSubstitution`."""

    _method = "gkmeans"

    def __init__(self, n_clusters: int = 8, *, backend: Backend | None = None) -> None:
        self.n_clusters = n_clusters
        self.backend = backend


class WardDistance(_Medoids):
    """Ward's clustering from distances alone; medoids are those of its clusters."""

    _method = "ward"

    def __init__(self, n_clusters: int = 8, *, backend: Backend | None = None) -> None:
        self.n_clusters = n_clusters
        self.backend = backend
