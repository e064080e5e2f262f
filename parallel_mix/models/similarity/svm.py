"""Support vector machines on similarities: as a kernel, as features, on the neighbours alone; and the potential SVM."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from parallel_mix.kernels.similarity.nearest_neighbours import most_similar
from parallel_mix.kernels.similarity.potential_svm import box_lasso, standardized
from parallel_mix.kernels.similarity.spectrum import CHANGES, definite
from parallel_mix.kernels.similarity.support_vectors import classes_by_machines
from parallel_mix.models.similarity.classifiers import COUNT, MOST_STEPS, POSITIVE, Ints, Limits, PairwiseClassifier

LOCAL = (*CHANGES, "features")
ENTRIES = 2**22
"""The most entries of the small matrices that are in memory together."""


class _KernelMachine(PairwiseClassifier):
    """LIBSVM on a kernel that is computed once for all settings."""

    C: float

    def fit(self, S: Any, y: Any) -> Self:
        """Learn from a square matrix and classes."""
        super().fit(S, y)
        self._machine(self._with({}))
        return self

    def _machine(self, setting: dict[str, Any]) -> Any:
        """The machine of a setting, fitted when it is asked for."""
        from sklearn.svm import SVC

        key = tuple(setting.values())
        if key not in self.machines_:
            self.machines_[key] = SVC(C=setting["C"], kernel="precomputed", max_iter=MOST_STEPS).fit(
                self._kernel(setting), self.y_
            )
        return self.machines_[key]

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        if len(self.classes_) == 1:
            return np.zeros((len(settings), len(S)), dtype=np.int64)
        new = self._new(S)
        numbers = []
        for setting in settings:
            numbers.append(self._machine(setting).predict(self._kernel_of_new(new, setting)))
            if len(settings) > 1:
                self.machines_.clear()
        return np.stack(numbers)

    def _learn(self, S: Any, y: Ints) -> None:
        if len(self.classes_) < 2:
            raise ValueError("All rows are of one class: two or more are needed.")
        self.y_, self.machines_ = y, dict[Any, Any]()

    def _kernel(self, setting: dict[str, Any]) -> np.ndarray:
        raise NotImplementedError

    def _new(self, S: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _kernel_of_new(self, new: np.ndarray, setting: dict[str, Any]) -> np.ndarray:
        return new


class SimilaritySVC(_KernelMachine):
    """Similarities as a kernel, made definite by clip, flip or shift; new rows by the same map.

    Parameters
    ----------
    C : float
    change : {"clip", "flip", "shift"}
    """

    served: ClassVar[tuple[str, ...]] = ("C",)
    limits: ClassVar[Mapping[str, Limits]] = {"C": POSITIVE}

    def __init__(self, C: float = 1.0, *, change: str = "clip") -> None:
        self.C = C
        self.change = change

    def _learn(self, S: Any, y: Ints) -> None:
        if self.change not in CHANGES:
            raise ValueError(f"change must be one of {', '.join(CHANGES)}, not {self.change!r}.")
        super()._learn(S, y)
        self.K_, self.map_ = definite(S, self.change)

    def _kernel(self, setting: dict[str, Any]) -> np.ndarray:
        return self.K_

    def _new(self, S: np.ndarray) -> np.ndarray:
        return S if self.map_ is None else np.asarray(S @ self.map_)


class FeatureSVC(_KernelMachine):
    """Rows of similarities as features, with a linear kernel, or exp(-gamma |s - s'|^2).

    Parameters
    ----------
    C, gamma : float
    kernel : {"linear", "rbf"}
    """

    served: ClassVar[tuple[str, ...]] = ("C", "gamma")
    limits: ClassVar[Mapping[str, Limits]] = {"C": POSITIVE, "gamma": POSITIVE}

    def __init__(self, C: float = 1.0, gamma: float = 0.1, *, kernel: str = "rbf") -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel

    def _learn(self, S: Any, y: Ints) -> None:
        if self.kernel not in ("linear", "rbf"):
            raise ValueError(f"kernel must be linear or rbf, not {self.kernel!r}.")
        super()._learn(S, y)
        self.features_ = S
        self.products_ = S @ S.T
        self.squares_ = np.diagonal(self.products_).copy()
        self._last: tuple[Any, np.ndarray] | None = None

    def _kernel(self, setting: dict[str, Any]) -> np.ndarray:
        if self.kernel == "linear":
            return np.asarray(self.products_)
        gamma = setting["gamma"]
        if self._last is None or self._last[0] != gamma:
            self._last = gamma, self._gaussian(self.products_, self.squares_, gamma)
        return self._last[1]

    def _gaussian(self, products: np.ndarray, squares: np.ndarray, gamma: float) -> np.ndarray:
        return np.asarray(np.exp(-gamma * np.maximum(squares[:, None] + self.squares_ - 2.0 * products, 0.0)))

    def _new(self, S: np.ndarray) -> np.ndarray:
        self._new_squares = (S * S).sum(axis=1)
        return np.asarray(S @ self.features_.T)

    def _kernel_of_new(self, new: np.ndarray, setting: dict[str, Any]) -> np.ndarray:
        return new if self.kernel == "linear" else self._gaussian(new, self._new_squares, setting["gamma"])


class LocalSVC(PairwiseClassifier):
    """SVM-KNN: for each new row a machine on its k nearest, whose kernel is their similarities.

    By clip, flip and shift the (k + 1) x (k + 1) matrix with the new row is made definite, and cut. By features rows of
    the k x k matrix are features of a linear kernel. Neighbours of one class decide without a machine. A new row's
    similarity to itself is taken to be the median of those of the training rows.

    Parameters
    ----------
    n_neighbors : int
    C : float
    change : {"clip", "flip", "shift", "features"}
    """

    served: ClassVar[tuple[str, ...]] = ("n_neighbors", "C")
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT, "C": POSITIVE}

    def __init__(self, n_neighbors: int = 10, C: float = 1.0, *, change: str = "clip") -> None:
        self.n_neighbors = n_neighbors
        self.C = C
        self.change = change

    def _learn(self, S: Any, y: Ints) -> None:
        if self.change not in LOCAL:
            raise ValueError(f"change must be one of {', '.join(LOCAL)}, not {self.change!r}.")
        self.S_, self.y_, self.own_ = S, y, float(np.median(np.diagonal(S)))

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        near = most_similar(S, max(setting["n_neighbors"] for setting in settings))
        numbers = np.empty((len(settings), len(S)), dtype=np.int64)
        for k in sorted({setting["n_neighbors"] for setting in settings}):
            which = [t for t, setting in enumerate(settings) if setting["n_neighbors"] == k]
            Cs = np.array([float(settings[t]["C"]) for t in which])
            some = near[:, :k]
            of = self.y_[some]
            numbers[which] = of[:, 0]
            mixed = np.flatnonzero((of != of[:, :1]).any(axis=1))
            step = max(ENTRIES // (some.shape[1] + 1) ** 2, 1)
            for a in range(0, len(mixed), step):
                rows = mixed[a : a + step]
                K, new = self._stacks(S[rows], some[rows])
                numbers[np.ix_(np.array(which), rows)] = classes_by_machines(K, of[rows], new, Cs, len(self.classes_))
        return numbers

    def _stacks(self, S: np.ndarray, near: Ints) -> tuple[np.ndarray, np.ndarray]:
        """Kernels of the neighbours of each row (rows, k, k), and between row and neighbours (rows, k)."""
        m, k = near.shape
        K, s = self.S_[near[:, :, None], near[:, None, :]], np.take_along_axis(S, near, axis=1)
        if self.change == "features":
            return K @ np.swapaxes(K, 1, 2), np.einsum("nij,nj->ni", K, s)
        whole = np.empty((m, k + 1, k + 1))
        whole[:, :k, :k], whole[:, :k, k], whole[:, k, :k], whole[:, k, k] = K, s, s, self.own_
        D = definite(whole, self.change)[0]
        return np.ascontiguousarray(D[:, :k, :k]), np.ascontiguousarray(D[:, k, :k])


class PotentialSVC(PairwiseClassifier):
    """The potential SVM on similarities, one class against one.

    Parameters
    ----------
    C : float
        Bound of the weights.
    eps : float
        Price of weights.
    """

    served: ClassVar[tuple[str, ...]] = ("C", "eps")
    limits: ClassVar[Mapping[str, Limits]] = {"C": POSITIVE, "eps": Limits(0.0)}

    def __init__(self, C: float = 1.0, eps: float = 0.1) -> None:
        self.C = C
        self.eps = eps

    def _learn(self, S: Any, y: Ints) -> None:
        if len(self.classes_) < 2:
            raise ValueError("All rows are of one class: two or more are needed.")
        self.pairs_ = []
        for p, q in combinations(range(len(self.classes_)), 2):
            rows = np.flatnonzero((y == p) | (y == q))
            sign = np.where(y[rows] == p, 1.0, -1.0)
            X, mean, scale = standardized(S[np.ix_(rows, rows)])
            gram, response = np.ascontiguousarray(X.T @ X), X.T @ (sign - sign.mean())
            self.pairs_.append((p, q, rows, mean, scale, gram, response, float(sign.mean())))

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        polls = np.zeros((len(settings), len(S), len(self.classes_)), dtype=np.int64)
        for p, q, rows, mean, scale, gram, response, middle in self.pairs_:
            new = (S[:, rows] - mean) / scale
            for t in range(len(settings)):  # each from scratch: none must depend on what else is asked for
                a = np.zeros(len(rows))
                box_lasso(gram, response, settings[t]["eps"], settings[t]["C"], a)
                first = new @ a + middle > 0
                polls[t, :, p] += first
                polls[t, :, q] += ~first
        return np.asarray(polls.argmax(axis=2))
