"""Kernels of classifiers on similarities against slow, obvious ones: neighbours, weights, spectra, machines, pmfs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.svm import SVC

from parallel_mix.kernels.similarity.dirichlet import dirichlet_prior
from parallel_mix.kernels.similarity.local_similarity import (
    bins_of,
    centroids_of,
    exponential_pmfs,
    histograms_of_pairs,
    histograms_to_centroids,
    similarity_values,
    solve_lambdas,
)
from parallel_mix.kernels.similarity.nearest_neighbours import first_largest, most_similar, votes
from parallel_mix.kernels.similarity.neighbour_weights import affinities, interpolation_weights, regression_weights
from parallel_mix.kernels.similarity.potential_svm import box_lasso, standardized
from parallel_mix.kernels.similarity.spectrum import CHANGES, definite
from parallel_mix.kernels.similarity.support_vectors import classes_by_machines

R = np.random.default_rng(0)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 5, 40, 90])
def test_the_most_similar(ties: bool, k: int) -> None:
    S = R.normal(size=(30, 40))
    S = np.round(S) if ties else S
    expected = np.argsort(-S, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(most_similar(S, k), expected)
    np.testing.assert_array_equal(most_similar(np.asfortranarray(S), k), expected)


def test_votes_and_ties() -> None:
    y, prior = np.array([0, 1, 1, 2, 2, 0]), np.array([0.2, 0.3, 0.5])
    near = np.array([[0, 1, 3, 4, 2, 5], [1, 2, 0, 3, 5, 4]])
    winners = votes(near, y, prior, np.array([1, 2, 3, 6, 9]))
    np.testing.assert_array_equal(winners[:, 0], [0, 1, 2, 2, 2])
    np.testing.assert_array_equal(winners[:, 1], [1, 1, 1, 2, 2])
    assert votes(near, y, np.full(3, 1 / 3), np.array([2]))[0, 0] == 0
    scores = np.array([[1.0, 1.0 + 1e-15, 0.0], [-np.inf, -np.inf, -np.inf]])
    np.testing.assert_array_equal(first_largest(scores, prior), [1, 2])


@pytest.mark.parametrize("change", CHANGES)
def test_spectra(change: str) -> None:
    S = R.normal(size=(9, 9))
    S = (S + S.T) / 2
    K, P = definite(S, change)
    L, U = np.linalg.eigh(S)
    expected = {"clip": np.maximum(L, 0), "flip": np.abs(L), "shift": L - min(L.min(), 0)}[change]
    np.testing.assert_allclose(K, U @ np.diag(expected) @ U.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    if P is not None:  # consistent: rows of S become rows of K
        np.testing.assert_allclose(S @ P, K, atol=1e-12)
    stack, _ = definite(np.stack([S, 2 * S]), change)
    np.testing.assert_allclose(stack, [K, 2 * K], atol=1e-11)


@pytest.mark.parametrize("change", CHANGES)
def test_a_definite_matrix_is_left_as_it_is_alone_and_in_a_stack(change: str) -> None:
    A = np.random.default_rng(1).normal(size=(3, 6, 6))
    indefinite = A[0] + A[0].T
    good = [A[1] @ A[1].T + np.eye(6), A[2] @ A[2].T]
    stack, _ = definite(np.stack([good[0], indefinite, good[1]]), change)
    np.testing.assert_allclose(stack[[0, 2]], good, atol=1e-12)
    for one, among in zip((good[0], indefinite, good[1]), stack, strict=True):
        np.testing.assert_allclose(definite(one, change)[0], among, atol=1e-12)


def quadratic_program(K: np.ndarray, s: np.ndarray, ridge: float) -> np.ndarray:
    k = len(s)

    def value(w: np.ndarray) -> float:
        return float(0.5 * w @ K @ w - s @ w + 0.5 * ridge * w @ w)

    bounds, simplex = [(0, 1)] * k, {"type": "eq", "fun": lambda w: w.sum() - 1}
    optimum = minimize(
        value,
        np.full(k, 1 / k),
        jac=lambda w: K @ w - s + ridge * w,
        bounds=bounds,
        constraints=simplex,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.asarray(optimum.x)


@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("k", [1, 2, 7, 20])
def test_interpolation_weights_against_a_generic_solver(k: int, ridge: float) -> None:
    A = R.normal(size=(6, k, k))
    K, s = A @ A.transpose(0, 2, 1), R.normal(size=(6, k))
    w = interpolation_weights(K, s, ridge)
    assert (w >= 0).all()
    np.testing.assert_allclose(w.sum(axis=1), 1.0)
    for row in range(6):
        np.testing.assert_allclose(w[row], quadratic_program(K[row], s[row], ridge), atol=2e-5)
        gradient = K[row] @ w[row] + ridge * w[row] - s[row]
        inside = w[row] > 1e-9
        assert gradient[inside].max() - gradient.min() < 1e-8 * max(np.abs(K).max(), 1)


@pytest.mark.parametrize("symmetric", [True, False])
def test_regression_weights(symmetric: bool) -> None:
    K, s, ridges = R.normal(size=(5, 8, 8)), R.normal(size=(5, 8)), np.array([0.0, 0.1, 3.0])
    K = (K + K.transpose(0, 2, 1)) / 2 if symmetric else K
    K[0, 3] = K[0, 2]
    K[0, :, 3] = K[0, :, 2]
    weights = regression_weights(K, s, ridges)
    for r, ridge in enumerate(ridges):
        for row in range(5):
            expected = np.linalg.pinv(K[row] + ridge * np.eye(8), rcond=8 * 2.3e-16) @ s[row]
            np.testing.assert_allclose(weights[r, row], expected, atol=1e-8)


def test_affinities() -> None:
    np.testing.assert_allclose(affinities(np.array([[1.0, 3.0], [0.0, 0.0]]), 0.0), [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(affinities(np.array([[-1.0, 1.0]]), -2.0), [[0.25, 0.75]])


@pytest.mark.parametrize("classes", [2, 4])
def test_small_machines_are_libsvms(classes: int) -> None:
    Cs = np.array([1e-2, 1.0, 100.0])
    X = R.normal(size=(40, 25, 3))
    y = R.integers(0, classes, (40, 25))
    X[..., 0] += y
    new = R.normal(size=(40, 3)) + 1.0
    K, across = X @ X.transpose(0, 2, 1), np.einsum("nij,nj->ni", X, new)
    predicted = classes_by_machines(K, y, across, Cs, classes)
    differ = 0
    for row in range(40):
        for t, C in enumerate(Cs):
            machine = SVC(C=C, kernel="precomputed").fit(K[row], y[row])
            differ += machine.predict(across[row][None])[0] != predicted[t, row]
    assert differ <= 1  # of 120: within the tolerance of both


def test_one_class_needs_no_machine() -> None:
    K = np.eye(3)[None]
    assert classes_by_machines(K, np.array([[2, 2, 2]]), np.zeros((1, 3)), np.array([1.0]), 4)[0, 0] == 2


@pytest.mark.parametrize("C", [0.05, 1e3])
def test_the_box_lasso_meets_its_conditions(C: float) -> None:
    X, _, _ = standardized(R.normal(size=(30, 30)) @ R.normal(size=(30, 30)))
    y = np.sign(R.normal(size=30))
    gram, response, a = X.T @ X, X.T @ (y - y.mean()), np.zeros(30)
    price = 30 * 0.2
    box_lasso(gram, response, price, C, a)
    slope = response - gram @ a
    free = (np.abs(a) > 0) & (np.abs(a) < C)
    np.testing.assert_allclose(slope[free], price * np.sign(a[free]), atol=1e-3 * price)
    assert (np.abs(slope[a == 0]) <= price * 1.001).all()
    assert (slope[np.abs(a) == C] * np.sign(a[np.abs(a) == C]) >= price * 0.999).all()


def test_constant_columns_become_zero() -> None:
    X, _, scale = standardized(np.array([[1.0, 5.0], [1.0, 7.0]]))
    np.testing.assert_allclose(X, [[0, -1], [0, 1]])
    assert np.isinf(scale[0])


def polya_likelihood(alpha: np.ndarray, histograms: np.ndarray) -> float:
    A, n = alpha.sum(), histograms.sum(axis=1)
    parts = gammaln(histograms + alpha) - gammaln(alpha)
    return float((gammaln(A) - gammaln(n + A) + parts.sum(axis=1)).sum())


def test_the_dirichlet_prior_has_the_largest_likelihood() -> None:
    truth = np.array([2.0, 0.5, 4.0])
    histograms = np.array([R.multinomial(25, R.dirichlet(truth)) for _ in range(300)])
    alpha = dirichlet_prior(histograms)
    best = minimize(lambda t: -polya_likelihood(np.exp(t), histograms), np.zeros(3), method="Nelder-Mead",
                    options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})  # fmt: skip
    np.testing.assert_allclose(alpha, np.exp(best.x), rtol=1e-4)
    with_empty = np.concatenate([histograms, np.zeros((50, 3), dtype=int)])
    np.testing.assert_allclose(dirichlet_prior(with_empty), alpha)
    never = np.column_stack([histograms, np.zeros(300, dtype=int)])
    assert dirichlet_prior(never)[3] == pytest.approx(1e-6)
    assert dirichlet_prior(np.full((20, 3), 7)).sum() > 500  # more alike than multinomial
    np.testing.assert_allclose(dirichlet_prior(np.zeros((4, 5), dtype=int)), 0.2)


def negative_entropy(p: np.ndarray) -> float:
    return float((p * np.log(np.maximum(p, 1e-300))).sum())


def test_exponential_pmfs_have_the_largest_entropy() -> None:
    omega = np.array([-1.0, 0.0, 0.5, 2.0, 7.0])
    for mean in (-0.9, 0.3, 1.7, 6.9):
        theta = exponential_pmfs(np.array([mean]), omega)[0]
        assert theta @ omega == pytest.approx(mean, abs=1e-9)
        rules = [{"type": "eq", "fun": lambda p: p.sum() - 1}, {"type": "eq", "fun": lambda p, m=mean: p @ omega - m}]
        best = minimize(negative_entropy, np.full(5, 0.2), bounds=[(0, 1)] * 5, constraints=rules, method="SLSQP",
                        options={"ftol": 1e-14, "maxiter": 1000})  # fmt: skip
        np.testing.assert_allclose(theta, best.x, atol=2e-4)
        logs = np.log(theta)
        slopes = np.diff(logs) / np.diff(omega)
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)  # log-linear in omega
    np.testing.assert_array_equal(exponential_pmfs(np.array([-1.0, 7.0]), omega), np.eye(5)[[0, 4]])
    assert np.isnan(exponential_pmfs(np.array([np.nan]), omega)).all()


def test_lambdas_from_end_to_end() -> None:
    x = np.linspace(0, 1, 20)
    target = np.concatenate([[1e-7, 1 - 1e-7], np.linspace(1e-3, 1 - 1e-3, 200)])
    lambdas = solve_lambdas(target, x)
    theta = np.exp(lambdas[:, None] * x - (lambdas[:, None] * x).max(axis=1, keepdims=True))
    theta /= theta.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(theta @ x, target, atol=1e-10)
    assert (np.diff(lambdas[2:]) > 0).all()


@pytest.mark.parametrize("asymmetric", [True, False])
def test_neighbourhoods_by_hand(asymmetric: bool) -> None:
    n, k, G = 25, 9, 3
    S = np.round(R.uniform(0, 1, (n, n)), 1)
    S = S if asymmetric else (S + S.T) / 2
    np.fill_diagonal(S, 1.0)
    y = R.integers(0, G, n)
    omega = similarity_values(S)
    place = bins_of(S, omega)
    np.testing.assert_allclose(omega[place], S)
    near = most_similar(R.uniform(size=(7, n)), k)
    centroids = centroids_of(S, y, near, G)
    to_centroids, pairs = (
        histograms_to_centroids(place, y, near, centroids, len(omega)),
        histograms_of_pairs(place, y, near, G, len(omega)),
    )
    for row in range(7):
        of = {g: sorted(z for z in near[row] if y[z] == g) for g in range(G)}
        for h in range(G):
            if not of[h]:
                assert centroids[row, h] == -1
                continue
            sums = [sum(S[a, v] for a in of[h] if a != v) if len(of[h]) > 1 else S[v, v] for v in of[h]]
            mu = of[h][int(np.argmax(np.round(sums, 12)))]
            assert centroids[row, h] == mu
            for g in range(G):
                values = [S[z, mu] for z in of[g] if z != mu or len(of[h]) == 1]
                expected = np.bincount(bins_of(np.array(values), omega), minlength=len(omega)) if values else 0
                np.testing.assert_array_equal(to_centroids[row, g, h], expected)
                values = [S[z, other] for z in of[g] for other in of[h] if z != other or len(of[g]) == 1]
                expected = np.bincount(bins_of(np.array(values), omega), minlength=len(omega)) if values else 0
                np.testing.assert_array_equal(pairs[row, g, h], expected)


def test_values_of_similarities() -> None:
    S = R.uniform(size=(30, 30))
    omega = similarity_values(S)
    assert len(omega) == 20
    assert len(similarity_values(S, bins=7)) == 7
    assert bins_of(np.array([-5.0, 5.0]), omega).tolist() == [0, 19]
    assert similarity_values(np.ones((3, 3))).tolist() == [1.0]
    assert similarity_values(np.ones((3, 3)), bins=4).tolist() == [1.0]


def test_sums_that_differ_by_roundings_alone_are_ties() -> None:
    """Similarities of ten values, as of aural sonar: the local centroid is that of exact sums, whatever S's unit."""
    r = np.random.default_rng(0)
    tenths = r.integers(1, 11, (60, 60))
    tenths = (tenths + tenths.T) // 2
    y = r.integers(0, 2, 60)
    near = np.argsort(-tenths + r.random((60, 60)), axis=1)[:, :30].copy()
    exact = np.full((60, 2), -1)
    for row, h in np.ndindex(60, 2):
        of_class = sorted(v for v in near[row] if y[v] == h)
        totals = [sum(tenths[a, v] for a in of_class if a != v) for v in of_class]
        if of_class:
            exact[row, h] = of_class[int(np.argmax(totals))]
    for unit in (0.1, 1.0, 1e-17, 0.3):
        for order in (slice(None), slice(None, None, -1)):
            centroids = centroids_of(tenths * unit, y, np.ascontiguousarray(near[:, order]), 2)
            np.testing.assert_array_equal(centroids, exact)


def test_the_unit_of_scores_has_no_say_in_what_is_a_tie() -> None:
    scores, prior = np.array([[0.1 + 0.2, 0.3, 0.29], [1.0, 2.0, 3.0]]), np.array([0.3, 0.4, 0.3])
    for unit in (1.0, 1e-15, 1e9):
        np.testing.assert_array_equal(first_largest(scores * unit, prior), [1, 2])
