"""What checksums cost, and the first look at an HDF5 file that has none.

python benchmarks/checksums_price.py [ROWS]      ROWS of the matrix, 7000 if left out

Each command runs in a forked process, whose imports are done, 24 times with and 24 times without checksums, in turn,
every other time with them first; beside them the same for the functions alone that write or read.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import h5py
import numpy as np

import parallel_mix.models.clusters.clustering
import parallel_mix.models.distances.pairwise  # noqa: F401
from parallel_mix.cli import main as run_command
from parallel_mix.kernels.density.modal_em import warm_up
from parallel_mix.store import guard, hdf5_tables
from parallel_mix.store.checksums import Checksums, Grid
from parallel_mix.store.results import read_data, read_result, write_tree
from parallel_mix.store.stored_matrix import StoredMatrix, survey

PAIRS = 24


def no_sums(self: Grid, values: np.ndarray, first_byte: int) -> list[int]:
    """In place of those of a tile."""
    return [0] * -(-len(values) // self.piece_rows)


WITHOUT = (
    mock.patch.object(Grid, "sums_of", no_sums),
    mock.patch.object(Checksums, "compare_plain", lambda self: None),
    mock.patch.object(Checksums, "compare_range", lambda self, entries, first, last: None),
    mock.patch.object(hdf5_tables, "checksums_of", lambda image: b""),
)


def seconds(action: Callable[[], object], checked: bool) -> float:
    """What an action takes, with or without checksums."""
    guard._seen.clear()
    for patch in () if checked else WITHOUT:
        patch.start()
    began = time.perf_counter()
    try:
        action()
        return time.perf_counter() - began
    finally:
        for patch in () if checked else WITHOUT:
            patch.stop()


def command(words: str) -> None:
    """A command in a process of its own."""
    child = os.fork()
    if not child:
        code = 1
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            run_command(words.split())
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{words} failed")


def show(what: str, action: Callable[[], object]) -> None:
    """A line of the table."""
    seconds(action, True)
    times: dict[bool, list[float]] = {False: [], True: []}
    for k in range(PAIRS):
        for checked in (k % 2 == 0, k % 2 == 1):
            times[checked].append(seconds(action, checked))
    without, with_them = statistics.median(times[False]), statistics.median(times[True])
    print(f"| {what} | {without:.3f} | {with_them:.3f} | {100 * (with_them / without - 1):+.1f} % |", flush=True)


def main() -> None:
    """All of it."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 7000
    r = np.random.default_rng(0)
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    np.save("X.npy", r.normal(size=(n, 17)))
    np.save("W.npy", r.normal(size=(20_000, 2)))
    warm_up()
    print("| what | without, s | with, s | price |\n|---|---|---|---|")
    show(f"`distances`, {n:,} x {n:,}, 17 columns", lambda: command("distances X.npy -o D.h5 --quiet --force"))
    command("distances X.npy -o D.h5 --quiet --force")
    show("`cluster` of it, 20 medoids", lambda: command("cluster D.h5 -o C.h5 --clusters 20 --quiet --force"))
    show("`info` of it", lambda: command("info D.h5"))
    show("the look at all its entries alone", lambda: survey(StoredMatrix.of(folder / "D.h5", "distances"), folder))
    tree = {"@kept": True, "@path": "", "@digest": "", "@selection": "{}", "X": r.normal(size=(1_000_000, 17))}
    result = {"data": tree, "hmac": {"labels": np.zeros((10, 1_000_000), np.int32)}}
    path = folder / "result.h5"
    show("writing a result of 176 MB alone", lambda: write_tree(path, "hmac", result))
    write_tree(path, "hmac", result)
    show("reading it alone, from memory", lambda: (read_result(path, "hmac"), read_data(path)))
    command("hmac W.npy -o run.h5 --levels 2 --quiet")
    show("`export` of hmac, 20,000 rows", lambda: command("export run.h5 -o out.csv --force"))
    times = []
    for rows in (1_000, 1_000_000):
        with h5py.File("others.h5", "w") as file:
            file["X"] = r.normal(size=(rows, 17))
        for _ in range(PAIRS):
            began = time.perf_counter()
            with guard._trial(folder / "others.h5") as end:
                end()
            times.append(1000 * (time.perf_counter() - began))
        print(f"\nThe first look at a table without checksums, {rows:,} x 17: {statistics.median(times):.1f} ms")


if __name__ == "__main__":
    main()
