"""Clusterings of groups of rows: what is said of them is said of rows, and starts are those of one series."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.clusters.clustering import cluster_distances
from parallel_mix.models.clusters.groups import CLUSTERINGS, Group, best_of_starts, random_starts
from parallel_mix.models.core.sources import HeldMatrix
from tests.conftest import blobs

X = blobs(60, 3)
D = cdist(X, X)
GROUP = np.random.default_rng(0).integers(0, 3, 60)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", CLUSTERINGS)
def test_medoids_are_rows_of_their_groups(method: str, weighted: bool) -> None:
    w = np.random.default_rng(1).uniform(0.5, 2.0, 60) if weighted else None
    groups = [np.flatnonzero(group == GROUP) for group in range(3)]
    with SerialBackend(1) as backend:
        clustering = cluster_distances(HeldMatrix(D), method, [4], groups=groups, w=w, restarts=3, backend=backend)[4]
    assert len(clustering.medoids) == len(set(clustering.medoids)) == 12
    np.testing.assert_array_equal(GROUP[clustering.medoids], clustering.groups)
    np.testing.assert_array_equal(clustering.labels[clustering.medoids], np.arange(12))
    np.testing.assert_array_equal(clustering.groups[clustering.labels], GROUP)
    np.testing.assert_array_equal(clustering.sizes, np.bincount(clustering.labels))
    weights = np.ones(60) if w is None else w
    assert clustering.loss == pytest.approx(weights @ D[np.arange(60), clustering.medoids[clustering.labels]])
    for cluster, medoid in enumerate(clustering.medoids):
        members = np.flatnonzero(clustering.labels == cluster)
        totals = weights[members] @ D[np.ix_(members, members)]
        assert totals.min() == pytest.approx(totals[list(members).index(medoid)])


@pytest.mark.parametrize("cuts", [(0, 12), (0, 1, 12), (0, 5, 6, 12), tuple(range(13))])
@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_the_starts_of_a_series_are_the_same_however_it_is_cut(k: int, cuts: tuple[int, ...]) -> None:
    """Each task draws its own part of the series."""
    series = random_starts(30, k, [7, 0, k], 0, 12)
    parts = [random_starts(30, k, [7, 0, k], first, last - first) for first, last in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), series)
    if k in (2, 5):
        assert len({tuple(start) for start in series}) > 10, "starts are of other points, most of them"


def test_two_points_have_the_lower_one_as_their_medoid() -> None:
    """Pairs far from each other: within a pair both points are equally good, in generalized k-means and Ward alike."""
    places = np.array([100.0, 0.0, 200.0, 101.0, 201.0, 1.0])
    group = Group(np.abs(places[:, None] - places), np.ones(6))
    for method in ("gkmeans", "ward"):
        assert list(best_of_starts(group, method, 3)[2]) == [0, 1, 2]
