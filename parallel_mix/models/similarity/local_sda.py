"""Local similarity discriminant analysis and its variants (Cazzanti & Gupta; Sadowski, Cazzanti & Gupta)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted, validate_data

from parallel_mix.kernels.similarity.dirichlet import dirichlet_prior
from parallel_mix.kernels.similarity.local_similarity import (
    are_extreme,
    bins_of,
    centroids_of,
    exponential_pmfs,
    histograms_of_pairs,
    histograms_to_centroids,
    means_of,
    similarity_values,
)
from parallel_mix.kernels.similarity.nearest_neighbours import first_largest, most_similar, votes
from parallel_mix.models.similarity.classifiers import COUNT, Ints, Limits, PairwiseClassifier, Setting

ESTIMATES = ("exponential", "marginal", "joint", "bayesian")
ENTRIES = 2**22
"""The most numbers in the pmfs of the rows of a block."""
FALLBACKS = ("centroid", "knn")


@dataclass(frozen=True)
class Neighbourhoods:
    """The k nearest training points of some rows, and what their similarities are."""

    near: Ints  # (rows, k)
    centroids: Ints  # (rows, h); -1
    counts: Ints  # (rows, g, h, r)

    @property
    def present(self) -> np.ndarray:
        """Classes that have neighbours, (rows, classes)."""
        return np.asarray(self.centroids >= 0)


class LocalSDAClassifier(PairwiseClassifier):
    """Classes by the probability of a row's similarities to its neighbours, by pmfs estimated from its neighbourhood.

    By default these are the similarities to the local centroids of the classes and the pmfs exponential ones with the
    mean that the neighbours have. Where such a mean lies at an end of the values a pmf would be degenerate: then the
    class of the most similar centroid is predicted (or, by `fallback`, that of most neighbours).

    Parameters
    ----------
    n_neighbors : int
    estimate : {"exponential", "marginal", "joint", "bayesian"}
        "marginal" and "joint" mix in the average pmfs of the training points' neighbourhoods, with weight `zeta`, each
        pmf or their product; "bayesian" takes the mean of a Dirichlet posterior, its prior from these neighbourhoods.
    pairwise : bool
        Similarities to all neighbours, not to centroids alone.
    zeta : float
    bins : int, optional
        Equal bins of similarities; by default the distinct values, if there are at most 64, else 20 bins.
    fallback : {"centroid", "knn"}
        The latter also where fewer than two classes have two neighbours.
    costs : (classes, classes), optional
        costs[f, g] of predicting f where g is true; by default 1 unless they are equal.
    priors : (classes), optional
        By default the shares of the classes in the training data.

    Attributes
    ----------
    omega_ : values of similarities.
    """

    served: ClassVar[tuple[str, ...]] = ("n_neighbors", "zeta")
    limits: ClassVar[Mapping[str, Limits]] = {"n_neighbors": COUNT, "zeta": Limits(0.0, most=1.0)}

    def __init__(
        self,
        n_neighbors: int = 16,
        *,
        estimate: str = "exponential",
        pairwise: bool = False,
        zeta: float = 0.1,
        bins: int | None = None,
        fallback: str = "centroid",
        costs: Any = None,
        priors: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.estimate = estimate
        self.pairwise = pairwise
        self.zeta = zeta
        self.bins = bins
        self.fallback = fallback
        self.costs = costs
        self.priors = priors

    def fit(self, S: Any, y: Any) -> Self:
        """Learn from a square matrix and classes."""
        super().fit(S, y)
        if self.estimate != "exponential":
            self._prior_of(self.n_neighbors)
        return self

    def _learn(self, S: Any, y: Ints) -> None:
        self._check()
        G = len(self.classes_)
        self.S_, self.y_ = S, y
        self.omega_ = similarity_values(S, self.bins)
        self.place_ = bins_of(S, self.omega_)
        self.costs_ = 1.0 - np.eye(G) if self.costs is None else np.asarray(self.costs, dtype=np.float64)
        if self.costs_.shape != (G, G):
            raise ValueError(f"costs have shape {self.costs_.shape}: {G} x {G} are needed.")
        self.log_prior_ = np.log(self.prior_ if self.priors is None else np.asarray(self.priors, dtype=np.float64))
        if self.log_prior_.shape != (G,):
            raise ValueError(f"There must be {G} priors.")
        self._known: dict[int, np.ndarray] = {}
        self._ranked = np.empty((0, 0), dtype=np.int64)

    def _check(self) -> None:
        for name, choices in (("estimate", ESTIMATES), ("fallback", FALLBACKS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}.")

    def predict_proba(self, S: Any) -> np.ndarray:
        """Probabilities of the classes; where the fallback decided, 1 for its class."""
        check_is_fitted(self)
        S = validate_data(self, S, dtype=np.float64, reset=False)
        return np.asarray(self._probabilities(S, self._neighbourhoods(S, self.n_neighbors), [self._with({})])[0])

    def is_degenerate(self, S: Any) -> np.ndarray:
        """For which rows the fallback decides."""
        check_is_fitted(self)
        S = validate_data(self, S, dtype=np.float64, reset=False)
        return self._degenerate(self._neighbourhoods(S, self.n_neighbors)) & (self.estimate == "exponential")

    def pmfs(self, S: Any) -> np.ndarray:
        """The pmfs of each row's neighbourhood, theta_gh[j] as (rows, g, h, values); NaN where a class is absent."""
        check_is_fitted(self)
        S = validate_data(self, S, dtype=np.float64, reset=False)
        around = self._neighbourhoods(S, self.n_neighbors)
        return self._local_pmfs(around, self.n_neighbors)

    def _class_numbers(self, S: np.ndarray, settings: list[dict[str, Any]]) -> Ints:
        numbers = np.empty((len(settings), len(S)), dtype=np.int64)
        for k in sorted({setting["n_neighbors"] for setting in settings}, reverse=True):  # one ranking for all
            which = np.array([t for t, setting in enumerate(settings) if setting["n_neighbors"] == k])
            for rows in self._blocks(len(S)):
                p = self._probabilities(S[rows], self._neighbourhoods(S[rows], k), [settings[t] for t in which])
                numbers[which, rows] = first_largest(-(p @ self.costs_.T), self.prior_)
        return numbers

    def _blocks(self, n: int) -> list[slice]:
        """Blocks of rows whose pmfs, one for each row and pair of classes, fit into memory together."""
        step = max(ENTRIES // (len(self.classes_) ** 2 * len(self.omega_)), 1)
        return [slice(a, min(a + step, n)) for a in range(0, n, step)]

    def _neighbourhoods(self, S: np.ndarray, k: int) -> Neighbourhoods:
        return self._around(most_similar(S, k))

    def _around(self, near: Ints) -> Neighbourhoods:
        G, r = len(self.classes_), len(self.omega_)
        centroids = centroids_of(self.S_, self.y_, near, G)
        if self.pairwise:
            counts = histograms_of_pairs(self.place_, self.y_, near, G, r)
        else:
            counts = histograms_to_centroids(self.place_, self.y_, near, centroids, r)
        return Neighbourhoods(near, centroids, counts)

    def _of_training(self, k: int) -> Ints:
        """Histograms of the training points' neighbourhoods, themselves left out."""
        k = min(k, len(self.S_) - 1)
        if self._ranked.shape[1] < k:
            others = self.S_.copy()
            np.fill_diagonal(others, -np.inf)
            self._ranked = most_similar(others, k)
        return self._around(np.ascontiguousarray(self._ranked[:, :k])).counts

    def _prior_of(self, k: int) -> np.ndarray:
        """Dirichlet parameters, or average pmfs, of the training points' neighbourhoods of k points; (g, h, r)."""
        if k not in self._known:
            G, r = len(self.classes_), len(self.omega_)
            if self.estimate == "bayesian":
                counts = self._of_training(k)
                known = [dirichlet_prior(np.ascontiguousarray(counts[:, g, h])) for g in range(G) for h in range(G)]
                self._known[k] = np.array(known).reshape(G, G, r)
            else:
                means = means_of(self._of_training(k), self.omega_)
                some, total = np.isfinite(means).sum(axis=0)[..., None], np.zeros((G, G, r))
                for rows in self._blocks(len(means)):
                    total += np.nansum(exponential_pmfs(means[rows], self.omega_), axis=0)
                self._known[k] = np.where(some > 0, total / np.maximum(some, 1), 1.0 / r)
        return self._known[k]

    def _local_pmfs(self, around: Neighbourhoods, k: int) -> np.ndarray:
        counts = around.counts
        if self.estimate != "bayesian":
            return exponential_pmfs(means_of(counts, self.omega_), self.omega_)
        alpha = self._prior_of(k)
        theta = (alpha + counts) / (alpha.sum(axis=-1) + counts.sum(axis=-1))[..., None]
        there = around.present[:, :, None] & around.present[:, None, :]
        return np.where(there[..., None], theta, np.nan)

    def _marginals(self, S: np.ndarray, around: Neighbourhoods, theta: np.ndarray) -> np.ndarray:
        """The probability P_h of each row's similarities for class g, (rows, g, h), by pmfs (rows or 1, g, h, r)."""
        m, G = len(S), len(self.classes_)
        theta = np.broadcast_to(theta, (m, *theta.shape[1:]))
        if not self.pairwise:
            s = np.take_along_axis(S, np.maximum(around.centroids, 0), axis=1)
            place = np.broadcast_to(bins_of(s, self.omega_)[:, None, :, None], (m, G, G, 1))
            return np.asarray(np.take_along_axis(theta, place, axis=3)[..., 0])
        k = around.near.shape[1]
        place = bins_of(np.take_along_axis(S, around.near, axis=1), self.omega_)
        shares = np.zeros((m, G, len(self.omega_)))  # of the neighbours of each class, by similarity
        np.add.at(shares, (np.repeat(np.arange(m), k), self.y_[around.near].ravel(), place.ravel()), 1.0)
        shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1.0)
        return np.asarray(np.einsum("nghr,nhr->ngh", theta, shares))

    def _probabilities(self, S: np.ndarray, around: Neighbourhoods, settings: Sequence[Setting]) -> np.ndarray:
        """Probabilities of the classes, (settings, rows, classes); all settings have one number of neighbours."""
        k, absent = int(settings[0]["n_neighbors"]), ~around.present
        nothing = absent[:, None, :] | absent[:, :, None]
        plain = np.where(nothing, 1.0, self._marginals(S, around, self._local_pmfs(around, k)))
        if self.estimate in ("marginal", "joint"):
            average = np.where(nothing, 1.0, self._marginals(S, around, self._prior_of(k)[None]))
            mixed = [self._mixed(plain, average, setting["zeta"]) for setting in settings]
            return np.stack([self._posteriors(joint, absent) for joint in mixed])
        with np.errstate(divide="ignore"):
            p = self._posteriors(np.log(plain).sum(axis=2), absent)
        if self.estimate == "exponential":
            degenerate = self._degenerate(around)
            p[degenerate] = np.eye(len(self.classes_))[self._fallen_back(S[degenerate], around, degenerate)]
        return np.broadcast_to(p, (len(settings), *p.shape))

    def _mixed(self, plain: np.ndarray, average: np.ndarray, zeta: float) -> np.ndarray:
        """Logarithms of the regularised joint probabilities, (rows, classes)."""
        with np.errstate(divide="ignore"):
            if self.estimate == "marginal":
                return np.asarray(np.log((1.0 - zeta) * plain + zeta * average).sum(axis=2))
            terms = np.log(plain).sum(axis=2) + np.log(1.0 - zeta), np.log(average).sum(axis=2) + np.log(zeta)
            return np.asarray(np.logaddexp(*terms))

    def _posteriors(self, log_joint: np.ndarray, absent: np.ndarray) -> np.ndarray:
        scores = np.where(absent, -np.inf, log_joint + self.log_prior_)
        lost = np.isneginf(scores).all(axis=1)
        scores[lost] = np.where(absent[lost], -np.inf, self.log_prior_)
        return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))

    def _degenerate(self, around: Neighbourhoods) -> np.ndarray:
        means = means_of(around.counts, self.omega_)
        degenerate = (np.isfinite(means) & are_extreme(means, self.omega_)).any(axis=(1, 2))
        if self.fallback == "knn":  # where there is not enough data
            of = self.y_[around.near]
            degenerate |= sum(((of == g).sum(axis=1) >= 2).astype(int) for g in range(len(self.classes_))) < 2
        return np.asarray(degenerate)

    def _fallen_back(self, S: np.ndarray, around: Neighbourhoods, rows: np.ndarray) -> Ints:
        near, centroids = around.near[rows], around.centroids[rows]
        if self.fallback == "knn":
            return np.asarray(votes(near, self.y_, self.prior_, np.array([near.shape[1]]))[0])
        s = np.take_along_axis(S, np.maximum(centroids, 0), axis=1)
        return first_largest(np.where(centroids >= 0, s, -np.inf), self.prior_)
