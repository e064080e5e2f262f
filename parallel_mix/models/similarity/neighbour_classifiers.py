"""Classification by the k nearest: their votes, or weights that are kernels of similarity (Chen et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from parallel_mix.kernels.similarity.nearest_neighbours import first_largest, most_similar, votes
from parallel_mix.kernels.similarity.neighbour_weights import affinities, interpolation_weights, regression_weights
from parallel_mix.kernels.similarity.spectrum import clipped
from parallel_mix.models.similarity.classifiers import COUNT, POSITIVE, Ints, Limits, PairwiseClassifier

ENTRIES = 2**23
"""The most entries of the k x k matrices that are in memory together."""


class KNNClassifier(PairwiseClassifier):
    """The class of most of the k nearest; of equal ones that of the larger prior.

    Parameters
    ----------
    n_neighbors : int
    input : {"similarities", "distances"}
    """

    served: ClassVar[tuple[str, ...]] = ("n_neighbors",)
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT}
    learns_classes_only: ClassVar[bool] = True

    def __init__(self, n_neighbors: int = 5, *, input: str = "similarities") -> None:
        self.n_neighbors = n_neighbors
        self.input = input

    def _learn(self, S: Any, y: Ints) -> None:
        if self.input not in ("similarities", "distances"):
            raise ValueError(f"input must be similarities or distances, not {self.input!r}.")
        self.y_ = y

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        ks = np.array([setting["n_neighbors"] for setting in settings], dtype=np.int64)
        order = np.argsort(ks, kind="stable")
        numbers = np.empty((len(ks), len(S)), dtype=np.int64)
        numbers[order] = votes(self._nearest(S, int(ks.max())), self.y_, self.prior_, ks[order])
        return numbers

    def _nearest(self, S: np.ndarray, k: int) -> Ints:
        return most_similar(-S if self.input == "distances" else S, k)


class VectorKNNClassifier(KNNClassifier):
    """The class of most of the k nearest vectors by Euclidean distance; of equal ones that of the larger prior."""

    learns_classes_only: ClassVar[bool] = False
    takes: ClassVar[str] = "vectors"

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def _learn(self, S: Any, y: Ints) -> None:
        self.y_, self.X_ = y, S

    def _nearest(self, S: np.ndarray, k: int) -> Ints:
        return most_similar(-cdist(S, self.X_), k)


class _WeightedNeighbours(PairwiseClassifier):
    """The class whose neighbours have the largest sum of weights."""

    n_neighbors: int
    _rounding = 1e-12
    """What sums of weights may be wrong by."""

    def _learn(self, S: Any, y: Ints) -> None:
        self.S_, self.y_ = S, y

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        near = most_similar(S, max(setting["n_neighbors"] for setting in settings))
        numbers = np.empty((len(settings), len(S)), dtype=np.int64)
        for k in sorted({setting["n_neighbors"] for setting in settings}):
            which = [t for t, setting in enumerate(settings) if setting["n_neighbors"] == k]
            some = near[:, :k]
            step = max(ENTRIES // some.shape[1] ** 2, 1)
            for a in range(0, len(S), step):
                rows = slice(a, a + step)
                s = np.take_along_axis(S[rows], some[rows], axis=1)
                weights = self._weights(s, some[rows], [settings[t] for t in which])
                numbers[which, rows] = self._heaviest(weights, some[rows])
        return numbers

    def _heaviest(self, weights: np.ndarray, near: Ints) -> Ints:
        """The class with the largest sum of weights (settings, rows, k), as numbers (settings, rows)."""
        of = self.y_[near]
        totals = np.stack([(weights * (of == c)).sum(axis=-1) for c in range(len(self.prior_))], axis=-1)
        there = np.stack([(of == c).any(axis=-1) for c in range(len(self.prior_))], axis=-1)
        return first_largest(np.where(there, totals, -np.inf), self.prior_, self._rounding)

    def _weights(self, s: np.ndarray, near: Ints, settings: list[dict[str, Any]]) -> np.ndarray:
        raise NotImplementedError


class AffinityKNNClassifier(_WeightedNeighbours):
    """Weights that rise with similarity: (s - the least one of the training data where that is negative) / sum."""

    served: ClassVar[tuple[str, ...]] = ("n_neighbors",)
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT}

    def __init__(self, n_neighbors: int = 5) -> None:
        self.n_neighbors = n_neighbors

    def _learn(self, S: Any, y: Ints) -> None:
        super()._learn(S, y)
        self.lowest_ = min(0.0, float(S.min()))
        del self.S_

    def _weights(self, s: np.ndarray, near: Ints, settings: list[dict[str, Any]]) -> np.ndarray:
        return affinities(s, self.lowest_)[None]


class KRIKNNClassifier(_WeightedNeighbours):
    """Kernel ridge interpolation: w of least 1/2 w'Sw - s'w + lambda/2 w'w, w >= 0, sum w = 1; S clipped, of the k."""

    _rounding = 1e-6  # where the gaps between gradients are 1e-10 and the ridge is small
    served: ClassVar[tuple[str, ...]] = ("n_neighbors", "ridge")
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT, "ridge": POSITIVE}

    def __init__(self, n_neighbors: int = 5, *, ridge: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.ridge = ridge

    def _weights(self, s: np.ndarray, near: Ints, settings: list[dict[str, Any]]) -> np.ndarray:
        K = clipped(self.S_[near[:, :, None], near[:, None, :]])
        return np.stack([interpolation_weights(K, s, setting["ridge"]) for setting in settings])


class KRRKNNClassifier(_WeightedNeighbours):
    """Kernel ridge regression: w = pinv(S + lambda I) s, S of the neighbours."""

    _rounding = 1e-9
    served: ClassVar[tuple[str, ...]] = ("n_neighbors", "ridge")
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT, "ridge": Limits(0.0)}

    def __init__(self, n_neighbors: int = 5, *, ridge: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.ridge = ridge

    def _weights(self, s: np.ndarray, near: Ints, settings: list[dict[str, Any]]) -> np.ndarray:
        K = self.S_[near[:, :, None], near[:, None, :]]
        return regression_weights(K, s, np.array([setting["ridge"] for setting in settings]))
