"""`parallel-mix hmac`: the same result on every scheduler, and after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.conftest import assert_same_result, blobs, environment, launcher, parallel_mix
from tests.processes import program

LEVELS = ["--levels", "7"]
LONG = ["--levels", "6", "--range", "0.1,1.0", "--checkpoint-every", "0"]
OTHERS = [*((name, 1) for name in ("serial2", "mpi2", "mpi3", "dask2")),
          *((name, 2) for name in ("serial2", "mpi1", "mpi4", "dask2"))]  # fmt: skip


@pytest.fixture(scope="module")
def serial_results(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("serial")
    np.save(folder / "table.npy", blobs(700, 5))
    results = {}
    for approach in (1, 2):
        results[approach] = folder / f"serial{approach}.h5"
        done = parallel_mix(
            "hmac", folder / "table.npy", "-o", results[approach], *LEVELS, "--approach", approach, backend="serial1"
        )
        assert done.returncode == 0, done.stderr
    return results


@pytest.mark.parametrize("backend_name, approach", OTHERS)
def test_every_scheduler_gives_the_same_bits(
    serial_results: dict[int, Path], tmp_path: Path, approach: int, backend_name: str
) -> None:
    reference = serial_results[approach]
    out = tmp_path / "run.h5"
    table = reference.parent / "table.npy"
    done = parallel_mix("hmac", table, "-o", out, *LEVELS, "--approach", approach, backend=backend_name)
    assert done.returncode == 0, done.stderr
    assert_same_result(reference, out)
    assert json.loads((tmp_path / "run.h5.progress.json").read_text())["state"] == "done"


def test_both_approaches_agree_in_labels(serial_results: dict[int, Path]) -> None:
    with h5py.File(serial_results[1]) as one, h5py.File(serial_results[2]) as two:
        assert (one["hmac/labels"][()] == two["hmac/labels"][()]).all()


HOW = {
    "approach 1": ("rows.npy", [*LONG, "--approach", "1"]),
    "approach 2": ("more.npy", [*LONG, "--approach", "2", "--density", "exact"]),
    "tree": ("more.npy", [*LONG, "--flat", "--density", "tree"]),
    "field": ("plane.npy", ["--levels", "30", "--flat", "--density", "field", "--checkpoint-every", "0"]),
    "approach 3": ("plane.npy", ["--levels", "30", "--flat", "--approach", "3", "--checkpoint-every", "0"]),
}
"""Runs of some seconds."""


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results of some seconds; their tables lie beside them."""
    folder = tmp_path_factory.mktemp("long")
    np.save(folder / "rows.npy", blobs(3500, 6, 9))
    np.save(folder / "more.npy", blobs(8000, 6, 9))
    np.save(folder / "plane.npy", blobs(30_000, 2, 9))
    results = {how: folder / f"{how}.h5" for how in HOW}
    for how, out in results.items():
        table, options = HOW[how]
        done = parallel_mix("hmac", folder / table, "-o", out, *options)
        assert done.returncode == 0, done.stderr
    return results


def work_kept(checkpoint: Path) -> bool:
    """True once a checkpoint has ascents that have arrived."""
    try:
        with h5py.File(checkpoint) as file:
            return bool(file["done"][()] > 0)
    except OSError:  # not there yet, or another one takes its place
        return False


@pytest.mark.parametrize(
    "backend_name, how",
    [
        *(("serial1", how) for how in ("approach 1", "tree")),
        *(("mpi2", how) for how in HOW),
        *(("dask2", how) for how in ("approach 2", "approach 3")),
    ],
)
def test_killed_and_resumed_it_gives_the_same_bits(
    wholes: dict[str, Path], tmp_path: Path, backend_name: str, how: str
) -> None:
    whole, out = wholes[how], tmp_path / "run.h5"
    name, options = HOW[how]
    table = whole.parent / name
    before, after = launcher(backend_name)
    words = [
        *before,
        *program(),
        "hmac",
        str(table),
        "-o",
        str(out),
        *map(str, options),
        *after,
    ]
    checkpoint = tmp_path / "run.h5.checkpoint"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(words, env=environment(), stderr=log, stdout=log, start_new_session=True)
        until = time.monotonic() + 60
        while not work_kept(checkpoint) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        assert process.poll() is None, (tmp_path / "log").read_text()
        status = json.loads((tmp_path / "run.h5.progress.json").read_text())
        os.kill(status["process"], signal.SIGKILL)
        process.wait(timeout=30)
    assert not out.exists()
    done = parallel_mix("hmac", table, "-o", out, *options, backend="mpi2" if backend_name == "serial1" else "serial")
    assert done.returncode == 0, done.stderr
    assert_same_result(whole, out)
    with h5py.File(out) as file:
        assert file["run"].attrs["attempts"] == 2
        assert file["run"].attrs["reused"] > 0
    assert not checkpoint.exists()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_users_blas_threads_do_not_change_the_bits(tmp_path: Path, threads: str) -> None:
    """BLAS is held to one thread by us; were it not, its sums would come out otherwise (seen)."""
    np.save(tmp_path / "table.npy", blobs(4000, 8, 9))
    for name, value in (("own", "1"), ("users", threads)):
        words = ["hmac", tmp_path / "table.npy", "-o", tmp_path / f"{name}.h5", "--levels", 3, "--range", "0.1,0.6"]
        assert parallel_mix(*words, OPENBLAS_NUM_THREADS=value).returncode == 0
    assert_same_result(tmp_path / "own.h5", tmp_path / "users.h5")
