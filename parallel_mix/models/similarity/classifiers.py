"""The base of all classifiers on similarities (or distances), as scikit-learn estimators.

Rows of the input are points, columns the points of `fit`; `fit` takes the square matrix of these. A classifier names in
`served` the parameters of which one fit serves many values: `predict_settings` predicts for all of them, so that
cross-validation fits once for all. A classifier whose fit needs nothing but the classes says `learns_classes_only`, and
is not handed the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

MOST_STEPS = 1_000_000
"""The most iterations of LIBSVM: with a large penalty on unscaled data it would go on for ever."""
Ints = np.ndarray
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """The numbers that a parameter may be."""

    least: float
    above: bool = False  # the parameter must be above the least value, not equal to it
    most: float = np.inf
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a value out of these limits, of the parameter of this name."""
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if not number or not (value > self.least if self.above else value >= self.least) or value > self.most:
            kind = "a whole number" if self.whole else "a number"
            upto = f" and at most {self.most:g}" if np.isfinite(self.most) else ""
            how = "above" if self.above else "at least"
            raise ValueError(f"{name} must be {kind}, {how} {self.least:g}{upto}, not {value!r}.")


COUNT, POSITIVE = Limits(1, whole=True), Limits(0.0, above=True)


class PairwiseClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose input is a matrix of similarities, or of distances (or, where it says so, vectors)."""

    served: ClassVar[tuple[str, ...]] = ()
    learns_classes_only: ClassVar[bool] = False
    takes: ClassVar[str] = "similarities"  # or "distances"
    limits: ClassVar[Mapping[str, Limits]] = {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.takes != "vectors"
        tags.input_tags.positive_only = self.takes == "distances"
        return tags

    def fit(self, S: Any, y: Any) -> Self:
        """Learn from a square matrix and classes."""
        S, y = validate_data(self, S, y, dtype=np.float64, ensure_min_samples=2)
        if self.takes != "vectors" and S.shape[0] != S.shape[1]:
            raise ValueError(f"A matrix of {S.shape[0]} x {S.shape[1]} is not square.")
        if self.takes == "distances" and (S < 0).any():
            raise ValueError("Negative values in data passed as distances.")
        check_classification_targets(y)
        return self.fit_checked(S, y)

    def fit_checked(self, S: Any, y: Ints) -> Self:
        """Learn from a square matrix and classes that have been checked already."""
        self.check_parameters()
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.prior_ = np.bincount(numbers) / len(numbers)
        self._learn(S, numbers)
        return self

    def predict(self, S: Any) -> Ints:
        """Classes, from the similarities (or distances) to all points of `fit`."""
        check_is_fitted(self)
        S = validate_data(self, S, dtype=np.float64, reset=False)
        return np.asarray(self.predict_settings(S, [{}])[0])

    def predict_settings(self, S: np.ndarray, settings: Sequence[Setting]) -> Ints:
        """The classes of new rows for each of some settings of the parameters `served`, (settings, rows)."""
        for setting in settings:
            self.check_parameters(setting)
        return np.asarray(self.classes_[self._class_numbers(S, [self._with(setting) for setting in settings])])

    def check_parameters(self, setting: Setting | None = None) -> None:
        """Refuse parameters out of their limits, the estimator's own or those of a setting."""
        for name, limits in self.limits.items():
            limits.check(name, (setting or {}).get(name, getattr(self, name)))

    def _with(self, setting: Setting) -> dict[str, Any]:
        return {name: setting.get(name, getattr(self, name)) for name in self.served}

    def _learn(self, S: Any, y: Ints) -> None:
        """Keep what predictions need of the matrix S and the numbers of classes y."""
        raise NotImplementedError

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        """The numbers of the predicted classes, (settings, rows)."""
        raise NotImplementedError
