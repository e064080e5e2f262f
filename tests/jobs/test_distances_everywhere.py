"""`parallel-mix distances`: the same file on every backend, whole after any kill."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.conftest import BIN, assert_same_result, blobs, environment, launcher, parallel_mix

X = blobs(2300, 5, 4)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("distances") / "table.npy"
    np.save(path, X)
    return path


@pytest.fixture(scope="module")
def whole(table: Path) -> Path:
    out = table.with_name("whole.h5")
    done = parallel_mix("distances", table, "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def matrix(path: Path) -> np.ndarray:
    with h5py.File(path) as file:
        return np.asarray(file["distances"])


def test_a_plain_reader_finds_the_distances(whole: Path) -> None:
    D = matrix(whole)
    np.testing.assert_allclose(D, cdist(X, X), rtol=1e-10, atol=0)
    assert np.array_equal(D, D.T)
    assert not D.diagonal().any()


@pytest.mark.parametrize("backend", ["serial1", "serial2", "mpi1", "mpi2", "mpi3", "dask2"])
@pytest.mark.parametrize("gather", [False, True])
def test_the_same_bits_everywhere(table: Path, whole: Path, tmp_path: Path, backend: str, gather: bool) -> None:
    out = tmp_path / "D.h5"
    done = parallel_mix("distances", table, "-o", out, *["--gather"][: int(gather)], backend=backend)
    assert done.returncode == 0, done.stderr
    assert_same_result(whole, out)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("backend", ["serial2", "mpi2", "dask2"])
def test_killed_and_gone_on_with(table: Path, tmp_path: Path, backend: str) -> None:
    rows = tmp_path / "rows.npy"
    np.save(rows, blobs(5000, 8, 5))
    whole = tmp_path / "whole.h5"
    words = ["distances", rows, "--metric", "minkowski", "--p", "3"]
    assert parallel_mix(*words, "-o", whole).returncode == 0
    out = tmp_path / "D.h5"
    before, after = launcher(backend)
    command = [*before, str(BIN / "parallel-mix"), *map(str, words), "-o", str(out), "--checkpoint-every", "0", *after]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    kept = out.with_name("D.h5.checkpoint")
    while not kept.exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    done = parallel_mix(*words, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "Going on from" in done.stderr
    assert_same_result(whole, out)
    with h5py.File(out) as file:
        assert file["run"].attrs["reused"] > 0
