"""The parts of a run by themselves: reading the input, and bringing it to the workers."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from parallel_mix.backends.inline import InlineBackend
from parallel_mix.errors import InputError
from parallel_mix.models.core.sources import HeldHere, HeldMatrix, HeldRows
from parallel_mix.progress import Progress
from parallel_mix.runs.reader import InputReader
from parallel_mix.runs.staging import Staging
from parallel_mix.store.hdf5_tables import StoredRows, write_table
from parallel_mix.store.tables import Selection, Table
from tests.conftest import blobs

X = blobs(50, 3)


def table_of(path: Path) -> Table:
    return Table(X, path)


def backend(shares_memory: bool, shares_files: bool) -> Any:
    return SimpleNamespace(shares_memory=shares_memory, shares_files=shares_files)


def test_a_reader_says_what_it_reads_and_knows_its_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "X.npy", X)
    reader = InputReader(InlineBackend(), Progress(), Selection())
    table = reader.read(tmp_path / "X.npy")
    assert (table.X == X).all()
    assert "50 rows, 3 columns; inline, 1 at a time" in capsys.readouterr().err
    first = reader.digest
    np.save(tmp_path / "Y.npy", X + 1.0)
    reader.read(tmp_path / "Y.npy")
    assert reader.digest != first
    with pytest.raises(InputError, match="does not exist"):
        reader.read(tmp_path / "Z.npy")


def test_workers_that_share_memory_are_given_the_rows_themselves(tmp_path: Path) -> None:
    staging = Staging(backend(True, True), tmp_path / "out.h5")
    assert isinstance(staging.rows(table_of(tmp_path)), HeldRows)
    assert not list(tmp_path.iterdir())


def test_rows_that_no_file_has_are_staged_where_workers_see_files(tmp_path: Path) -> None:
    staging = Staging(backend(False, True), tmp_path / "out.h5")
    source = staging.rows(table_of(tmp_path))
    assert isinstance(source, HeldHere)
    there = pickle.loads(pickle.dumps(source))
    assert isinstance(there, StoredRows), "what travels is where the rows are"
    assert (there.rows(3, 9) == X[3:9]).all()
    assert (source.rows(3, 9) == X[3:9]).all()
    staging.clear()
    assert not list(tmp_path.iterdir())


def test_rows_travel_where_workers_see_no_files_of_ours(tmp_path: Path) -> None:
    staging = Staging(backend(False, False), tmp_path / "out.h5")
    assert isinstance(staging.rows(table_of(tmp_path)), HeldRows)
    write_table(tmp_path / "X.h5", table_of(tmp_path / "X.h5"))
    stored = Table(X, tmp_path / "X.h5", dataset="X")
    assert isinstance(staging.rows(stored), HeldHere), "but a file that is the user's they are to see"


def test_a_matrix_in_memory_is_staged_only_where_that_helps(tmp_path: Path) -> None:
    table = Table(np.empty((3, 0)), tmp_path, matrix=np.zeros((3, 3)))
    for shares_memory, shares_files in ((True, True), (False, False)):
        matrix = Staging(backend(shares_memory, shares_files), tmp_path / "out.h5").matrix(table)
        assert isinstance(matrix, HeldMatrix)
    staging = Staging(backend(False, True), tmp_path / "out.h5")
    assert staging.matrix(table).shape == (3, 3)
    assert [path.name for path in tmp_path.iterdir()] == [".out.h5.matrix.h5"]
    assert isinstance(Staging(backend(False, True), tmp_path / "o.h5", dry_run=True).matrix(table), HeldMatrix)
