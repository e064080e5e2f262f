"""Classifiers on similarities: scikit-learn's own checks, equality with scikit-learn, local SDA by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from parallel_mix import (
    AffinityKNNClassifier,
    FeatureSVC,
    KNNClassifier,
    KRIKNNClassifier,
    KRRKNNClassifier,
    LocalSDAClassifier,
    LocalSVC,
    PotentialSVC,
    SimilaritySVC,
)
from parallel_mix.kernels.similarity.local_similarity import bins_of, similarity_values
from parallel_mix.models.similarity.neighbour_classifiers import VectorKNNClassifier
from tests.conftest import blobs

X = blobs(120, 3, 4)
Y = np.array(["a", "b", "c"])[np.arange(120) % 3]
X[Y == "b"] += 3.0
S = np.exp(-(cdist(X, X) ** 2) / 20)
TRAIN, TEST = np.arange(90), np.arange(90, 120)
S_TRAIN, S_TEST = S[:90, :90], S[90:, :90]
ESTIMATORS = [
    KNNClassifier(5),
    AffinityKNNClassifier(5),
    KRIKNNClassifier(7),
    KRRKNNClassifier(7),
    SimilaritySVC(1.0),
    SimilaritySVC(1.0, change="flip"),
    SimilaritySVC(1.0, change="shift"),
    FeatureSVC(1.0, 0.1),
    FeatureSVC(1.0, kernel="linear"),
    LocalSVC(9),
    LocalSVC(9, change="features"),
    PotentialSVC(),
    LocalSDAClassifier(16),
    LocalSDAClassifier(16, estimate="marginal"),
    LocalSDAClassifier(16, estimate="joint"),
    LocalSDAClassifier(16, estimate="bayesian"),
    LocalSDAClassifier(16, pairwise=True),
    LocalSDAClassifier(16, pairwise=True, estimate="bayesian"),
]
GRIDS = {
    "n_neighbors": [1, 4, 20, 500],
    "ridge": [0.1, 10.0],
    "C": [0.1, 10.0],
    "gamma": [0.1, 1.0],
    "eps": [0.1, 0.5],
    "zeta": [0.01, 0.5],
}


def name_of(estimator: Any) -> str:
    return str(estimator)[:60]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_one_fit_serves_many_settings(estimator: Any) -> None:
    names = [name for name in estimator.served if name in GRIDS]
    settings = [{}]
    for name in names:
        settings = [{**setting, name: value} for setting in settings for value in GRIDS[name]]
    model = clone(estimator).fit(S_TRAIN, Y[TRAIN])
    predictions = model.predict_settings(S_TEST, settings)
    for setting, told in zip(settings, predictions, strict=True):
        alone = clone(estimator).set_params(**setting).fit(S_TRAIN, Y[TRAIN])
        np.testing.assert_array_equal(alone.predict(S_TEST), told)
    assert np.mean(model.predict(S_TEST) == Y[TEST]) > 0.4
    if estimator.learns_classes_only:
        np.testing.assert_array_equal(
            clone(estimator).fit_checked(None, Y[TRAIN]).predict_settings(S_TEST, settings), predictions
        )


@pytest.mark.parametrize(
    "estimator", ESTIMATORS[:1] + ESTIMATORS[4:5] + ESTIMATORS[9:10] + ESTIMATORS[-3:-2], ids=name_of
)
def test_scikit_learns_own_checks(estimator: Any) -> None:
    failed = check_estimator(estimator, on_fail=None)
    names = {check["check_name"]: str(check["exception"]) for check in failed if check["status"] == "failed"}
    assert not names, names


def test_in_a_grid_search() -> None:
    search = GridSearchCV(KNNClassifier(), {"n_neighbors": [1, 3, 9]}, cv=3).fit(S, Y)
    ours = GridSearchCV(KNeighborsClassifier(metric="precomputed"), {"n_neighbors": [1, 3, 9]}, cv=3)
    ours.fit(np.sqrt(np.maximum(2 - 2 * S, 0)), Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], ours.cv_results_["mean_test_score"], atol=0.04)
    assert GridSearchCV(SimilaritySVC(), {"C": [0.1, 1.0]}, cv=3).fit(S, Y).best_score_ > 0.4


def test_neighbours_are_scikit_learns() -> None:
    D = cdist(X, X)
    for k in (1, 3, 5, 9):
        theirs = KNeighborsClassifier(k, metric="precomputed").fit(D[:90, :90], Y[TRAIN])
        distances = KNNClassifier(k, input="distances").fit(D[:90, :90], Y[TRAIN]).predict(D[90:, :90])
        vectors = VectorKNNClassifier(k).fit(X[:90], Y[TRAIN]).predict(X[90:])
        np.testing.assert_array_equal(distances, vectors)
        p = theirs.predict_proba(D[90:, :90])
        clear = np.sort(p, axis=1)[:, -1] > np.sort(p, axis=1)[:, -2]  # ties are told by the prior
        np.testing.assert_array_equal(distances[clear], theirs.predict(D[90:, :90])[clear])


def test_machines_are_scikit_learns() -> None:
    for C in (0.1, 10.0):
        theirs = SVC(C=C, kernel="precomputed").fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)  # S is definite
        np.testing.assert_array_equal(SimilaritySVC(C).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST), theirs)
        theirs = SVC(C=C, kernel="rbf", gamma=0.3).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
        np.testing.assert_array_equal(FeatureSVC(C, 0.3).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST), theirs)
        theirs = SVC(C=C, kernel="linear").fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
        np.testing.assert_array_equal(FeatureSVC(C, kernel="linear").fit(S_TRAIN, Y[TRAIN]).predict(S_TEST), theirs)


@pytest.mark.parametrize("change", ["clip", "flip", "shift", "features"])
def test_local_machines_by_hand(change: str) -> None:
    T = S - 0.3 + 0.2 * np.sin(np.add.outer(np.arange(120), np.arange(120)))  # indefinite
    np.fill_diagonal(T, 1.0)
    model = LocalSVC(11, 1.0, change=change).fit(T[:90, :90], Y[TRAIN])
    told = model.predict(T[90:, :90])
    for row, x in enumerate(TEST):
        near = np.argsort(-T[x, :90], kind="stable")[:11]
        if len(set(Y[near])) == 1:
            expected = Y[near[0]]
        elif change == "features":
            expected = SVC(C=1.0, kernel="linear").fit(T[np.ix_(near, near)], Y[near]).predict(T[x, near][None])[0]
        else:
            some = [*near, x]
            L, U = np.linalg.eigh(T[np.ix_(some, some)])
            L = {"clip": np.maximum(L, 0), "flip": np.abs(L), "shift": L - min(L.min(), 0)}[change]
            K = U @ np.diag(L) @ U.T
            expected = SVC(C=1.0, kernel="precomputed").fit(K[:11, :11], Y[near]).predict(K[11, :11][None])[0]
        assert told[row] == expected


def slow_local_sda(x: int, k: int, estimate: str, pairwise: bool, zeta: float) -> np.ndarray | None:
    """Posteriors of a test row, from the definitions; None where it is degenerate."""
    omega, y = similarity_values(S_TRAIN), np.unique(Y[TRAIN], return_inverse=True)[1]
    B = omega[bins_of(S_TRAIN, omega)]

    def local(near: np.ndarray) -> tuple[dict[int, int], dict[tuple[int, int], np.ndarray]]:
        of = {g: sorted(z for z in near if y[z] == g) for g in range(3)}
        mu = {
            h: max(of[h], key=lambda v: (round(sum(S_TRAIN[a, v] for a in of[h] if a != v), 12), -v))
            for h in range(3)
            if of[h]
        }
        values = {}
        for h in mu:
            for g in range(3):
                if pairwise:
                    similarities = [B[z, o] for z in of[g] for o in of[h] if z != o or len(of[g]) == 1]
                else:
                    similarities = [B[z, mu[h]] for z in of[g] if z != mu[h] or len(of[h]) == 1]
                if similarities:
                    values[g, h] = np.array(similarities)
        return mu, values

    def exponential(values: np.ndarray) -> np.ndarray | None:
        mean = values.mean()
        if mean <= omega[0] + 1e-9 or mean >= omega[-1] - 1e-9:
            return None
        z = (omega - omega[0]) / (omega[-1] - omega[0])
        target = (mean - omega[0]) / (omega[-1] - omega[0])

        def pmf(t: float) -> np.ndarray:
            e = np.exp(t * z - (t * z).max())
            return e / e.sum()

        return pmf(brentq(lambda t: pmf(t) @ z - target, -1e3, 1e3, xtol=1e-13))

    def delta(values: np.ndarray) -> np.ndarray:
        return np.eye(len(omega))[0 if values.mean() <= omega[0] + 1e-9 else -1]

    near = np.argsort(-S[x, :90], kind="stable")[:k]
    mu, values = local(near)
    averages: dict[tuple[int, int], np.ndarray] = {}
    alphas: dict[tuple[int, int], np.ndarray] = {}
    if estimate != "exponential":
        histories: dict[tuple[int, int], list[np.ndarray]] = {}
        for z in range(90):
            row = S_TRAIN[z].copy()
            row[z] = -np.inf
            for key, sample in local(np.argsort(-row, kind="stable")[:k])[1].items():
                histories.setdefault(key, []).append(sample)
        from parallel_mix.kernels.similarity.dirichlet import dirichlet_prior

        for key, samples in histories.items():
            pmfs = [exponential(one) if exponential(one) is not None else delta(one) for one in samples]
            averages[key] = np.mean(pmfs, axis=0)
            counts = np.array([np.bincount(bins_of(one, omega), minlength=len(omega)) for one in samples])
            alphas[key] = dirichlet_prior(counts)
    joint = np.full(3, -np.inf)
    for g in mu:
        plain, mixed = [], []
        for h in mu:
            if estimate == "bayesian":
                counts = np.bincount(bins_of(values[g, h], omega), minlength=len(omega)) if (g, h) in values else 0
                theta = (alphas[g, h] + counts) / (alphas[g, h] + counts).sum()
            elif (g, h) not in values:
                continue
            else:
                theta = exponential(values[g, h])
                if theta is None and estimate == "exponential":
                    return None
                theta = delta(values[g, h]) if theta is None else theta
            at = [z for z in near if y[z] == h] if pairwise else [mu[h]]
            place = bins_of(S[x, at], omega)
            plain.append(theta[place].mean())
            mixed.append(averages[g, h][place].mean() if estimate in ("marginal", "joint") else 0.0)
        with np.errstate(divide="ignore"):
            if estimate == "marginal":
                joint[g] = np.log((1 - zeta) * np.array(plain) + zeta * np.array(mixed)).sum()
            elif estimate == "joint":
                joint[g] = np.log((1 - zeta) * np.prod(plain) + zeta * np.prod(mixed))
            else:
                joint[g] = np.log(plain).sum()
    joint += np.log(np.bincount(y) / 90)
    p = np.exp(joint - joint.max())
    return p / p.sum()


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("estimate", ["exponential", "marginal", "joint", "bayesian"])
def test_local_sda_by_its_definitions(estimate: str, pairwise: bool) -> None:
    k, zeta = 20, 0.3
    model = LocalSDAClassifier(k, estimate=estimate, pairwise=pairwise, zeta=zeta).fit(S_TRAIN, Y[TRAIN])
    p, compared = model.predict_proba(S_TEST), 0
    for row in range(12):
        expected = slow_local_sda(90 + row, k, estimate, pairwise, zeta)
        if expected is not None:
            np.testing.assert_allclose(p[row], expected, atol=1e-7)
            compared += 1
    assert compared >= 3
    theta = model.pmfs(S_TEST)
    known = np.isfinite(theta[..., 0])
    np.testing.assert_allclose(theta[known].sum(axis=-1), 1.0)


def test_degenerate_neighbourhoods_fall_back() -> None:
    model = LocalSDAClassifier(2).fit(S_TRAIN, Y[TRAIN])
    told = model.predict(S_TEST)
    assert model.is_degenerate(S_TEST).any()
    knn = LocalSDAClassifier(2, fallback="knn").fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
    assert set(told) | set(knn) <= {"a", "b", "c"}
    same = LocalSDAClassifier(1).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
    np.testing.assert_array_equal(same, KNNClassifier(1).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST))


def test_costs_and_priors_decide() -> None:
    usual = LocalSDAClassifier(20, estimate="bayesian").fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
    costs = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1000.0, 1000.0, 0.0]])  # dear to tell c
    dear = LocalSDAClassifier(20, estimate="bayesian", costs=costs).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
    assert (dear == "c").sum() < (usual == "c").sum()
    often = LocalSDAClassifier(20, estimate="bayesian", priors=[1e-9, 1e-9, 1.0]).fit(S_TRAIN, Y[TRAIN]).predict(S_TEST)
    assert (often == "c").sum() > (usual == "c").sum()


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (KNNClassifier(0), "n_neighbors must be a whole number, at least 1"),
        (KNNClassifier(input="what"), "similarities or distances"),
        (KRIKNNClassifier(ridge=0.0), "ridge must be a number, above 0"),
        (SimilaritySVC(0.0), "C must be a number, above 0"),
        (SimilaritySVC(change="twist"), "clip, flip, shift"),
        (FeatureSVC(kernel="poly"), "linear or rbf"),
        (FeatureSVC(gamma=-1.0), "gamma must be a number, above 0"),
        (LocalSVC(change="twist"), "features"),
        (PotentialSVC(eps=-1.0), "eps must be a number, at least 0"),
        (LocalSDAClassifier(estimate="guess"), "estimate must be one of"),
        (LocalSDAClassifier(zeta=2.0), "zeta must be a number, at least 0 and at most 1"),
        (LocalSDAClassifier(costs=np.eye(2)), "costs have shape"),
        (LocalSDAClassifier(priors=[0.5, 0.5]), "There must be 3 priors"),
    ],
    ids=name_of,
)
def test_bad_parameters_are_sentences(estimator: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        estimator.fit(S, Y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_odd_matrices(estimator: Any) -> None:
    """Singular, indefinite, asymmetric, constant: an answer, and never NaN."""
    r = np.random.default_rng(3)
    odd = {
        "singular": np.ones((60, 60)),
        "indefinite": np.sin(np.add.outer(np.arange(60), 3.0 * np.arange(60))),
        "asymmetric": r.uniform(0, 1, (60, 60)),
        "duplicates": np.tile(S[:30, :30], (2, 2)),
        "negative": -S[:60, :60],
    }
    for matrix in odd.values():
        told = clone(estimator).fit(matrix, Y[:60]).predict(matrix[:9])
        assert set(told) <= {"a", "b", "c"}
    with pytest.raises(ValueError, match="not square"):
        clone(estimator).fit(S[:, :50], Y)
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(S * np.nan, Y)
    assert len(cross_val_predict(clone(estimator), S, Y, cv=3)) == 120
