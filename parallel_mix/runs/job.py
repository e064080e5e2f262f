"""What every job does around its work: check the output, read, keep checkpoints and status, write, say how it ended."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from parallel_mix import compile_notice
from parallel_mix.backends.base import Backend
from parallel_mix.backends.threads import available_cores
from parallel_mix.backends.usage import Usage, since
from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError, Stopped, SupersededError, TaskError, UnknownNameError
from parallel_mix.models.core.sources import HeldMatrix, HeldRows, MatrixSource, MeanOfBoth, RowSource
from parallel_mix.progress import Progress, clock, plural
from parallel_mix.runs.efficiency import LONG_ENOUGH, Efficiency
from parallel_mix.runs.record import run_record
from parallel_mix.store.atomic import check_writable, write_text
from parallel_mix.store.checkpoints import KeptRun, WatchedRun, as_plain
from parallel_mix.store.columns import used
from parallel_mix.store.hdf5_tables import StoredRows, write_table
from parallel_mix.store.results import data_tree, write_result
from parallel_mix.store.stored_matrix import (
    StoredMatrix,
    Survey,
    joined_surveys,
    stripes_of,
    survey,
    survey_stripe,
)
from parallel_mix.store.tables import HDF5_ENDINGS, Selection, Table, digest, only_chosen, read_table

KEPT_AS = {"labels": "y", "row_names": "rows", "weights": "w"}


class Job:
    """One run of a command on rank 0."""

    run: KeptRun
    without_checkpoint: Path | None = None
    """A file that is worth nothing where there is no checkpoint that goes with it."""
    unit = "ascents"
    """What the work done is counted in."""
    workers_read = True
    """The workers read the input for themselves."""

    def __init__(
        self,
        command: str,
        options: CommonOptions,
        backend: Backend,
        selection: Selection,
        endings: tuple[str, ...] = HDF5_ENDINGS,
    ) -> None:
        self.endings = endings
        self.command = command
        self.options = options
        self.backend = backend
        self.selection = selection
        self.output = options.output
        self.progress = Progress(quiet=options.quiet, log_file=options.log_file)
        compile_notice.say = self.progress.say
        self._began = time.monotonic()
        self._kept: KeptRun | None = None
        self._staged: list[Path] = []
        self._stored: list[StoredMatrix] = []
        self._usage_of_reading: list[Usage] = []

    def __enter__(self) -> Self:
        kept = ("input", "old") if getattr(self.options, "in_place", False) else ("input", "old", "model")
        inputs = [path for name in kept if (path := getattr(self.options, name, None))]
        looks_only = self.options.dry_run or self.options.only_task is not None
        check_output(self.output, self.options.force or looks_only, self.endings, *inputs)
        return self

    def read(self, path: Path, least_rows: int = 2, selection: Selection | None = None) -> Table:
        """The input table, checked."""
        table = read_table(path, selection or self.selection, least_rows, self._look)
        self.digest = digest(table)
        self._stored += [table.matrix] if isinstance(table.matrix, StoredMatrix) else []
        d = (table.X if table.matrix is None else table.matrix).shape[1]
        found = plural(table.count, self.selection.things) + (f", {plural(d, 'column')}" if d else "")
        backend = self.backend
        self.progress.say(f"{path}: {found}; {backend.name}, {backend.size} at a time")
        if backend.name == "serial" and backend.size > (cores := available_cores()):
            self.progress.say(f"{backend.size} at a time share {plural(cores, 'core')}: fewer would be faster.")
        for line in (*table.notes, *self._columns_used(table)):
            self.progress.say(line)
        return table

    def _columns_used(self, table: Table) -> list[str]:
        """A line on them, where rows of numbers are compared."""
        if table.matrix is not None or table.texts is not None or table.offsets is not None:
            return []
        return [used(table.columns, table.X.shape[1])]

    def _look(self, matrix: Any, path: Path) -> Survey:
        """A look at all entries of a matrix: of a large one that is stored by all workers."""
        stripes = stripes_of(matrix.shape)
        shared = isinstance(matrix, StoredMatrix) and self.workers_read and self.options.only_task is None
        if not shared or len(stripes) == 1:
            return survey(matrix, path)
        self.backend.share(matrix)
        try:
            parts = dict(self.backend.map(survey_stripe, stripes))
        except TaskError as error:
            failure = error.failure
            if not failure.error.startswith(InputError.__name__):
                raise
            where = f"{failure.worker} (host {failure.host})"
            raise InputError(f"{where} cannot read the input; {failure.error.partition(': ')[2]}.") from None
        self.backend.end_of_reading()
        self._usage_of_reading = self.backend.usage()
        return joined_surveys(matrix, path, [parts[k] for k in range(len(stripes))])

    def read_two(self, new: Path, old: Path | None) -> tuple[Table, Table]:
        """New and old table, or one as both; names and classes that are asked for may be those of one alone."""
        if old is None:
            table = self.read(new)
            return table, table
        tables = []
        for path in (new, old):
            roles: dict[str, Any] = {role: getattr(self.selection, role) for role in KEPT_AS}
            while True:
                try:
                    tables.append(self.read(path, 1, replace(self.selection, **roles)))
                    break
                except UnknownNameError as error:
                    role = next((role for role, name in roles.items() if name == error.name), None)
                    if role is None or (tables and getattr(tables[0], KEPT_AS[role]) is None):
                        raise
                    roles[role] = None
        names = [table.columns or [] for table in tables]
        if sorted(names[0]) == sorted(names[1]) and names[0] != names[1] and len(set(names[0])) == len(names[0]):
            tables[1] = only_chosen(tables[1], Selection(model_columns=tuple(names[0])))
        for number, (a, b) in enumerate(zip(tables[0].columns or [], tables[1].columns or [], strict=False), start=1):
            if a != b:
                raise InputError(
                    f"Column {number} of {new} is {a!r}, of {old} {b!r}: give them in one order (--columns)."
                )
        return tables[0], tables[1]

    def source(self, table: Table, name: str = "rows") -> RowSource:
        """How workers reach the rows: in memory, or, where ranks share nothing but files, in an HDF5 file."""
        by_file = self.backend.name == "mpi" and self.backend.size > 1
        in_hdf5 = table.dataset is not None
        if not (by_file or (in_hdf5 and self.backend.name == "dask")) or self.options.dry_run:
            return HeldRows(table.X, table.w)
        if table.dataset is not None:
            weights = table.weights_dataset
            return StoredRows.of(table.path, table.dataset, weights, table.X.shape)
        staged = self.output.with_name(f".{self.output.name}.{name}.h5")
        self._staged.append(staged)
        write_table(staged, Table(table.X, table.path, w=table.w))
        return StoredRows.of(staged, "X", "w" if table.w is not None else None, table.X.shape)

    def square(self, table: Table, symmetrize: bool = False) -> MatrixSource:
        """How workers reach a square matrix: in memory or in an HDF5 file."""
        matrix = table.matrix
        if not isinstance(matrix, StoredMatrix):
            rows = self.source(replace(table, X=matrix), "matrix")
            matrix = (
                StoredMatrix.of(Path(rows.path), rows.dataset) if isinstance(rows, StoredRows) else HeldMatrix(matrix)
            )
        return MeanOfBoth(matrix) if symmetrize else matrix

    def start(self, deciding: dict[str, Any]) -> KeptRun:
        """From here on the run keeps checkpoints; `deciding` is all that decides the answer besides the data."""
        self.record = run_record(self.command, self.options, self.backend, self.digest)
        identity = {"command": self.command, "data": self.digest}
        identity |= {key: as_plain(value) for key, value in deciding.items()}
        if self.options.only_task is not None:
            self.run = WatchedRun(self.output, identity, self.progress)
            return self.run
        self.run = self._kept = KeptRun(
            self.output, identity, self.progress, self.options.fresh, self.options.checkpoint_every
        )
        self.backend.on_wait = self.run.heartbeat
        self.run.before_saving = self._check_unchanged
        if self.run.displaced:
            self.progress.say(
                f"If this run is still under way on {self.run.displaced}, it ends there and goes on here."
            )
        if self.run.reused:
            self.progress.say(f"Going on from {self.run.checkpoint} (attempt {self.run.attempt}).")
        return self.run

    def write(self, tree: dict[str, Any], table: Table, keep_data: bool) -> None:
        """Write the result as HDF5; the checkpoint is not needed any more."""
        data = data_tree(table, self.selection, self.digest, keep_data)
        write_result(self.output, self.command, tree, data, self.complete_record())
        self.finish()

    def complete_record(self) -> dict[str, Any]:
        """The record of the run, now that its work is done: on what it has read, and nothing else."""
        self._check_unchanged()
        usage = since(self._usage_of_reading, self.backend.usage())
        efficiency = Efficiency(self.backend.seconds, usage, self.backend.size)
        if efficiency.seconds > LONG_ENOUGH:
            self.progress.say(efficiency.summary())
        return self.record | {
            "efficiency": efficiency.as_record(),
            "seconds": time.monotonic() - self._began,
            "attempts": self.run.attempt,
            "reused": self.run.reused,
            "unit": self.unit,
            "checkpoints": self.run.checkpoints,
            "checkpoint_seconds": self.run.seconds,
        }

    def _check_unchanged(self) -> None:
        """Refuse to keep what may be of one matrix or of another."""
        for matrix in self._stored:
            matrix.check_unchanged()

    def write_csv(self, text: str) -> None:
        """Write the result as text."""
        write_text(self.output, text)
        self.finish()

    def finish(self, how: str = "finished") -> None:
        """The result is there."""
        self.run.finish(how)
        self._kept = None  # what fails from now on does not concern the run
        self.progress.say(f"{self.output} written after {clock(time.monotonic() - self._began)}.")
        if compile_notice.seconds > 1.0:
            spent = round(compile_notice.seconds)
            self.progress.say(f"{plural(spent, 'second')} of it went into compiling, which is not needed again.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.end()
        if isinstance(error, SupersededError):
            return  # the files are its successor's now
        for path in self._staged:
            path.unlink(missing_ok=True)
        if error is None or self._kept is None:
            return
        if isinstance(error, InputError) and self.without_checkpoint and not self._kept.checkpoint.exists():
            self.without_checkpoint.unlink(missing_ok=True)
        stopped = isinstance(error, Stopped)
        text = str(error) or type(error).__name__
        if isinstance(error, BrokenPipeError):
            text = "Nobody reads its words any more: its launcher or terminal is gone. The same command goes on."
        if isinstance(error, Stopped) and error.signum == signal.SIGTERM and "OMPI_COMM_WORLD_SIZE" in os.environ:
            text += " (mpirun sends it after Ctrl-C, too, and when a rank has died.)"
        self._kept.write_status("stopping", text.splitlines()[0])
        try:
            if not isinstance(error, InputError):
                self._kept.save()
        finally:  # last: a launcher's watcher may end what is left after this
            self._kept.write_status("stopped" if stopped else "failed", text.splitlines()[0])
        if stopped:
            self.progress.say(f"{self._kept.checkpoint} keeps what is done: give the same command again to go on.")


def check_output(output: Path, force: bool, endings: tuple[str, ...], *inputs: Path) -> None:
    """Find out before the work, not after it, that the output must not or cannot be written."""
    if output.suffix.lower() not in endings:
        raise InputError(f"{output} must end in {', '.join(endings)}: that is what is written.")
    for path in inputs:
        if path.exists() and output.exists() and path.samefile(output):
            raise InputError(f"{output} is the input: give the output another name.")
    if output.exists() and not output.is_dir() and not force:
        raise InputError(f"{output} exists already: give --force to overwrite it, or another name.")
    check_writable(output)
