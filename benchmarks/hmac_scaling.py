"""How far approach 3 of HMAC scales: a model of measured task lengths, checked by runs.

python benchmarks/hmac_scaling.py ROWS COLUMNS      10000000 2, if left out

One process clusters ROWS rows and writes down how long each task took, how much of it every worker would do for itself
(fields), how long rank 0 was busy between tasks, and how large results are. The replay hands these tasks to more ranks
in the order in which rank 0 does; rows are scaled by repeating tasks. Then the same command runs on 1, 2 and 4 ranks.
"""

from __future__ import annotations

import heapq
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
from large_data import drawn

from parallel_mix.backends.base import Kernel, Tasks
from parallel_mix.backends.inline import InlineBackend
from parallel_mix.families.hmac.file import tree_of
from parallel_mix.models.hmac.density_choice import warm_up
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.points import Points, measure_frame
from parallel_mix.models.hmac.result import HmacSettings
from parallel_mix.progress import Progress
from parallel_mix.runs.reader import InputReader
from parallel_mix.store.results import write_tree
from parallel_mix.store.tables import Selection, digest, read_table

BIN = Path(sys.executable).parent
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive"}
BYTES_A_SECOND = 1e9
"""What a network carries, for results that come from other hosts: assumed, not measured."""
MOST_SUMS = 64
"""Blocks of rows whose waves are summed, at most: more rows make larger ones."""
FEW = 2_000
"""Rows of a table by which the start of a command is measured: all that does not grow with the rows."""
RANKS = (1, 2, 4, 16, 64, 256, 1024, 4096)
HANDED_OUT = """
import sys, time
from parallel_mix.backends.mpi import MpiBackend
from parallel_mix.models.hmac.points import PointsRecipe
class Nothing:
    def load(self): return None
def idle(context, task): return task
backend = MpiBackend()
if backend.rank: backend.serve()
else:
    with backend:
        backend.share(Nothing()); n = 5000
        list(backend.map(idle, range(n)))
        began = time.perf_counter(); list(backend.map(idle, range(n)))
        print((time.perf_counter() - began) / n)
"""


@dataclass
class Call:
    """One hand-out of tasks."""

    name: str
    seconds: list[float] = field(default_factory=list)  # of each task, without what each worker does for itself
    of_each: float = 0.0  # what every worker does for itself: fields
    size: int = 0  # bytes of all results


class Recorder(InlineBackend):
    """This thread alone, which writes down how long tasks take."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.fields = 0.0

    def _begin(self, kernel: Kernel) -> None:
        name = getattr(getattr(kernel, "kernel", kernel), "func", kernel)
        self.calls.append(Call(getattr(name, "__name__", type(name).__name__)))
        super()._begin(kernel)

    def _submit(self, index: int, task: Any) -> bool:
        if self._results:
            return False
        before, began = self.fields, time.perf_counter()
        done = super()._submit(index, task)
        own = self.fields - before
        call = self.calls[-1]
        call.seconds.append(time.perf_counter() - began - own)
        call.of_each += own
        call.size += len(pickle.dumps(self._results[-1][1]))
        return done

    def map(self, kernel: Kernel, tasks: Tasks, wants: Callable[[Any], Any] | None = None) -> Iterator[tuple[int, Any]]:
        """As ever; a sum is cut into its blocks, as on many ranks."""
        if wants is not None:
            tasks = [(lo + k, lo + k + 1, total, [one]) for lo, _, total, some in tasks for k, one in enumerate(some)]
        return super().map(kernel, tasks, wants)

    def watch_fields(self) -> None:
        """Write down how long fields take that are made."""
        kept = Points.kept
        depth = [0]

        def timed(points: Points, name: Any, make: Callable[[], Any]) -> Any:
            def made() -> Any:
                depth[0] += 1
                began = time.perf_counter()
                try:
                    return make()
                finally:
                    depth[0] -= 1
                    if not depth[0]:
                        self.fields += time.perf_counter() - began

            return kept(points, name, made)

        Points.kept = timed  # type: ignore[method-assign]


@dataclass(frozen=True)
class Model:
    """A run taken apart."""

    rows: int
    start: float  # seconds until a command begins
    calls: list[Call]
    by_rows: float  # seconds of rank 0 alone that grow with the rows
    message: float  # seconds of rank 0 for each task that is handed out

    def seconds(self, ranks: int, rows: int) -> tuple[float, dict[str, float]]:
        """Seconds of a run of so many rows on so many ranks, and its parts."""
        grown = rows / self.rows
        parts = {"start": self.start, "rank 0": self.by_rows * grown, "fields": 0.0, "tasks": 0.0, "exchange": 0.0}
        for call in self.calls:
            by_rows = call.name not in ("climb_starts",)
            tasks = call.seconds
            if by_rows and call.name == "waves_of_block":
                many = min(max(round(len(tasks) * grown), 1), MOST_SUMS)
                each = sum(tasks) * grown / many
                tasks = [each] * many
            elif by_rows and grown != 1.0:
                full = [seconds for seconds in tasks if seconds > statistics.median(tasks) / 2.0]  # the last has less
                many = max(round(sum(tasks) * grown / statistics.mean(full)), 1)
                tasks = [full[k % len(full)] for k in range(many)]
            parts["tasks"] += longest(tasks, ranks)
            parts["fields"] += call.of_each
            if ranks > 1:
                size = call.size * (grown if by_rows and call.name != "waves_of_block" else 1.0)
                parts["exchange"] += len(tasks) * self.message + size / BYTES_A_SECOND * (1.0 - 1.0 / ranks)
        return sum(parts.values()), parts


def longest(tasks: list[float], ranks: int) -> float:
    """When the last of some ranks is done that take the next task as they end one."""
    busy = [0.0] * min(ranks, len(tasks))
    for seconds in tasks:
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy, default=0.0)


def taken_apart(path: Path, folder: Path) -> Model:
    """The run of a table, by one process."""
    recorder = Recorder()
    recorder.watch_fields()
    began = time.perf_counter()
    table = read_table(path, leave_from=0)
    digest(table)
    frame = measure_frame(
        table.stored, False, InputReader(recorder, Progress(quiet=True), Selection()).of_blocks(table)
    )
    result = fit_hmac(table.stored, HmacSettings(approach=3, density="field"), recorder, frame=frame)
    write_tree(folder / "apart.h5", "hmac", tree_of(result))
    whole = time.perf_counter() - began
    tasks = sum(sum(call.seconds) + call.of_each for call in recorder.calls)
    return Model(table.count, 0.0, recorder.calls, whole - tasks, 0.0)


def run(path: Path, out: Path, ranks: int) -> float:
    """Seconds of the whole command."""
    words = [str(BIN / "parallel-mix"), "hmac", str(path), "-o", str(out), "--approach", "3", "--force", "--quiet"]
    if ranks == 1:
        words += ["--threads", "1"]
    else:
        words = [str(BIN / "mpirun"), "--oversubscribe", "-n", str(ranks), *words]
    began = time.perf_counter()
    subprocess.run(words, check=True, env={**os.environ, **ENVIRONMENT})
    return time.perf_counter() - began


def handed_out() -> float:
    """Seconds of rank 0 for each task, by tasks that do nothing."""
    words = [str(BIN / "mpirun"), "--oversubscribe", "-n", "2", sys.executable, "-c", HANDED_OUT]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT})
    return float(done.stdout.split()[-1])


def table_of(model: Model, title: str, rows_on: Callable[[int], int]) -> None:
    """What the model says for rising numbers of ranks."""
    print(f"\n{title}\n\n| ranks | rows | seconds | efficiency | rank 0 alone | fields | tasks | exchange |")
    print("|---|---|---|---|---|---|---|---|")
    for ranks in RANKS:
        rows = rows_on(ranks)
        seconds, parts = model.seconds(ranks, rows)
        alone = model.seconds(1, rows)[0]
        shares = " | ".join(f"{parts[name]:.1f}" for name in ("rank 0", "fields", "tasks", "exchange"))
        print(f"| {ranks:,} | {rows:,} | {seconds:,.1f} | {alone / seconds / ranks:.0%} | {shares} |")


def main() -> None:
    """All of it."""
    rows, columns = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (10_000_000, 2)
    with tempfile.TemporaryDirectory() as name:
        scaling(rows, columns, Path(name))


def scaling(rows: int, columns: int, folder: Path) -> None:
    """The model of these rows, and what it says."""
    for name, n in (("table", rows), ("few", FEW)):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["X"] = drawn(n, columns)
    warm_up("field")
    few, model = (taken_apart(folder / f"{name}.h5", folder) for name in ("few", "table"))
    whole = statistics.median(run(folder / "few.h5", folder / "few.out.h5", 1) for _ in range(3))
    start = whole - sum(sum(call.seconds) + call.of_each for call in few.calls)
    model = replace(model, start=start, by_rows=model.by_rows - few.by_rows, message=handed_out())
    by_name: dict[str, list[float]] = {}
    for call in model.calls:
        for k, value in enumerate((len(call.seconds), sum(call.seconds), call.of_each, call.size / 1e6)):
            by_name.setdefault(call.name, [0.0] * 4)[k] += value
    print(f"{rows:,} x {columns}: start {start:.2f} s, rank 0 alone {model.by_rows:.2f} s, "
          f"{1e6 * model.message:.0f} microseconds a task")  # fmt: skip
    print("\n| tasks | number | seconds | fields, s | results, MB |\n|---|---|---|---|---|")
    for name, (count, seconds, own, size) in by_name.items():
        print(f"| `{name}` | {count:.0f} | {seconds:.2f} | {own:.2f} | {size:.1f} |")
    print("\n| ranks | predicted, s | measured, s |\n|---|---|---|")
    for ranks in (1, 2, 4):
        measured = run(folder / "table.h5", folder / "out.h5", ranks)
        print(f"| {ranks} | {model.seconds(ranks, rows)[0]:.1f} | {measured:.1f} |", flush=True)
    table_of(model, "100,000,000 rows:", lambda _: 100_000_000)
    table_of(model, "2,500,000 rows a rank:", lambda ranks: 2_500_000 * ranks)


if __name__ == "__main__":
    main()
