"""Signatures in HDF5: `values (N, d)`, `weights (N)`, `offsets (n + 1)`, and where they are there `y`, `rows`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.store.hdf5_tables import opened, read_dataset, read_names_beside
from parallel_mix.store.tables import HDF5_ENDINGS, Array, Selection, Table, as_numbers, check_finite

OFF_BY = 1e-6


def read_signatures(path: Path, selection: Selection) -> Table:
    """Points, weights and where each signature begins; refused in words where they do not fit."""
    if path.suffix.lower() not in HDF5_ENDINGS:
        raise InputError(f"{path} holds no signatures: give HDF5 with values (N, d), weights (N) and offsets (n + 1).")
    with opened(path) as file:
        values = as_numbers(read_dataset(file, "values", path), "Dataset 'values'", path)
        weights = as_numbers(read_dataset(file, "weights", path), "Dataset 'weights'", path).ravel()
        offsets = as_numbers(read_dataset(file, "offsets", path), "Dataset 'offsets'", path).ravel()
        names = read_names_beside(file, file["values"].parent, selection, path)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or weights.shape != (len(values),):
        raise InputError(
            f"{path} has values of shape {values.shape} and weights of shape {weights.shape}: one a point."
        )
    check_finite(values, path)
    lengths = np.diff(offsets)
    whole = (
        len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(values) and (offsets == offsets.astype(int)).all()
    )
    if not whole or not (lengths > 0).all():
        raise InputError(
            f"The offsets of {path} must rise from 0 to the number of points, {len(values)}, by one or more for each "
            "signature."
        )
    starts = offsets.astype(np.int64)
    return Table(values, path, w=unit_weights(weights, starts, path), offsets=starts, **names)


def unit_weights(weights: Array, offsets: np.ndarray, path: Path) -> Array:
    """Weights that add to 1 in each signature to the last digit."""
    if not (weights > 0).all():
        k = int(np.searchsorted(offsets, np.flatnonzero(~(weights > 0))[0], side="right"))
        raise InputError(f"Signature {k} of {path} has a weight that is not above 0: leave such points out.")
    sums = np.add.reduceat(weights, offsets[:-1])
    off = np.abs(sums - 1.0)
    if (off > OFF_BY).any():
        k = int(off.argmax())
        raise InputError(
            f"The weights of signature {k + 1} of {path} add to {sums[k]:.9g}, off by {sums[k] - 1.0:+.3g}: "
            "make those of each signature add to 1."
        )
    return np.asarray(weights / np.repeat(sums, np.diff(offsets)))
