"""Scikit-learn classifiers by mixtures over precomputed distances: rows of D are points, columns those of `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from parallel_mix.backends.base import Backend
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.distances.estimators import OnDistances, check_symmetric
from parallel_mix.models.hlm.fit import candidate_models, check_classes, fit_hlm
from parallel_mix.models.hlm.model import KERNEL, HlmModel, HlmSettings


class _Classifier(ClassifierMixin, OnDistances):  # type: ignore[misc]
    """A mixture over distances for each class.

    In cross-validation one fit serves all numbers of components (`served`).
    """

    served = ("n_components",)
    learns_classes_only = False

    def fit_checked(self, D: np.ndarray, y: np.ndarray) -> Self:
        """Keep distances and classes that have been checked; models are fitted when classes are asked for."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self._kept = D, numbers
        return self

    def predict_settings(self, D: np.ndarray, settings: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """The classes of new rows for each setting of the number of components, (settings, rows)."""
        fixed, kept = self._settings(), self._kept
        counts = [int(setting.get("n_components", fixed.components[0])) for setting in settings]
        models = candidate_models(*kept, tuple(dict.fromkeys(counts)), fixed)
        of = dict(zip(dict.fromkeys(counts), models, strict=True))
        return np.stack([self.classes_[of[k].posteriors(D[:, of[k].centroids]).argmax(axis=1)] for k in counts])

    def fit(self, D: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit from a square matrix of distances and classes."""
        D, y = self.checked_square(D, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        w, count = self.checked_weights(sample_weight, D), len(self.classes_)
        check_classes(numbers if w is None else np.where(w > 0, numbers, -1))
        if self._settings().clustering == "ward":
            check_symmetric(D)
        fitted = self.on_backend(
            lambda backend: fit_hlm(HeldMatrix(D), numbers, self._settings(), backend, w=w, classes=count)
        )
        model: HlmModel = fitted.model
        self.model_, self.centroids_ = model, model.centroids
        self.errors_, self.n_components_ = fitted.errors, model.count
        return self

    def predict_proba(self, D: Any) -> np.ndarray:
        """The posterior of each class (columns) for new points, from their distances to all points of `fit`."""
        new = self.checked_new(D)
        return self.model_.posteriors(new[:, self.centroids_])

    def predict(self, D: Any) -> np.ndarray:
        """The class of the largest posterior, from the distances of new points to all points of `fit`."""
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
