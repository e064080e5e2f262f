"""Signatures: sets of weighted points (`transport` has the distances between them)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parallel_mix.kernels.density import Array

METRICS = ("mallows", "irm")


@dataclass(frozen=True)
class Signatures:
    """Signature k has the points offsets[k] .. offsets[k + 1], whose weights add to 1."""

    values: Array
    weights: Array
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class SignatureMetric:
    """Mallows or IRM."""

    name: str
    symmetric = True
    block = 1
    frees_lock = True

    def prepare(self, signatures: Signatures) -> Signatures:
        """Nothing is to be done to them."""
        return signatures

    def tile(self, new: Signatures, rows: slice, old: Signatures, columns: slice, own: bool) -> Array:
        """Distances between some of the new and some of the old; `own`: the new are the old."""
        from parallel_mix.kernels.transport import signature_tile

        spans, others = new.offsets[rows.start : rows.stop + 1], old.offsets[columns.start : columns.stop + 1]
        words = new.values, new.weights, spans, old.values, old.weights, others
        D: Array = signature_tile(*words, self.name == "irm", own and rows == columns)
        if (D < 0).any():
            i, j = (int(k) for k in np.argwhere(D < 0)[0])
            raise ArithmeticError(f"no best transport was found for pair ({rows.start + i}, {columns.start + j})")
        return D
