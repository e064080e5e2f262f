"""Files that were changed on the way, or are none: a sentence, whatever the library would do with them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.errors import InputError
from parallel_mix.store import checksums, guard
from parallel_mix.store.checksums import Checksums, DifferentError
from parallel_mix.store.hdf5_tables import hdf5_written_whole, opened
from parallel_mix.store.mapped import mapped
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Selection, read_table
from tests.conftest import BIN, ROOT, blobs, environment, mpirun, parallel_mix

FIXTURES = ROOT / "tests" / "fixtures" / "before-checksums"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three and a half blocks."""
    monkeypatch.setattr(checksums, "PLAIN_BYTES", 4096)
    path = tmp_path / "whole.h5"
    with hdf5_written_whole(path, "anything") as file:
        file["X"] = np.random.default_rng(0).normal(size=(200, 8))
    return path


def test_what_was_written_is_read(whole: Path) -> None:
    assert Checksums.of(whole) is not None
    with opened(whole) as file:
        assert file["X"].shape == (200, 8)


def test_no_byte_can_be_changed_cut_or_added_without_a_word(whole: Path) -> None:
    good = whole.read_bytes()
    r = np.random.default_rng(1)
    places = [0, 1, 4095, 4096, *r.integers(len(good), size=60), *range(len(good) - 60, len(good))]
    for place in places:
        for bad in (
            good[:place] + bytes([good[place] ^ 16]) + good[place + 1 :],
            good[:place],
            good[:place] + good[place : place + 9] + good[place:],
        ):
            whole.write_bytes(bad)
            os.utime(whole, ns=(0, int(r.integers(2**60))))
            with pytest.raises(InputError, match=r"whole.h5 (is damaged|was changed).*make it again"), opened(whole):
                pass


def test_whatever_becomes_of_the_end_it_is_missed(whole: Path) -> None:
    good = whole.read_bytes()
    for lost in range(1, len(good) - 2048, 311):
        whole.write_bytes(good[:-lost] + bytes(lost))
        with pytest.raises(InputError, match=r"whole.h5 (is damaged|was changed|cannot be read)"), opened(whole):
            pass


def test_a_file_of_others_has_no_checksums(tmp_path: Path) -> None:
    for content in (b"", b"x", b"a" * 5000):
        (tmp_path / "other").write_bytes(content)
        assert Checksums.of(tmp_path / "other") is None


def strange(tmp_path: Path) -> Path:
    path = tmp_path / "strange.h5"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones(3)
    return path


def test_a_file_on_which_the_library_crashes_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_touch", lambda item: os.kill(os.getpid(), signal.SIGSEGV))
    path = strange(tmp_path)
    for _ in range(2):
        with pytest.raises(InputError, match="the HDF5 library crashes on it"), opened(path):
            pass


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """Whoever opens it waits for ever, as in a loop of the library."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def lies_elsewhere(path: Path, pipe: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", shape=(100, 3), dtype="f8", external=[(str(pipe), 0, 2400)])


def is_sealed(path: Path, pipe: Path) -> None:
    lies_elsewhere(path, pipe)
    content = path.read_bytes()
    path.write_bytes(content + checksums.checksums_of(content))


def is_a_link(path: Path, pipe: Path) -> None:
    with h5py.File(path, "w") as file:
        file["X"] = h5py.ExternalLink(str(pipe), "X")


def comes_after_a_broken_one(path: Path, pipe: Path) -> None:
    with h5py.File(path, "w") as file:
        file["A"] = np.ones(3)
        file.create_dataset("X", shape=(100, 3), dtype="f8", external=[(str(pipe), 0, 2400)])
        place = h5py.h5o.get_info(file["A"].id).addr
    with path.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"\xff" * 32)


@pytest.mark.parametrize("make", [lies_elsewhere, is_sealed, is_a_link, comes_after_a_broken_one])
def test_a_file_with_which_the_library_never_ends_is_a_sentence(
    tmp_path: Path, pipe: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path, Path], None]
) -> None:
    monkeypatch.setattr(guard, "DEADLINE", 0.5)
    path = tmp_path / "strange.h5"
    make(path, pipe)
    with pytest.raises(InputError, match=r"does not come to an end.*make it again"), opened(path):
        pass
    began = time.monotonic()
    with pytest.raises(InputError, match="does not come to an end"), opened(path):
        pass
    assert time.monotonic() - began < 0.3, "it is not waited for again"


def test_whoever_is_stopped_while_it_waits_ends_its_copy(tmp_path: Path, pipe: Path) -> None:
    lies_elsewhere(tmp_path / "strange.h5", pipe)
    process = subprocess.Popen([str(BIN / "parallel-mix"), "hmac", str(tmp_path / "strange.h5"), "-o", "out.h5"])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (copies := children.read_text().split()):
        time.sleep(0.01)
    time.sleep(0.2)
    process.terminate()
    assert process.wait(timeout=5) == 75
    assert not Path(f"/proc/{copies[0]}").exists()


def test_a_large_table_in_odd_chunks_is_looked_at_in_no_time(tmp_path: Path) -> None:
    """Its chunks are columns: some rows of it are all of it."""
    path = tmp_path / "columns.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (20_000, 2_000), "f8", chunks=(20_000, 1), compression="gzip", fillvalue=1.0)
        file["X"][:, :3] = 2.0
        file["deep"] = np.zeros((1, 3_000, 1_000))
    began = time.monotonic()
    with opened(path):
        pass
    assert time.monotonic() - began < 1.0


def test_a_foot_that_lies_costs_neither_time_nor_memory(tmp_path: Path) -> None:
    path = tmp_path / "foot.h5"
    for length, block in ((0, checksums.PLAIN_BYTES), (2**34 - 1000, 1), (2**63, checksums.PLAIN_BYTES), (2**34, 0)):
        with path.open("wb") as file:
            file.truncate(2**34)
            file.seek(0, 2)
            file.write(checksums.FOOT.pack(checksums.MARK, 1, length, block, *checksums.NO_GRID) + bytes(8))
        with pytest.raises(DifferentError):
            Checksums.of(path)


def test_what_cannot_be_read_is_not_called_damaged(tmp_path: Path, pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, words in ((pipe, "is no file"), (tmp_path, "is no file"), (tmp_path / "none.h5", "does not exist")):
        with pytest.raises(InputError, match=words), opened(path):
            pass

    def too_many(path: Path) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Checksums, "of", too_many)
    with pytest.raises(InputError, match="cannot be read: Too many open files"), opened(strange(tmp_path)):
        pass


def test_a_class_that_is_no_text_in_parquet_is_a_sentence(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    table = pyarrow.table({"one": [1.0, 2.0, 3.0], "y": ["apple", "pear", "plum"]})
    parquet.write_table(table, path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"apple", b"\xff\xffple"))
    with pytest.raises(InputError, match=r"table.parquet is damaged"):
        read_table(path, Selection(labels="y"))


@pytest.mark.parametrize("error", [RuntimeError, TypeError, KeyError, ValueError, OSError, MemoryError, AttributeError])
def test_whatever_is_thrown_while_reading_is_a_sentence(tmp_path: Path, error: type[Exception]) -> None:
    with pytest.raises(InputError, match=r"strange.h5 is damaged.*make it again"), opened(strange(tmp_path)):
        raise error("Object visitation failed")


def test_what_we_say_ourselves_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^No\.$"), opened(strange(tmp_path)):
        raise InputError("No.")


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.h5")), ids=lambda path: path.stem)
def test_files_of_before_are_read_and_say_that_they_have_no_checksums(path: Path) -> None:
    done = parallel_mix("info", path)
    assert done.returncode == 0, done.stderr
    if path.stem != "table":
        assert "no checksums" in done.stdout


def test_a_result_that_keeps_the_labels_of_its_lowest_level_is_read(tmp_path: Path) -> None:
    path = FIXTURES.parent / "lowest-labels" / "hmac.h5"
    with h5py.File(path) as file:
        assert file["hmac/labels"].shape == (40,)
        sizes = [level["sizes"][()] for level in file["hmac/levels"].values()]
    done = parallel_mix("export", path, "-o", tmp_path / "labels.csv", "--level", "all")
    assert done.returncode == 0, done.stderr
    labels = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1, dtype=int)[:, 1:]
    for level, expected in zip(labels.T, sizes, strict=True):
        np.testing.assert_array_equal(np.bincount(level), expected)


MPI_ON_A_STRANGE_FILE = """
import os, signal, sys
from parallel_mix.cli import main
from parallel_mix.store import guard
guard._touch = lambda item: os.kill(os.getpid(), signal.SIGSEGV)
main(["hmac", sys.argv[1], "-o", sys.argv[2], "--levels", "2"])
"""


def test_under_mpi_a_strange_file_is_looked_at_first_too(tmp_path: Path) -> None:
    out = tmp_path / "out.h5"
    words = [*mpirun(2), sys.executable, "-c", MPI_ON_A_STRANGE_FILE, str(strange(tmp_path)), str(out)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60)
    assert "the HDF5 library crashes on it (SIGSEGV)" in done.stderr
    assert done.returncode == 2
    assert not out.exists()


@pytest.fixture(scope="module")
def distances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix in four columns of tiles, most rows of a tile with one checksum."""
    folder = tmp_path_factory.mktemp("distances")
    np.save(folder / "rows.npy", blobs(700, 3, 5))
    recipe = ["distances", folder / "rows.npy", "-o", folder / "D.h5", "--metric", "minkowski", "--p", "2.5"]
    assert parallel_mix(*recipe).returncode == 0
    return folder / "D.h5"


def changed(path: Path, place: int, to: Path) -> Path:
    """A copy of a file with one bit changed."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    to.write_bytes(content)
    return to


def test_a_matrix_is_told_apart_from_a_changed_one(distances: Path, tmp_path: Path) -> None:
    done = parallel_mix("info", distances, "--verify")
    assert "are those that were written" in done.stdout
    sums = Checksums.of(distances)
    assert sums is not None
    grid = sums.grid
    assert (grid.rows, grid.row_bytes) == (700, 5600)
    r = np.random.default_rng(0)
    places = [grid.start, grid.end - 1, *r.integers(grid.start, grid.end, size=40)]
    places += [grid.start - 1, grid.end, *r.integers(grid.end, distances.stat().st_size, size=20), 0]
    for number, place in enumerate(places):
        with pytest.raises(InputError, match=r"is damaged|was changed"):
            copy = changed(distances, int(place), tmp_path / f"{number}.h5")
            with opened(copy):
                sums_of_copy = Checksums.of(copy)
                assert sums_of_copy is not None
                sums_of_copy.compare_all()
        copy.unlink()


def test_only_rows_that_are_read_are_compared(distances: Path, tmp_path: Path) -> None:
    sums = Checksums.of(distances)
    assert sums is not None
    row = 333
    copy = changed(distances, sums.grid.start + row * sums.grid.row_bytes + 17, tmp_path / "D.h5")
    matrix = StoredMatrix.of(copy, "distances")
    good = StoredMatrix.of(distances, "distances")
    columns = np.array([500, 600])
    beside = row // sums.grid.piece_rows * sums.grid.piece_rows - 1
    assert (matrix[: beside + 1] == good[: beside + 1]).all()
    assert (matrix.among(np.array([1, beside]), columns) == good.among(np.array([1, beside]), columns)).all()
    for read in (
        lambda: matrix[row],
        lambda: matrix[row, 3],
        lambda: matrix.rows(row, row + 1),
        lambda: matrix.among(np.array([1, row]), columns),
        lambda: list(matrix.blocks(row, 400)),
        lambda: matrix.among(np.arange(700), np.arange(700)),
    ):
        with pytest.raises(InputError, match=r"rows .* of its matrix .* make it again"):
            read()


def test_a_mapped_file_that_is_cut_reads_as_zeros_and_ends_nobody(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(100_000.0).tofile(path)
    numbers = mapped(path, np.dtype(float), 80, (99_990,), "c")
    numbers[5] = -1.0
    os.truncate(path, 20_000)
    totals = []
    thread = threading.Thread(target=lambda: totals.append(float(numbers.sum())))
    thread.start()
    thread.join()
    assert totals[0] < numbers[:4096].size ** 2
    assert list(numbers[[0, 5, 5000, -1]]) == [10.0, -1.0, 0.0, 0.0]


def test_what_is_no_file_of_ours_ends_with_its_signal(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(100_000.0).tofile(path)
    program = (
        "import numpy as np, os, sys, pathlib; from parallel_mix.store.mapped import mapped\n"
        "path = pathlib.Path(sys.argv[1]); mapped(path, np.dtype(float), 0, (9,), 'r')\n"
        "numbers = np.memmap(path, float, 'r'); os.truncate(path, 9); print(numbers.sum())"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], timeout=60)
    assert done.returncode == -signal.SIGBUS


def test_a_small_part_of_the_fuzz() -> None:
    """`benchmarks/fuzz.py` damages files of all kinds, a thousand for each command."""
    words = [sys.executable, str(ROOT / "benchmarks" / "fuzz.py"), "info,table,export,predict,resume,status", "5", "7"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
