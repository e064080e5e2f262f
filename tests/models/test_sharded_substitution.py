"""The matrix spread over workers: the same exchanges as in one process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.medoids.vertex_substitution import steps_of, substitute
from parallel_mix.models.clusters import sharded_substitution as sharded
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
        loss = substitute(np.ascontiguousarray(D.T), w, one[None], steps)[0]
        with SerialBackend(workers) as backend:
            backend.share(sharded.ShardsRecipe(D, w, steps))
            found, medoids = sharded.substitute_in_shards(backend, 500, start)
        assert found == loss
        np.testing.assert_array_equal(medoids, one)
