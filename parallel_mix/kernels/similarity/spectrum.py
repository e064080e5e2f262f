"""Similarities made positive semidefinite (S = U L U'): clip takes max(L, 0), flip |L|, shift L - min(L, 0).

A row s of similarities of a new point is made consistent by the same linear map, s P: for clip P = U diag(L > 0) U',
for flip U diag(sign L) U'; shift changes self-similarities alone, and leaves it.
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array

ROUNDING = 1e-14
"""An eigenvalue above minus this share of the largest entry, for each row, is not negative."""
CHANGES = ("clip", "flip", "shift")


def symmetric_part(S: Array) -> Array:
    """The symmetric part (S + S') / 2 of a matrix, or of each of a stack."""
    return (S + np.swapaxes(S, -1, -2)) / 2.0


def is_definite(S: Array) -> bool:
    """Whether no eigenvalue is below 0 by more than rounding; ten times as fast as computing the eigenvalues."""
    largest = float(np.abs(S).max())
    try:
        np.linalg.cholesky(S + ROUNDING * len(S) * largest * np.eye(len(S)))
    except np.linalg.LinAlgError:
        return False
    return largest > 0


def clipped(S: Array) -> Array:
    """A matrix (or each of a stack) with its negative eigenvalues set to 0."""
    return definite(S, "clip")[0]


def definite(S: Array, change: str) -> tuple[Array, Array | None]:
    """The matrix (or each of a stack) made definite, and the map of new rows; None where they stay."""
    S = symmetric_part(S)
    if S.ndim == 2 and is_definite(S):
        return S, None
    if change == "shift":
        lowest = np.minimum(np.linalg.eigvalsh(S)[..., :1], 0.0)
        return S - lowest[..., None] * np.eye(S.shape[-1]), None
    L, U = np.linalg.eigh(S)
    signs = (L > 0).astype(np.float64) if change == "clip" else np.sign(L)
    P = (U * signs[..., None, :]) @ np.swapaxes(U, -1, -2)
    K = (U * (L * signs)[..., None, :]) @ np.swapaxes(U, -1, -2)
    return symmetric_part(K), P
