"""What every job does around its work: check the output, read, keep checkpoints and status, write, say how it ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from parallel_mix import compile_notice
from parallel_mix.backends.base import Backend
from parallel_mix.backends.usage import since
from parallel_mix.config import CommonOptions, input_files
from parallel_mix.errors import InputError, Stopped, SupersededError
from parallel_mix.progress import Progress, clock, plural
from parallel_mix.runs.efficiency import LONG_ENOUGH, Efficiency
from parallel_mix.runs.reader import InputReader
from parallel_mix.runs.record import run_record
from parallel_mix.runs.staging import Staging
from parallel_mix.store.atomic import check_writable, write_text
from parallel_mix.store.checkpoints import Fingerprint, KeptRun, WatchedRun
from parallel_mix.store.results import Tree, data_tree, write_tree
from parallel_mix.store.tables import HDF5_ENDINGS, Selection, Table


class Plan(Protocol):
    """What a job is to do, once its input has been read."""

    def intention(self) -> str:
        """What it would do, as a sentence."""

    def run(self) -> None:
        """Do it."""


class Job:
    """One run of a command on rank 0.

    Its parts stand by themselves: `reader` reads the input, `staging` brings it to the workers, `run` keeps
    checkpoints and status once the work has begun (`start`).
    """

    run: KeptRun

    def __init__(
        self,
        command: str,
        options: CommonOptions,
        backend: Backend,
        selection: Selection,
        endings: tuple[str, ...] = HDF5_ENDINGS,
        *,
        workers_read: bool = True,
    ) -> None:
        self.endings = endings
        self.command = command
        self.options = options
        self.backend = backend
        self.selection = selection
        self.output = options.output
        self.progress = Progress(quiet=options.quiet, log_file=options.log_file)
        compile_notice.say = self.progress.say
        self.reader = InputReader(backend, self.progress, selection, workers_read=workers_read)
        self.staging = Staging(backend, self.output, options.dry_run)
        self._began = time.monotonic()
        self._kept: KeptRun | None = None

    def __enter__(self) -> Self:
        looks_only = self.options.dry_run or self.options.only_task is not None
        inputs = [path for path in input_files(self.options) if path != self.output or not self.in_place]
        check_output(self.output, self.options.force or looks_only, self.endings, *inputs)
        return self

    def carry_out(self, plan: Plan) -> None:
        """Run what is planned, or with --dry-run say what it would do."""
        if self.options.dry_run:
            self.progress.say(plan.intention())
        else:
            plan.run()

    @property
    def in_place(self) -> bool:
        """Whether the output is an input that grows."""
        return bool(getattr(self.options, "in_place", False))

    @property
    def digest(self) -> str:
        """The digest of the input that was read last."""
        return self.reader.digest

    def start(
        self, deciding: dict[str, Any], *, unit: str, data: str | None = None, worthless_alone: Path | None = None
    ) -> KeptRun:
        """Begin the work, or go on with it: from here on the run keeps checkpoints.

        `deciding` is all that decides the answer besides the data, whose digest is `data` where it is not that of the
        input read last; `unit` is what the work done is counted in; `worthless_alone` a file that is worth nothing
        without a checkpoint that goes with it.
        """
        data = self.digest if data is None else data
        self.unit, self.worthless_alone = unit, worthless_alone
        self.record = run_record(self.command, self.options, self.backend, data)
        identity = {"command": self.command, "data": Fingerprint(data, "the data differ"), **deciding}
        if self.options.only_task is not None:
            self.run = WatchedRun(self.output, identity, self.progress)
            return self.run
        self.run = self._kept = KeptRun(
            self.output, identity, self.progress, self.options.fresh, self.options.checkpoint_every
        )
        self.backend.on_wait = self.run.heartbeat
        self.run.before_saving = self.reader.check_unchanged
        if self.run.displaced:
            self.progress.say(
                f"If this run is still under way on {self.run.displaced}, it ends there and goes on here."
            )
        if self.run.reused:
            self.progress.say(f"Going on from {self.run.checkpoint} (attempt {self.run.attempt}).")
        return self.run

    def write(
        self, kind: str, groups: Tree, table: Table, data: Tree, *, run: Tree | None = None, how: str = "finished"
    ) -> None:
        """Write a result: its groups, where its data are from, and the record of the run, to which `run` adds groups.

        `data` is what is kept of the data. The checkpoint is not needed any more.
        """
        self.write_tree(kind, groups, {"@digest": self.digest, "@path": str(table.path.absolute())} | data, run)
        self.finish(how)

    def write_with_data(self, kind: str, groups: Tree, table: Table, keep_data: bool) -> None:
        """Write a result with a copy of the data, or with where they are and what they were."""
        self.write_tree(kind, groups, data_tree(table, self.selection, self.digest, keep_data))
        self.finish()

    def write_tree(self, kind: str, groups: Tree, data: Tree, run: Tree | None = None) -> None:
        """Write the groups of a result, its data, and the record of the run."""
        record = {f"@{key}": value for key, value in self.complete_record().items()} | (run or {})
        write_tree(self.output, kind, {**groups, "data": data, "run": record})

    def complete_record(self) -> dict[str, Any]:
        """The record of the run, now that its work is done: on what it has read, and nothing else."""
        self.reader.check_unchanged()
        usage = since(self.reader.usage, self.backend.usage())
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

    def write_csv(self, text: Iterable[str]) -> None:
        """Write the result as text, part by part."""
        write_text(self.output, text)
        self.finish()

    def finish(self, how: str = "finished") -> None:
        """Say that the result is there."""
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
        compile_notice.say = compile_notice.to_stderr  # whoever computes after this run is not told by its progress
        if isinstance(error, SupersededError):
            return  # the files are its successor's now
        self.staging.clear()
        if error is None or self._kept is None:
            return
        if isinstance(error, InputError) and self.worthless_alone and not self._kept.checkpoint.exists():
            self.worthless_alone.unlink(missing_ok=True)
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
