"""A job whose result is a large matrix that all workers write to in place."""

from __future__ import annotations

from typing import Any

from parallel_mix.launch.job import Job
from parallel_mix.store.checkpoints import KeptRun
from parallel_mix.store.matrix_files import MatrixFile, check_room, finish, lay_out, plan, staging_path, take_up
from parallel_mix.store.tables import Table, digest


class MatrixJob:
    """The file of distances of a job: laid out or taken up again, and finished."""

    file: MatrixFile

    def __init__(self, job: Job, new: Table, old: Table, dtype: str) -> None:
        self.job, self.new, self.old, self.dtype = job, new, old, dtype
        self.shape = len(new.X), len(old.X)
        job.unit = "tiles"

    def start(self, deciding: dict[str, Any]) -> KeptRun:
        """Begin or go on; `deciding` is all that decides the distances besides the data."""
        offset, header = plan(self.job.output, self.shape, self.dtype)
        self.deciding = {**deciding, "dtype": self.dtype}
        self.job.digest = digest(self.new)
        identity = {**self.deciding, "old": digest(self.old), "offset": offset}
        path = staging_path(self.job.output, {**identity, "new": self.job.digest})
        self.file = MatrixFile(str(path.absolute()), offset, self.shape, self.dtype)
        run = self.job.start(identity)
        if run.restored() is not None:
            take_up(self.file, header)
        elif self.job.options.only_task is None:
            check_room(self.job.output, self.shape, self.dtype)
            lay_out(self.file, header)
        return run

    def sink(self, gather: bool) -> MatrixFile | None:
        """Where workers put their tiles; None: they send them."""
        return None if gather or self.job.options.only_task is not None else self.file

    def finish(self) -> None:
        """Add what belongs to the matrix, and give the file its name."""
        tree = {f"@{key}": value for key, value in self.deciding.items()}
        tree |= names(self.new) | ({} if self.old is self.new else {"old": names(self.old)})
        tree["run"] = {f"@{key}": value for key, value in self.job.complete_record().items()}
        finish(self.file, self.job.output, "distances", tree)
        self.job.finish()


def names(table: Table) -> dict[str, Any]:
    """Classes and names of the rows."""
    found: dict[str, Any] = {}
    if table.y is not None:
        found["y"] = [str(v) for v in table.y] if table.y.dtype.kind in "UO" else table.y
    if table.rows is not None:
        found["rows"] = table.rows
    return found
