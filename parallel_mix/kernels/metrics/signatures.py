"""Signatures: sets of weighted points (`transport` has the distances between them)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array

METRICS = ("mallows", "irm")
OFF_BY = 1e-6
"""How far from 1 the weights of a signature may add up; they are then divided by their sum."""


@dataclass(frozen=True)
class Signatures:
    """Signatures: number k has the points offsets[k] .. offsets[k + 1], whose weights add to 1."""

    values: Array
    weights: Array
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1


def checked_signatures(values: Any, weights: Any, offsets: Any, what: str) -> Signatures:
    """The signatures, with weights that add to 1 to the last digit; where the arrays do not fit together, a refusal.

    `what` names them in a refusal.
    """
    values, weights = np.asarray(values, dtype=np.float64, order="C"), np.asarray(weights, dtype=np.float64)
    starts = np.asarray(offsets)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or weights.shape != (len(values),):
        raise InputError(
            f"{what} has values of shape {values.shape} and weights of shape {weights.shape}: one a point."
        )
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(f"{what} has values that are NaN or infinite, the first in point {row + 1}.")
    whole = starts.ndim == 1 and len(starts) > 1 and starts[0] == 0 and starts[-1] == len(values)
    if not whole or (starts != starts.astype(np.int64)).any() or not (np.diff(starts) > 0).all():
        raise InputError(
            f"The offsets of {what} must rise from 0 to the number of points, {len(values)}, by one or more for each "
            "signature."
        )
    starts = starts.astype(np.int64)
    return Signatures(values, unit_weights(weights, starts, what), starts)


def unit_weights(weights: Array, offsets: np.ndarray, what: str) -> Array:
    """The weights over their sums, which add to 1 in each signature to the last digit."""
    if not (weights > 0).all():
        k = int(np.searchsorted(offsets, np.flatnonzero(~(weights > 0))[0], side="right"))
        raise InputError(f"Signature {k} of {what} has a weight that is not above 0: leave such points out.")
    sums = np.add.reduceat(weights, offsets[:-1])
    off = np.abs(sums - 1.0)
    if not (off <= OFF_BY).all():
        k = int(off.argmax())
        raise InputError(
            f"The weights of signature {k + 1} of {what} add to {sums[k]:.9g}, off by {sums[k] - 1.0:+.3g}: "
            "make those of each signature add to 1."
        )
    return np.asarray(weights / np.repeat(sums, np.diff(offsets)))


@dataclass(frozen=True)
class SignatureMetric:
    """The Mallows or IRM distance of signatures."""

    name: str
    symmetric = True
    block = 1
    frees_lock = True

    def prepare(self, signatures: Signatures) -> Signatures:
        """The signatures themselves: they are compared as they are."""
        return signatures

    def tile(self, new: Signatures, rows: slice, old: Signatures, columns: slice, own: bool) -> Array:
        """Distances between some of the new and some of the old; `own`: the new are the old."""
        from parallel_mix.kernels.metrics.transport import signature_tile

        offsets, other_offsets = new.offsets[rows.start : rows.stop + 1], old.offsets[columns.start : columns.stop + 1]
        words = new.values, new.weights, offsets, old.values, old.weights, other_offsets
        ahead = rows.start - columns.start if own else -len(new)  # how far a row's number is ahead of a column's
        D: Array = signature_tile(*words, self.name == "irm", ahead, own and rows == columns)
        if (D < 0).any():
            i, j = (int(k) for k in np.argwhere(D < 0)[0])
            raise ArithmeticError(f"no best transport was reached for pair ({rows.start + i}, {columns.start + j})")
        return D
