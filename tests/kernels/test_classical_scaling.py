"""Classical scaling gives points back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.kernels.metrics.classical_scaling import centred_products, scaled_coordinates
from tests.conftest import blobs


@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
def test_points_of_a_plane_come_back(scale: float) -> None:
    X = blobs(80, 2) * scale
    D = cdist(X, X)
    Z, shares = scaled_coordinates(D)
    np.testing.assert_allclose(cdist(Z, Z), D, atol=1e-9 * D.max())
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] >= shares[1]


def test_products_are_those_of_centred_points() -> None:
    X = blobs(40, 5)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(centred_products(cdist(X, X)), centred @ centred.T, atol=1e-9)


def test_equal_points_lie_at_one_place() -> None:
    Z, shares = scaled_coordinates(np.zeros((5, 5)))
    assert not Z.any()
    assert not shares.any()
