"""`pairwise` in memory, and what is found out about a matrix of distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix import pairwise
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.models.distance_checks import examine
from parallel_mix.models.pairwise import cut
from tests.conftest import blobs


class InMemory:
    """A matrix that `examine` can read."""

    def __init__(self, D: np.ndarray) -> None:
        self.D, self.shape = D, D.shape

    def rows(self, start: int, stop: int) -> np.ndarray:
        return self.D[start:stop]

    def among(self, which: np.ndarray) -> np.ndarray:
        return self.D[np.ix_(which, which)]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (100, 100), (33, 33)])
def test_tiles_cover_all_pairs_once(shape: tuple[int, int], symmetric: bool) -> None:
    seen = np.zeros(shape, dtype=int)
    for a, b, c, d in cut(shape, symmetric, 16):
        seen[a:b, c:d] += 1
        if symmetric and a != c:
            seen[c:d, a:b] += 1
    assert (seen == 1).all()


def test_in_memory_on_all_cores_and_on_one() -> None:
    X, Y = blobs(1500, 6), blobs(200, 6, seed=8)
    D = pairwise(X)
    np.testing.assert_allclose(D, cdist(X, X), rtol=1e-10)
    with SerialBackend(1) as one:
        assert np.array_equal(pairwise(X, backend=one), D)
    np.testing.assert_allclose(pairwise(X, Y, metric="cityblock"), cdist(Y, X, "cityblock"), rtol=1e-12)


def test_an_unknown_metric_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="There is no metric 'cosin': use one of euclidean"):
        pairwise(blobs(5), metric="cosin")
    with pytest.raises(InputError, match="3 and 4 columns"):
        pairwise(blobs(5, 3), blobs(5, 4))


def test_what_a_matrix_is_like() -> None:
    X = blobs(200, 3)
    plain = examine(InMemory(cdist(X, X)))
    assert (plain.diagonal, plain.asymmetry, plain.violations, plain.negative) == (0.0, 0.0, 0.0, 0)
    assert plain.negative_eigenfraction is not None
    assert plain.negative_eigenfraction < 1e-6
    squared = examine(InMemory(cdist(X, X, "sqeuclidean")))
    assert squared.violations is not None
    assert squared.violations > 0.05, "squares break the triangle inequality"
    assert squared.negative_eigenfraction is not None
    assert squared.negative_eigenfraction > 0.01
    skew = cdist(X, X)
    skew[3, 4] += 1.0
    skew[5, 5] = -2.0
    found = examine(InMemory(skew))
    assert found.asymmetry is not None
    assert found.asymmetry > 0.0
    assert (found.diagonal, found.negative) == (2.0, 1)
    assert any("not symmetric" in line for line in found.lines())
