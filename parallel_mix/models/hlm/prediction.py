"""Classes of new points from their distances to the components of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.models.core.run import QuietRun, Run
from parallel_mix.models.core.tasks import MapOfRows
from parallel_mix.models.hlm.model import HlmModel

ROWS = 512
"""Rows of a block."""


class Rows(Protocol):
    """Distances of new rows to old ones, of which some rows are read at a time."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Array: ...


@dataclass(frozen=True)
class NewRowsRecipe:
    """What a worker reads from: the distances, which columns of them are the components', and the model."""

    matrix: Rows
    columns: np.ndarray
    model: HlmModel

    def load(self) -> NewRowsRecipe:
        """The recipe itself: rows are read as they are asked for."""
        return self


def posteriors_of(data: NewRowsRecipe, block: tuple[int, int]) -> tuple[Array]:
    """The posteriors p(class | z) of a block of rows (from, to), in a tuple of one."""
    return (data.model.posteriors(np.asarray(data.matrix[slice(*block)])[:, data.columns]),)


def predict_hlm(matrix: Rows, columns: np.ndarray, model: HlmModel, backend: Backend, run: Run | None = None) -> Array:
    """The posteriors p(class | z) of all new rows, (rows, classes)."""
    run = run or QuietRun()
    n = len(matrix)
    backend.share(NewRowsRecipe(matrix, columns, model))
    posteriors = np.full((n, len(model.prior)), np.nan)
    blocks = MapOfRows(n, ROWS, f"classes of {n:,} rows, block", run.restored(), posteriors=posteriors)
    blocks.work_off(backend, run, posteriors_of)
    return blocks.outputs["posteriors"]
