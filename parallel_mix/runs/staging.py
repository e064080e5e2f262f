"""How workers come to the data of a run: by memory they share, by message, or by a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from parallel_mix.backends.base import Backend
from parallel_mix.models.core.sources import HeldHere, HeldMatrix, HeldRows, MatrixSource, MeanOfBoth, RowSource
from parallel_mix.store.hdf5_tables import StoredRows, write_table
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Table


class Staging:
    """Sources of rows and matrices for the workers; what they cannot come to otherwise is written beside the output."""

    def __init__(self, backend: Backend, output: Path, dry_run: bool = False) -> None:
        self.backend, self.output, self.dry_run = backend, output, dry_run
        self._written: list[Path] = []

    def rows(self, table: Table, name: str = "rows") -> RowSource:
        """The rows of a table: this process reads them once, other processes from an HDF5 file where they see one."""
        if table.stored is not None:
            stored: RowSource = table.stored
            return stored
        held = HeldRows(table.X, table.w)
        in_file = table.dataset is not None
        if self.backend.shares_memory or self.dry_run or not (in_file or self.backend.shares_files):
            return held
        if table.dataset is not None:
            place = table.path, table.dataset, table.weights_dataset, table.X.shape, table.stamp
            return HeldHere(held, StoredRows.of(*place))
        staged = self._stage(table, name)
        return HeldHere(held, StoredRows.of(staged, "X", "w" if table.w is not None else None, table.X.shape))

    def matrix(self, table: Table, symmetrize: bool = False) -> MatrixSource:
        """The square matrix of a table, in memory or in an HDF5 file."""
        matrix = table.matrix
        if not isinstance(matrix, StoredMatrix):
            by_file = self.backend.shares_files and not (self.backend.shares_memory or self.dry_run)
            staged = self._stage(replace(table, X=matrix), "matrix") if by_file else None
            matrix = HeldMatrix(matrix) if staged is None else StoredMatrix.of(staged, "X")
        return MeanOfBoth(matrix) if symmetrize else matrix

    def clear(self) -> None:
        """Remove what was written."""
        for path in self._written:
            path.unlink(missing_ok=True)

    def _stage(self, table: Table, name: str) -> Path:
        staged = self.output.with_name(f".{self.output.name}.{name}.h5")
        self._written.append(staged)
        write_table(staged, Table(table.X, table.path, w=table.w))
        return staged
