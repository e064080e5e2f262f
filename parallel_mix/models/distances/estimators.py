"""The base of scikit-learn estimators on precomputed distances: rows of D are points, columns the points of `fit`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.distances.checks import can_be_squared


def check_symmetric(D: np.ndarray) -> None:
    """Refuse distances that are not symmetric, for methods that use one of d(x, y) and d(y, x) alone."""
    if not np.allclose(D, D.T, rtol=1e-6, atol=0.0):
        raise ValueError("Ward's method needs symmetric distances: take (D + D.T) / 2.")


class OnDistances(BaseEstimator):  # type: ignore[misc]
    """An estimator whose input is a matrix of distances."""

    backend: Backend | None
    metric = "precomputed"  # as scikit-learn's own say it
    takes = "distances"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags

    def checked_square(self, D: Any, y: Any = "no_validation") -> tuple[np.ndarray, Any]:
        """The square matrix of distances that `fit` was given, and the classes y (where given), checked."""
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

    def checked_new(self, D: Any) -> np.ndarray:
        """The distances of new points to those of `fit`, checked."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, D, dtype=np.float64, reset=False))

    def checked_weights(self, sample_weight: Any, D: np.ndarray) -> np.ndarray | None:
        """The weights of the points, checked; None where none are given."""
        if sample_weight is None:
            return None
        w = np.asarray(_check_sample_weight(sample_weight, D, dtype=np.float64, ensure_non_negative=True))
        if not w.any():
            raise ValueError("The weights are all zero.")
        return w

    def on_backend(self, work: Any) -> Any:
        """The result of `work(backend)`, on the estimator's backend or, without one, on all cores of this machine."""
        if self.backend is not None:
            return work(self.backend)
        with SerialBackend() as backend:
            return work(backend)
