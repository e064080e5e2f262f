"""Reading the input of a run: a table or a matrix, checked, and said in a line what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.threads import available_cores
from parallel_mix.backends.usage import Usage
from parallel_mix.errors import InputError, TaskError, UnknownNameError
from parallel_mix.models.core.sources import Block, Measures, RowSource, blocks_of
from parallel_mix.progress import Progress, plural
from parallel_mix.store.columns import used
from parallel_mix.store.stored_matrix import StoredMatrix, Survey, joined_surveys, stripes_of, survey, survey_stripe
from parallel_mix.store.tables import Selection, Table, digest, only_chosen, read_table

BLOCKS_A_TASK = 16
"""Blocks of rows that a worker measures for one task."""
KEPT_AS = {"labels": "y", "row_names": "rows", "weights": "w"}


class InputReader:
    """Reads tables and matrices for a run, and remembers what may not change while it lasts.

    `workers_read`: the workers open a large matrix for themselves, so they look at all its entries together.
    """

    def __init__(
        self, backend: Backend, progress: Progress, selection: Selection, *, workers_read: bool = True
    ) -> None:
        self.backend, self.progress, self.selection = backend, progress, selection
        self.workers_read = workers_read
        self.digest = ""
        """Of the table that was read last."""
        self.usage: list[Usage] = []
        """What the workers did to look at the input."""
        self._stored: list[StoredMatrix] = []

    def read(
        self,
        path: Path,
        least_rows: int = 2,
        selection: Selection | None = None,
        *,
        leave_from: int | None = None,
    ) -> Table:
        """A table, checked; what it is and which columns are used is said.

        From `leave_from` rows on those in HDF5 stay in their file.
        """
        table = read_table(path, selection or self.selection, least_rows, self.look, leave_from=leave_from)
        self.digest = digest(table)
        self._stored += [table.matrix] if isinstance(table.matrix, StoredMatrix) else []
        d = (table.X if table.matrix is None else table.matrix).shape[1]
        size = plural(table.count, self.selection.things) + (f", {plural(d, 'column')}" if d else "")
        backend = self.backend
        self.progress.say(f"{path}: {size}; {backend.name}, {backend.size} at a time")
        if backend.shares_memory and backend.size > (cores := available_cores()):
            self.progress.say(f"{backend.size} at a time share {plural(cores, 'core')}: fewer would be faster.")
        for line in (*table.notes, *columns_used(table)):
            self.progress.say(line)
        return table

    def take(self, table: Table) -> None:
        """Go by a table that was read elsewhere."""
        self.digest = digest(table)

    def read_two(self, new: Path, old: Path | None) -> tuple[Table, Table]:
        """New and old table, or one as both; names and classes that are asked for may be those of one alone."""
        if old is None:
            table = self.read(new)
            return table, table
        tables: list[Table] = []
        for path in (new, old):
            tables.append(self._read_one_of_two(path, tables))
        names = [table.columns or [] for table in tables]
        if sorted(names[0]) == sorted(names[1]) and names[0] != names[1] and len(set(names[0])) == len(names[0]):
            tables[1] = only_chosen(tables[1], Selection(model_columns=tuple(names[0])))
        for number, (a, b) in enumerate(zip(tables[0].columns or [], tables[1].columns or [], strict=False), start=1):
            if a != b:
                raise InputError(
                    f"Column {number} of {new} is {a!r}, of {old} {b!r}: give them in one order (--columns)."
                )
        return tables[0], tables[1]

    def _read_one_of_two(self, path: Path, before: list[Table]) -> Table:
        """A table without the names and classes that it lacks, where the other one has them or may have them."""
        roles: dict[str, Any] = {role: getattr(self.selection, role) for role in KEPT_AS}
        while True:
            try:
                return self.read(path, 1, replace(self.selection, **roles))
            except UnknownNameError as error:
                role = next((role for role, name in roles.items() if name == error.name), None)
                if role is None or (before and getattr(before[0], KEPT_AS[role]) is None):
                    raise
                roles[role] = None

    def look(self, matrix: Any, path: Path) -> Survey:
        """A look at all entries of a matrix: at those of a large one that is stored all workers look."""
        stripes = stripes_of(matrix.shape)
        shared = isinstance(matrix, StoredMatrix) and self.workers_read and self.backend.only_task is None
        if not shared or len(stripes) == 1:
            return survey(matrix, path)
        return joined_surveys(matrix, path, self._on_workers(matrix, survey_stripe, stripes))

    def of_blocks(self, table: Table) -> Measures | None:
        """How workers measure blocks of rows that stay in their file; None where this process does."""
        blocks = blocks_of(table.count)
        groups = [blocks[k : k + BLOCKS_A_TASK] for k in range(0, len(blocks), BLOCKS_A_TASK)]
        if table.stored is None or len(groups) == 1 or self.backend.only_task is not None:
            return None

        def measured(measure: Callable[[RowSource, Block], Any]) -> Iterator[Any]:
            """The measures of all blocks, in their order."""
            for some in self._on_workers(table.stored, partial(all_measured, measure=measure), groups):
                yield from some

        return measured

    def _on_workers(self, recipe: Recipe, kernel: Kernel, tasks: Sequence[Any]) -> list[Any]:
        """The results of all workers' looks at the input."""
        self.backend.share(recipe)
        try:
            parts = dict(self.backend.map(kernel, tasks))
        except TaskError as error:
            failure = error.failure
            if not failure.input_error:
                raise
            where = f"{failure.worker} (host {failure.host})"
            raise InputError(f"{where} cannot read the input; {failure.error.partition(': ')[2]}.") from None
        self.backend.end_of_reading()
        self.usage = self.backend.usage()
        return [parts[k] for k in range(len(tasks))]

    def check_unchanged(self) -> None:
        """Refuse to go on with what may be of one matrix or of another."""
        for matrix in self._stored:
            matrix.check_unchanged()


def all_measured(source: RowSource, blocks: list[Block], measure: Callable[[RowSource, Block], Any]) -> list[Any]:
    """The measure of each of some blocks of rows."""
    return [measure(source, block) for block in blocks]


def columns_used(table: Table) -> list[str]:
    """A line on the columns, where rows of numbers are compared."""
    if table.matrix is not None or table.texts is not None or table.offsets is not None:
        return []
    return [used(table.columns, table.X.shape[1])]
