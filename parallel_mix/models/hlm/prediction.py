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


class Rows(Protocol):
    """Distances of new rows to old ones, read in parts."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any) -> Array: ...


@dataclass(frozen=True)
class NewRowsRecipe:
    """What a worker needs: the distances, which columns are the components', and the model."""

    matrix: Rows
    columns: np.ndarray
    model: HlmModel

    def load(self) -> NewRowsRecipe:
        return self


def posteriors_of(data: NewRowsRecipe, block: tuple[int, int]) -> tuple[Array]:
    """Posteriors of some rows."""
    return (data.model.posteriors(np.asarray(data.matrix[slice(*block)])[:, data.columns]),)


def predict_hlm(matrix: Rows, columns: np.ndarray, model: HlmModel, backend: Backend, run: Run | None = None) -> Array:
    """p(class | z) for all new rows."""
    run = run or QuietRun()
    n = len(matrix)
    backend.share(NewRowsRecipe(matrix, columns, model))
    posteriors = np.full((n, len(model.prior)), np.nan)
    blocks = MapOfRows(n, ROWS, f"classes of {n:,} rows, block", run.restored(), posteriors=posteriors)
    blocks.work_off(backend, run, posteriors_of)
    return blocks.outputs["posteriors"]
