"""What every job does around its work: check the output, read, keep checkpoints and status, write, say how it ended."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from parallel_mix.backends.base import Backend
from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError, Stopped
from parallel_mix.launch.record import run_record
from parallel_mix.models.points import ArraySource, RowSource
from parallel_mix.progress import Progress, clock
from parallel_mix.store.atomic import check_writable
from parallel_mix.store.checkpoints import KeptRun, as_plain
from parallel_mix.store.results import data_tree, write_result
from parallel_mix.store.tables import Selection, Table, digest, read_table


class Job:
    """One run of a command on rank 0."""

    run: KeptRun

    def __init__(self, command: str, options: CommonOptions, backend: Backend) -> None:
        self.command = command
        self.options = options
        self.backend = backend
        self.output = options.output
        self.progress = Progress(quiet=options.quiet, log_file=options.log_file)
        self._began = time.monotonic()
        self._kept: KeptRun | None = None

    def __enter__(self) -> Self:
        if self.output.exists() and not self.options.force:
            raise InputError(f"{self.output} exists already: give --force to overwrite it, or another name.")
        check_writable(self.output)
        return self

    def read(self, path: Path, settings: Any) -> tuple[Table, RowSource]:
        """The input table, checked, and how workers reach its rows. From here on the run keeps checkpoints."""
        options: Any = self.options
        self.selection = Selection(options.dataset, options.weights, options.labels, options.row_names)
        table = read_table(path, self.selection)
        self.digest = digest(table)
        self.record = run_record(self.command, self.options, self.backend, self.digest)
        n, d = table.X.shape
        self.progress.say(f"{path}: {n:,} rows, {d} columns; {self.backend.name}, {self.backend.size} at a time")
        if not self.options.dry_run:
            identity = {"command": self.command, "data": self.digest}
            identity |= {key: as_plain(value) for key, value in asdict(settings).items()}
            self.run = self._kept = KeptRun(
                self.output, identity, self.progress, self.options.fresh, self.options.checkpoint_every
            )
        return table, ArraySource(table.X, table.w)

    def write(self, tree: dict[str, Any], table: Table) -> None:
        """Write the result; the checkpoint is not needed any more."""
        options: Any = self.options
        run = self.run
        self.record |= {
            "seconds": time.monotonic() - self._began,
            "attempts": run.attempt,
            "reused": run.reused,
            "checkpoints": run.checkpoints,
            "checkpoint_seconds": run.seconds,
        }
        write_result(
            self.output,
            self.command,
            tree,
            data_tree(table, self.selection, self.digest, options.data),
            self.record,
        )
        run.finish()
        self.progress.say(f"{self.output} written after {clock(time.monotonic() - self._began)}.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.end()
        if error is None or self._kept is None:
            return
        stopped = isinstance(error, Stopped)
        if not isinstance(error, InputError):
            self._kept.save()
        self._kept.write_status("stopped" if stopped else "failed", str(error).splitlines()[0])
        if stopped:
            self.progress.say(f"{self._kept.checkpoint} keeps what is done: give the same command again to go on.")
