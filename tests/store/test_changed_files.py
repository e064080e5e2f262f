"""Files that change after they were looked at: what was found out about them before is not believed any more."""

from __future__ import annotations

import os
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.errors import InputError
from parallel_mix.store.hdf5_tables import StoredRows, hdf5_written_whole, opened

X = np.random.default_rng(0).normal(size=(50, 3))


def write_in_place(path: Path, content: bytes, keep_time: bool = False) -> None:
    """The same file with other bytes, changed at a later time by the file system's clock, which is a coarse one.

    With `keep_time` the time of its last change is put back, as programs do that copy files with their times.
    """
    before = path.stat()
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
    while True:
        later = before.st_mtime_ns if keep_time else max(time.time_ns(), before.st_mtime_ns + 1)
        os.utime(path, ns=(before.st_atime_ns, later))
        if path.stat().st_ctime_ns != before.st_ctime_ns:
            return
        time.sleep(0.001)


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_file_that_was_sound_is_looked_at_again_once_it_has_changed(tmp_path: Path, keep_time: bool) -> None:
    path = tmp_path / "result.h5"
    with hdf5_written_whole(path, "anything") as file:
        file["X"] = X
    good, before = path.read_bytes(), path.stat()
    place = good.index(X.tobytes())
    bad = good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]
    for _ in range(2):
        with opened(path) as file:
            assert (file["X"][()] == X).all()
        write_in_place(path, bad, keep_time)
        assert (path.stat().st_ino, path.stat().st_size) == (before.st_ino, before.st_size)
        with pytest.raises(InputError, match=r"result.h5 is damaged.*make it again"), opened(path):
            pass
        write_in_place(path, good, keep_time)


def stored(path: Path, values: np.ndarray, dataset: str = "X") -> Path:
    with h5py.File(path, "w") as file:
        file[dataset] = values
    return path


def rows_of(path: Path) -> StoredRows:
    return StoredRows.of(path, "X", None, (50, 3))


def test_rows_are_read_as_they_are_stored(tmp_path: Path) -> None:
    rows = rows_of(stored(tmp_path / "t.h5", X))
    for start, stop in ((0, 50), (0, 1), (17, 33), (49, 50)):
        np.testing.assert_array_equal(rows.rows(start, stop), X[start:stop])


CHANGES = {"other numbers": (X + 1.0, "X"), "more rows": (np.vstack([X, X]), "X"), "another dataset": (X, "Z")}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_a_table_that_changed_since_the_run_began_are_refused(tmp_path: Path, change: str) -> None:
    """Half of a run on the old table and half of it on the new one would be the answer to no question."""
    path = stored(tmp_path / "t.h5", X)
    rows, size = rows_of(path), path.stat().st_size
    assert (rows.rows(0, 25) == X[:25]).all()
    write_in_place(path, stored(tmp_path / "new.h5", *CHANGES[change]).read_bytes())
    assert (path.stat().st_size == size) == (change != "more rows")
    for start, stop in ((0, 25), (25, 50)):
        with pytest.raises(InputError, match=r"t.h5 has changed since the run began: begin anew with --fresh\."):
            rows.rows(start, stop)
