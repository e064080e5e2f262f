"""Mallows against POT and SciPy's linear programming, IRM against a hand-written one, VDM against its definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from parallel_mix.kernels.metrics.category_distances import ClassProbabilities
from parallel_mix.kernels.metrics.signatures import SignatureMetric, Signatures
from tests.conftest import signatures


def matrix(name: str, S: Signatures, own: bool = True) -> np.ndarray:
    every = slice(0, len(S))
    return SignatureMetric(name).tile(S, every, S, every, own)


def parts(S: Signatures, k: int) -> tuple[np.ndarray, np.ndarray]:
    span = slice(S.offsets[k], S.offsets[k + 1])
    return S.values[span], S.weights[span]


@pytest.mark.parametrize("lattice", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_mallows_is_the_root_of_emd2(d: int, lattice: bool) -> None:
    ot = pytest.importorskip("ot")
    S = signatures(40, d, d, lattice)
    D = matrix("mallows", S)
    for i in range(len(S)):
        for j in range(i):
            (v, p), (u, q) = parts(S, i), parts(S, j)
            expected = ot.emd2(p, q, cdist(v, u, "sqeuclidean"))
            assert D[i, j] ** 2 == pytest.approx(expected, rel=2e-9, abs=1e-13)


def test_mallows_by_linear_programming() -> None:
    S = signatures(8, 2, 5)
    (v, p), (u, q) = parts(S, 1), parts(S, 6)
    rows = np.kron(np.eye(len(p)), np.ones(len(q)))
    columns = np.kron(np.ones(len(p)), np.eye(len(q)))
    cost = cdist(v, u, "sqeuclidean").ravel()
    optimum = linprog(cost, A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]), method="highs")
    assert matrix("mallows", S)[1, 6] ** 2 == pytest.approx(optimum.fun, rel=1e-9)


@pytest.mark.parametrize("name", ["mallows", "irm"])
@pytest.mark.parametrize("lattice", [False, True])
def test_symmetric_with_a_zero_diagonal(name: str, lattice: bool) -> None:
    S = signatures(30, 3, 7, lattice)
    D = matrix(name, S)
    assert np.array_equal(D, D.T)
    assert not D.diagonal().any()
    upper = np.triu_indices(len(S), 1)
    assert np.array_equal(matrix(name, S, own=False)[upper], D[upper])


def test_a_far_point_leaves_the_near_ones_their_digits() -> None:
    ot = pytest.importorskip("ot")
    r = np.random.default_rng(4)
    for far in (1e4, 1e6):
        v, u = r.normal(size=(9, 2)), r.normal(size=(9, 2))
        v[0] = u[0] = [far, far]
        p = np.full(9, 1 / 9)
        S = Signatures(np.concatenate([v, u]), np.concatenate([p, p]), np.array([0, 9, 18]))
        expected = np.sqrt(ot.emd2(p, p, cdist(v, u, "sqeuclidean")))
        assert matrix("mallows", S)[0, 1] == pytest.approx(expected, rel=1e-9)


def test_on_a_line_sums_of_weights_are_equal_but_for_rounding() -> None:
    S = Signatures(
        np.array([0.0, 1.0, 0.0, 0.0, 1.0])[:, None], np.array([0.3, 0.7, 0.1, 0.2, 0.7]), np.array([0, 2, 5])
    )
    assert matrix("mallows", S)[0, 1] == 0.0


@pytest.mark.parametrize("lattice", [False, True])
def test_mallows_is_a_metric_and_of_no_order(lattice: bool) -> None:
    S = signatures(30, 3, 8, lattice)
    D = matrix("mallows", S)
    i, j, k = np.random.default_rng(0).integers(0, len(S), (3, 2000))
    assert (D[i, k] <= D[i, j] + D[j, k] + 1e-9).all()
    assert matrix("mallows", S, own=False).diagonal().max() < 1e-7
    np.testing.assert_allclose(matrix("mallows", S, own=False), D, atol=1e-7)
    order = np.random.default_rng(1).permutation(len(S))
    moved = [parts(S, k) for k in order]
    offsets = np.concatenate([[0], np.cumsum([len(p) for _, p in moved])])
    T = Signatures(np.concatenate([v for v, _ in moved]), np.concatenate([p for _, p in moved]), offsets)
    np.testing.assert_allclose(matrix("mallows", T), D[np.ix_(order, order)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 8])
def test_irm_by_hand(d: int) -> None:
    S = signatures(20, d, 9)
    D = matrix("irm", S)
    for i, j in ((0, 1), (3, 17), (5, 11), (12, 19)):
        (v, p), (u, q) = parts(S, i), parts(S, j)
        gaps = cdist(v, u)
        have, want, total = p.copy(), q.copy(), 0.0
        for a, b in sorted(np.ndindex(*gaps.shape), key=lambda ab: (gaps[ab], ab)):
            moved = min(have[a], want[b])
            total, have[a], want[b] = total + moved * gaps[a, b], have[a] - moved, want[b] - moved
        assert D[i, j] == pytest.approx(total, rel=1e-12)


def by_definition(X: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for k in range(X.shape[1]):
        for c in np.unique(y):
            p, q = (np.mean(y[X[:, k] == row[k]] == c) for row in (a, b))
            total += (p - q) ** 2
    return float(total)


def test_vdm_is_what_it_is_said_to_be() -> None:
    r = np.random.default_rng(3)
    X, y = r.integers(-1, 3, (60, 5)).astype(float), r.integers(0, 3, 60)
    P = ClassProbabilities(X, y).rows(X)
    for i, j in ((0, 1), (2, 50), (7, 7)):
        assert cdist(P[[i]], P[[j]], "sqeuclidean")[0, 0] == pytest.approx(by_definition(X, y, X[i], X[j]), abs=1e-12)
    unseen = ClassProbabilities(X, y).rows(np.full((1, 5), 9.0))
    np.testing.assert_allclose(unseen.reshape(5, 3)[0], np.bincount(y) / 60)


def test_voting_is_rebuilt_from_the_votes(shared_data: Callable[[str], dict[str, np.ndarray]]) -> None:
    """The papers' similarities are 1 - d / max d, to 0.011 in all but five rows."""
    votes, similar = shared_data("housevotes84"), shared_data("voting")
    X = votes["X"].astype(float)
    P = ClassProbabilities(X, votes["y"]).rows(X)
    d = cdist(P, P, "sqeuclidean")
    others = np.setdiff1d(np.arange(435), [113, 393, 408, 409, 433])
    gap = np.abs(1.0 - d / d.max() - similar["S"])[np.ix_(others, others)]
    assert gap.max() < 0.0115
