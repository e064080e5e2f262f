"""Scikit-learn estimators on precomputed distances: rows of D are points, columns the points of `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.distance_checks import can_be_squared
from parallel_mix.models.distance_clustering import Clustering, check_counts, cluster_distances
from parallel_mix.models.hlm import candidate_models, check_classes, fit_hlm
from parallel_mix.models.hlm_model import KERNEL, HlmModel, HlmSettings
from parallel_mix.models.squares import HeldSquare


def check_symmetric(D: np.ndarray) -> None:
    """Refuse distances that differ there and back, where the method knows one of both."""
    if not np.allclose(D, D.T, rtol=1e-6, atol=0.0):
        raise ValueError("Ward's method needs symmetric distances: take (D + D.T) / 2.")


class _OnDistances(BaseEstimator):  # type: ignore[misc]
    """What all have in common: the input is a matrix of distances."""

    backend: Backend | None
    metric = "precomputed"  # as scikit-learn's own say it
    takes = "distances"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags

    def _square(self, D: Any, y: Any = "no_validation") -> tuple[np.ndarray, Any]:
        if isinstance(y, str):
            D = validate_data(self, D, dtype=[np.float64, np.float32], ensure_min_samples=2)
        else:
            D, y = validate_data(self, D, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if D.shape[0] != D.shape[1]:
            raise ValueError(f"Distances of {D.shape[0]} x {D.shape[1]} are no square matrix.")
        if (D < 0).any():
            raise ValueError("Negative values in data passed as distances.")
        if not can_be_squared(float(D.max())):
            raise ValueError(f"The largest distance is {D.max():g}: squares of such are no numbers any more.")
        return D, y

    def _new(self, D: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, D, dtype=np.float64, reset=False))

    def _weights(self, sample_weight: Any, D: np.ndarray) -> np.ndarray | None:
        if sample_weight is None:
            return None
        w = np.asarray(_check_sample_weight(sample_weight, D, dtype=np.float64, ensure_non_negative=True))
        if not w.any():
            raise ValueError("The weights are all zero.")
        return w

    def _on_backend(self, work: Any) -> Any:
        if self.backend is not None:
            return work(self.backend)
        with SerialBackend() as backend:
            return work(backend)


class _Medoids(ClusterMixin, _OnDistances):  # type: ignore[misc]
    """Clusters about medoids."""

    n_clusters: int
    _method: str

    def fit(self, D: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the points of a square matrix of distances."""
        D, _ = self._square(D)
        check_counts([self.n_clusters], len(D))
        if self._method == "ward":
            check_symmetric(D)
        w = self._weights(sample_weight, D)
        found: dict[int, Clustering] = self._on_backend(
            lambda backend: cluster_distances(
                HeldSquare(D), self._method, [self.n_clusters], w=w, backend=backend, **self._more()
            )
        )
        chosen = found[self.n_clusters]
        self.labels_, self.medoid_indices_, self.inertia_ = chosen.labels, chosen.medoids, chosen.loss
        return self

    def predict(self, D: Any) -> np.ndarray:
        """The cluster of the nearest medoid, from distances to all points of `fit`."""
        return np.asarray(self._new(D)[:, self.medoid_indices_].argmin(axis=1))

    def _more(self) -> dict[str, Any]:
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

    def _more(self) -> dict[str, Any]:
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


class _Classifier(ClassifierMixin, _OnDistances):  # type: ignore[misc]
    """A mixture over distances for each class.

    For cross-validation (`models.classifiers`): one fit serves all numbers of components.
    """

    served = ("n_components",)
    learns_classes_only = False

    def fit_checked(self, D: np.ndarray, y: np.ndarray) -> Self:
        """Keep what was checked."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self._kept = D, numbers
        return self

    def predict_settings(self, D: np.ndarray, settings: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Classes for each number of components; (settings, rows)."""
        fixed, kept = self._settings(), self._kept
        counts = [int(setting.get("n_components", fixed.components[0])) for setting in settings]
        models = candidate_models(*kept, tuple(dict.fromkeys(counts)), fixed)
        of = dict(zip(dict.fromkeys(counts), models, strict=True))
        return np.stack([self.classes_[of[k].posteriors(D[:, of[k].centroids]).argmax(axis=1)] for k in counts])

    def fit(self, D: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit from a square matrix of distances and classes."""
        D, y = self._square(D, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        w, count = self._weights(sample_weight, D), len(self.classes_)
        check_classes(numbers if w is None else np.where(w > 0, numbers, -1))
        if self._settings().clustering == "ward":
            check_symmetric(D)
        found = self._on_backend(
            lambda backend: fit_hlm(HeldSquare(D), numbers, self._settings(), backend, w=w, classes=count)
        )
        model: HlmModel = found.model
        self.model_, self.centroids_ = model, model.centroids
        self.errors_, self.n_components_ = found.errors, model.count
        return self

    def predict_proba(self, D: Any) -> np.ndarray:
        """Posteriors, from distances to all points of `fit`."""
        new = self._new(D)
        return self.model_.posteriors(new[:, self.centroids_])

    def predict(self, D: Any) -> np.ndarray:
        """The class of the largest posterior."""
        posterior = self.predict_proba(D)
        return np.asarray(self.classes_[posterior.argmax(axis=1)])

    def _settings(self) -> HlmSettings:
        raise AssertionError("each classifier has its own")


class HLMClassifier(_Classifier):
    """Mixture HLM (Qiao & Li): each class a mixture whose components are clusters, known by distances alone.

    Parameters
    ----------
    n_components : int, or a sequence of them
        Components of each class; of several (0 or "kernel" stands for Kernel HLM) cross-validation chooses.
    clustering : {"vsh", "gkmeans", "ward"}
    shape : {"common", "class", "grouped"}
        One gamma shape, one for each class, or a few for groups of components.
    groups : int
        How many, where they are grouped.
    restarts, folds, random_state : int
    backend : Backend, optional
        Where to run; by default on all cores of this machine.

    Attributes
    ----------
    centroids_ : points of `fit` that are components.
    model_ : scales, shapes and weights.
    errors_ : of the candidates in each fold, where there are several.
    n_components_ : the number that is used; 0 for Kernel HLM.
    """

    def __init__(
        self,
        n_components: Any = 4,
        *,
        clustering: str = "vsh",
        shape: str = "common",
        groups: int = 3,
        restarts: int = 20,
        folds: int = 10,
        random_state: int = 0,
        backend: Backend | None = None,
    ) -> None:
        self.n_components = n_components
        self.clustering = clustering
        self.shape = shape
        self.groups = groups
        self.restarts = restarts
        self.folds = folds
        self.random_state = random_state
        self.backend = backend

    def _settings(self) -> HlmSettings:
        counts = (self.n_components,) if np.isscalar(self.n_components) else tuple(self.n_components)
        counts = tuple(KERNEL if count == "kernel" else count for count in counts)
        fixed = self.clustering, self.shape, self.groups, self.restarts, self.folds, self.random_state
        return HlmSettings(tuple(int(count) for count in counts), *fixed)


class KernelHLMClassifier(_Classifier):
    """Kernel HLM: every point of `fit` a component, one gamma distribution of nearest distances for all.

    `shape` and `scale` take the place of the estimated ones.
    """

    def __init__(
        self, *, shape: float | None = None, scale: float | None = None, backend: Backend | None = None
    ) -> None:
        self.shape = shape
        self.scale = scale
        self.backend = backend

    def _settings(self) -> HlmSettings:
        return HlmSettings((KERNEL,), kernel_shape=self.shape, kernel_scale=self.scale)
