"""Vertex substitution, generalized k-means and Ward against slow, obvious ones and brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import adjusted_rand_score

from parallel_mix.kernels.medoids.generalized_kmeans import alternate, k_center, medoids_of, totals_within
from parallel_mix.kernels.medoids.table_substitution import substitute_by_table, table_of
from parallel_mix.kernels.medoids.vertex_substitution import (
    assign,
    in_steps,
    only_medoid,
    steps_of,
    substitute_by_search,
)
from parallel_mix.kernels.medoids.ward_distances import cut_tree, join_all
from tests.conftest import blobs


def distances(n: int, seed: int, kind: str) -> np.ndarray:
    X = blobs(n, 3, seed=seed)
    D = cdist(X, X)
    if kind == "ties":
        return np.round(D)
    if kind == "asymmetric":
        return D * np.random.default_rng(seed).uniform(0.5, 1.5, D.shape)
    return D


def loss_of(D: np.ndarray, w: np.ndarray, medoids: np.ndarray) -> float:
    return float(w @ D[:, medoids].min(axis=1))


def vsh(D: np.ndarray, w: np.ndarray, medoids: np.ndarray) -> tuple[float, np.ndarray]:
    E, medoids = np.ascontiguousarray(D.T), medoids.astype(np.int64).copy()
    steps = steps_of(w, float(E.max()))
    if len(medoids) == 1:
        return only_medoid(E, w, medoids, steps) / steps, medoids
    few = medoids.copy()
    loss = substitute_by_search(E, w, medoids[None], steps)[0]
    assert substitute_by_table(table_of(E, w, steps), few[None])[0] == loss
    np.testing.assert_array_equal(few, medoids)
    return loss / steps, medoids


def algorithm_1(D: np.ndarray, w: np.ndarray, medoids: np.ndarray) -> np.ndarray:
    """As the dissertation prints it, every exchange added up anew."""
    now = list(medoids)
    while True:
        been, loss, better = set(now), loss_of(D, w, np.array(now)), False
        for candidate in range(len(D)):
            if candidate in been:
                continue
            losses = [loss_of(D, w, np.array([*now[:j], candidate, *now[j + 1 :]])) for j in range(len(now))]
            j = int(np.argmin(np.round(losses, 9)))
            if losses[j] < loss - 1e-9:
                now[j], loss, better = candidate, losses[j], True
                been.add(candidate)
        if not better:
            return np.array(now)


@pytest.mark.parametrize("kind", ["plain", "ties", "asymmetric"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_it_is_algorithm_1(kind: str, weighted: bool, k: int) -> None:
    r = np.random.default_rng(k)
    for seed in range(4):
        D = distances(60, seed, kind)
        w = r.integers(1, 5, 60).astype(float) if weighted else np.ones(60)
        start = r.choice(60, k, replace=False)
        loss, medoids = vsh(D, w, start)
        assert sorted(medoids) == sorted(algorithm_1(D, w, start))
        assert loss == pytest.approx(loss_of(D, w, medoids), rel=1e-12)


@pytest.mark.parametrize("kind", ["plain", "ties", "asymmetric"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_best_of_some_starts_is_the_best_there_is(kind: str, k: int) -> None:
    r = np.random.default_rng(0)
    for seed in range(5):
        D, w = distances(14, seed, kind), r.uniform(0.5, 2.0, 14)
        best = min(loss_of(D, w, np.array(chosen)) for chosen in combinations(range(14), k))
        loss = min(vsh(D, w, r.choice(14, k, replace=False))[0] for _ in range(20))
        assert loss == pytest.approx(best, rel=1e-12)


def test_weights_of_two_are_rows_given_twice() -> None:
    D, start = distances(50, 3, "plain"), np.array([4, 17, 30])
    twice = np.repeat(np.arange(50), 2)
    weighted = vsh(D, np.full(50, 2.0), start)
    doubled = vsh(D[np.ix_(twice, twice)], np.ones(100), 2 * start)
    assert weighted[0] == pytest.approx(doubled[0], rel=1e-12)
    assert sorted(weighted[1]) == sorted(doubled[1] // 2)
    pairs, heights = join_all(D, np.full(50, 2.0))
    doubled_pairs, doubled_heights = join_all(D[np.ix_(twice, twice)], np.ones(100))
    np.testing.assert_allclose(np.sort(heights), np.sort(doubled_heights)[50:], rtol=1e-9)
    labels = cut_tree(pairs, heights, 5), cut_tree(doubled_pairs, doubled_heights, 5)[::2]
    assert adjusted_rand_score(*labels) == 1.0


def test_order_and_kind_of_number_change_nothing() -> None:
    """Sums are exact: what one process adds up another may add up in another order."""
    D, w = distances(80, 5, "plain"), np.ones(80)
    start = np.array([1, 20, 40, 60])
    assert vsh(D, w, start)[0] == vsh(D, w, start[::-1])[0]
    single = D.astype(np.float32)
    assert vsh(single, w, start)[0] == vsh(single.astype(float), w, start)[0]


@pytest.mark.parametrize("n, k", [(2, 2), (31, 2), (32, 32), (33, 5), (300, 17), (300, 120)])
@pytest.mark.parametrize("kind", ["plain", "ties", "asymmetric"])
def test_few_points_are_exchanged_as_many_are(n: int, k: int, kind: str) -> None:
    """Start for start and medoid for medoid; some weights are zero, some points lie on each other, starts meet."""
    r = np.random.default_rng(n)
    D = distances(n, k, kind)
    D[n // 2] = D[0]
    D[:, n // 2] = D[:, 0]
    E, w = np.ascontiguousarray(D.T), r.integers(0, 4, n) * r.random(n)
    starts = np.stack([r.choice(n, k, replace=False) for _ in range(40 if n < 50 else 5)])
    few, steps = starts.copy(), steps_of(w, float(E.max()))
    losses = substitute_by_search(E, w, starts, steps)
    np.testing.assert_array_equal(substitute_by_table(table_of(E, w, steps), few), losses)
    np.testing.assert_array_equal(few, starts)


@pytest.mark.parametrize("scale", [1e-300, 1e-140, 1e-30, 1.0, 1e30, 1e140, 1e300])
def test_steps_are_of_the_distances_size(scale: float) -> None:
    """All sums fit 62 bits, and where numbers go so far 59 at the least are used."""
    D, w = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]) * scale, np.array([1.0, 2.0, 1e3])
    steps = steps_of(w, float(D.max()))
    assert 0 < steps < np.inf
    total = sum(in_steps(D.max(), one, steps) for one in w)
    assert (2**59 if scale > 1e-290 else 0) < total < 2**62


def test_a_medoid_is_its_own_whatever_lies_on_it() -> None:
    D = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 5.0], [5.0, 5.0, 0.0]])
    medoids, first, second = np.array([0, 1]), np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    assign(np.ascontiguousarray(D[:, medoids]), medoids, first, second)
    assert list(first) == [0, 1, 0]


@pytest.mark.parametrize("kind", ["plain", "ties", "asymmetric"])
def test_generalized_kmeans(kind: str) -> None:
    for seed in range(4):
        D, w = distances(70, seed, kind), np.random.default_rng(seed).integers(1, 4, 70).astype(float)
        E = np.ascontiguousarray(D.T)
        steps = steps_of(w, float(E.max()))
        medoids = k_center(E, w, 5, steps)
        expected = [int(np.argmin(np.round(w @ D, 9)))]
        while len(expected) < 5:
            near = np.round(D[:, expected].min(axis=1), 9)
            near[expected] = -1.0
            expected.append(int(near.argmax()))
        assert list(medoids) == expected
        loss = alternate(E, w, medoids, steps) / steps
        assert loss == pytest.approx(loss_of(D, w, medoids), rel=1e-12)
        label = D[:, medoids].argmin(axis=1)
        for j in range(5):
            members = np.flatnonzero(label == j)
            totals = w[members] @ D[np.ix_(members, members)]
            assert totals.min() == pytest.approx(totals[list(members).index(medoids[j])], rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 50, 200])
def test_ward_is_scipys(n: int) -> None:
    D = distances(n, n, "plain")
    pairs, heights = join_all(D, np.ones(n))
    tree = linkage(squareform(D, checks=False), "ward")
    np.testing.assert_allclose(np.sort(np.sqrt(heights)), tree[:, 2], rtol=1e-9)
    for k in {1, 2, min(7, n), n}:
        label = cut_tree(pairs, heights, k)
        assert len(np.unique(label)) == k
        assert adjusted_rand_score(label, fcluster(tree, k, "maxclust")) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_of_equally_central_points_the_lowest_is_the_medoid(seed: int) -> None:
    """Distances of 1 and 2 alone tie often; with whole weights their sums are exact, here and in the test."""
    r = np.random.default_rng(seed)
    D = np.triu(r.integers(1, 3, (40, 40)), 1).astype(float)
    D, w = D + D.T, r.integers(1, 3, 40).astype(float)
    label, ties = r.integers(0, 6, 40), 0
    steps = steps_of(w, float(D.max()))
    medoids = medoids_of(totals_within(D, w, label, steps), label, 6)
    for cluster in range(6):
        members = np.flatnonzero(label == cluster)
        totals = [sum(w[i] * D[i, j] for i in members) for j in members]
        ties += totals.count(min(totals)) > 1
        assert medoids[cluster] == members[totals.index(min(totals))]
    assert ties, "otherwise this would say nothing"
