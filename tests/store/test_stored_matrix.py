"""Matrices that are read in parts: mapped where they lie plainly in the file, read where they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from parallel_mix.errors import InputError
from parallel_mix.store import stored_matrix
from parallel_mix.store.stored_matrix import StoredMatrix, joined_surveys, stripes_of, survey, survey_stripe

D = np.random.default_rng(0).random((60, 60)).astype(np.float32)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"data": D},
    "chunked": {"data": D, "chunks": (7, 11)},
    "compressed": {"data": D, "compression": "gzip"},
    "other bytes first": {"data": D.astype(">f4")},
    "double": {"data": D.astype(np.float64)},
    "whole numbers": {"data": (100 * D).astype(np.int16)},
}


def stored(path: Path, **how: Any) -> StoredMatrix:
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("distances", **how)
    return StoredMatrix.of(path, "distances")


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_or_read_the_entries_are_the_same(tmp_path: Path, kind: str) -> None:
    matrix = stored(tmp_path / "D.h5", **KINDS[kind])
    plain = np.asarray(KINDS[kind]["data"])
    every, some, others = np.arange(60), np.array([3, 7, 8, 50]), np.array([0, 8, 59])
    assert (matrix.among(every, every) == plain).all()
    assert (matrix.among(some, others) == plain[np.ix_(some, others)]).all()
    assert (matrix[5:9, 10:20] == plain[5:9, 10:20]).all()
    assert (matrix.rows(5, 9) == plain[5:9]).all()
    assert matrix.is_mapped == (kind in ("plain", "double"))


def test_a_matrix_at_an_odd_place_is_read(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"x" + D.tobytes())
    matrix = stored(tmp_path / "D.h5", shape=D.shape, dtype=D.dtype, external=[(tmp_path / "raw", 1, D.nbytes)])
    assert (matrix.among(np.arange(60), np.arange(60)) == D).all()
    assert not matrix.is_mapped


def sparse(path: Path, n: int) -> StoredMatrix:
    """A matrix of zeros, but for its first row, that takes no room on disk."""
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((n, n))
        h5py.h5d.create(file.id, b"distances", h5py.h5t.NATIVE_FLOAT, space, how)
        file["distances"][0] = 1.0
    return StoredMatrix.of(path, "distances")


def test_a_matrix_larger_than_memory_is_read_in_parts(tmp_path: Path) -> None:
    total = 1024 * int(Path("/proc/meminfo").read_text().split()[1])
    matrix = sparse(tmp_path / "D.h5", int((2 * total / 4) ** 0.5))
    some = np.array([0, 1, 2])
    assert (matrix[:3].sum(axis=1) == [len(matrix), 0, 0]).all()
    assert [rows.sum() for _, rows in matrix.blocks(0, 3)] == [len(matrix), 0, 0]
    assert (matrix.among(some, some) == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]).all()


def test_where_nothing_may_be_mapped_it_is_read(tmp_path: Path) -> None:
    sparse(tmp_path / "D.h5", 30_000)
    program = (
        "import resource, sys, pathlib; from parallel_mix.store.stored_matrix import StoredMatrix\n"
        "matrix = StoredMatrix.of(pathlib.Path(sys.argv[1]), 'distances')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))\n"
        "print(matrix[:2].sum(), sum(rows.sum() for _, rows in matrix.blocks(0, 2)), matrix.is_mapped)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "D.h5")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["30000.0", "30000.0", "False"], done.stderr


def test_nobody_writes_to_the_file_by_mistake(tmp_path: Path) -> None:
    matrix = stored(tmp_path / "D.h5", data=D)
    matrix.among(np.arange(60), np.arange(60))[:] = 0.0
    assert (matrix[:] == D).all()


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    matrix = stored(tmp_path / "D.h5", data=D)
    stored(tmp_path / "D.h5", data=np.ones((70, 70)))
    with pytest.raises(InputError, match="has changed since the run began"):
        matrix[:3]


def test_stripes_tell_what_the_whole_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_matrix, "ENTRIES_AT_ONCE", 7 * 60)
    E = D.copy()
    np.fill_diagonal(E, 0.0)
    E[41, 41], E[13, 2], E[13, 5] = -0.5, -2.0, 9.0
    matrix = stored(tmp_path / "D.h5", data=E)
    parts = [survey_stripe(matrix, stripe) for stripe in stripes_of(matrix.shape)]
    joined = joined_surveys(matrix, tmp_path / "D.h5", parts)
    assert len(parts) == 9
    assert (joined.lowest, joined.lowest_at, joined.highest) == (-2.0, (13, 2), 9.0)
    assert (joined.diagonal, joined.diagonal_at) == (0.5, 41)
    assert joined == survey(E, tmp_path / "D.h5")
    E[14, 2] = 3.0
    assert survey(E, tmp_path / "D.h5").digest != joined.digest
    E[50, 1] = E[20, 4] = np.nan
    with pytest.raises(InputError, match="row 21"):
        survey(E, tmp_path / "D.h5")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 7, 29, 59])
def test_a_value_that_is_no_number_is_refused_wherever_it_stands(
    row: int, value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stripes of 30 rows, parts of 4: the first part of a stripe, one between, and the last."""
    monkeypatch.setattr(stored_matrix, "ENTRIES_AT_ONCE", 30 * 60)
    monkeypatch.setattr(stored_matrix, "BYTES_AT_ONCE", 4 * 60 * 4)
    E = D.copy()
    E[row, 5] = value
    for matrix in (E, stored(tmp_path / "D.h5", data=E)):
        with pytest.raises(InputError, match=f"D.h5 has 1 value that is NaN or infinite, the first in row {row + 1},"):
            survey(matrix, tmp_path / "D.h5")
    E[row, 5] = np.finfo(np.float32).max
    E[row, 6] = np.finfo(np.float32).max
    assert survey(E, tmp_path / "D.h5").finite, "a sum that is too large for a number is made of numbers"
