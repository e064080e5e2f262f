"""Signatures in HDF5: `values (N, d)`, `weights (N)`, `offsets (n + 1)`, and where they are there `y`, `rows`."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.errors import InputError
from parallel_mix.store.hdf5_tables import opened, read_dataset, read_names_beside
from parallel_mix.store.tables import HDF5_ENDINGS, Selection, Table, as_numbers


def read_signatures(path: Path, selection: Selection) -> Table:
    """Read points, weights and offsets of signatures; whether they fit together is checked when they are compared."""
    if path.suffix.lower() not in HDF5_ENDINGS:
        raise InputError(f"{path} holds no signatures: give HDF5 with values (N, d), weights (N) and offsets (n + 1).")
    group = "" if selection.dataset == Selection.dataset else f"{selection.dataset}/"
    with opened(path) as file:
        values, weights, offsets = (
            as_numbers(read_dataset(file, group + name, path), f"Dataset '{group}{name}'", path)
            for name in ("values", "weights", "offsets")
        )
        names = read_names_beside(file, file[f"{group}values"].parent, selection, path)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2:
        raise InputError(f"{path} has values of shape {values.shape}: a row for each point is needed.")
    return Table(values, path, w=weights.ravel(), offsets=offsets.ravel(), **names)
