"""The matrix spread over workers: the same exchanges as in one process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.kernels.medoids.vertex_substitution import steps_of, substitute_by_search
from parallel_mix.models.clusters import sharded_substitution as sharded
from parallel_mix.models.clusters.clustering import cluster_distances
from parallel_mix.models.clusters.groups import Group, random_starts
from parallel_mix.models.clusters.substitution import substitute
from parallel_mix.models.core.sources import HeldMatrix
from tests.conftest import blobs


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["plain", "ties", "asymmetric", "single"])
@pytest.mark.parametrize("block", [64, 100, 1024])
def test_exchange_for_exchange(kind: str, workers: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharded, "BLOCK", block)
    X = blobs(500, 3, 5)
    D = cdist(X, X)
    D = {"ties": np.round(D), "single": D.astype(np.float32)}.get(kind, D)
    if kind == "asymmetric":
        D = D * np.random.default_rng(0).uniform(0.8, 1.2, D.shape)
    w = np.random.default_rng(1).integers(1, 4, 500).astype(float)
    steps = steps_of(w, float(D.max()))
    for k in (2, 9):
        start = np.random.default_rng(k).choice(500, k, replace=False)
        one = start.copy()
        loss = substitute_by_search(np.ascontiguousarray(D.T), w, one[None], steps)[0]
        with SerialBackend(workers) as backend:
            backend.share(sharded.ShardsRecipe(D, w, steps))
            spread = start[None].copy()
            losses = substitute(sharded.SpreadRows(backend, 500), spread)
        assert losses[0] == loss
        np.testing.assert_array_equal(spread[0], one)


def test_one_cluster_is_not_sought_in_shards() -> None:
    """Of one medoid there is no second nearest one, by which exchanges are judged."""
    D = np.ones((4, 4)) - np.eye(4)
    with SerialBackend(1) as backend, pytest.raises(InputError, match="two clusters or more"):
        cluster_distances(HeldMatrix(D), "vsh", [1], backend=backend, largest=1.0)


@pytest.mark.parametrize("n, k", [(60, 5), (60, 33), (1_030, 3)])
def test_whichever_variant_is_used_the_medoids_are_the_same(n: int, k: int) -> None:
    """Few points, too many medoids for the table, and too many points: whole and spread over workers."""
    X = blobs(n, 3, 5)
    D, w = cdist(X, X), np.ones(n)
    starts = random_starts(n, k, [0], 0, 3)
    whole, spread, group = starts.copy(), starts.copy(), Group(D, w)
    losses = substitute(group, whole)
    with SerialBackend(1) as backend:
        backend.share(sharded.ShardsRecipe(HeldMatrix(D), w, group.steps))
        np.testing.assert_array_equal(substitute(sharded.SpreadRows(backend, n), spread), losses)
    np.testing.assert_array_equal(spread, whole)
    assert ("table" in vars(group)) == (n <= 1_024 and k <= 32), "the table is made where it is used"
