"""One table of bad inputs, tried on every command that reads a table: a sentence, exit code 2, nothing written."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.conftest import blobs, parallel_mix

GOOD = blobs(40)


def csv_of(text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "bad.csv").write_text(text)
        return folder / "bad.csv"

    return make


def npy_of(array: np.ndarray) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        np.save(folder / "bad.npy", array, allow_pickle=True)
        return folder / "bad.npy"

    return make


def hdf5_of(**datasets: object) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with h5py.File(folder / "bad.h5", "w") as file:
            for name, value in datasets.items():
                file[name] = value
        return folder / "bad.h5"

    return make


def with_value(value: float) -> np.ndarray:
    X = GOOD.copy()
    X[4, 1] = value
    return X


def truncated_hdf5(folder: Path) -> Path:
    path = hdf5_of(X=np.random.default_rng(0).normal(size=(2000, 4)))(folder)
    path.write_bytes(path.read_bytes()[:20_000])
    return path


def truncated_npz(folder: Path) -> Path:
    np.savez(folder / "bad.npz", X=GOOD)
    (folder / "bad.npz").write_bytes((folder / "bad.npz").read_bytes()[:500])
    return folder / "bad.npz"


def pickled_npz(folder: Path) -> Path:
    np.savez(folder / "bad.npz", X=np.array([{"a": 1}, {"b": 2}], dtype=object))
    return folder / "bad.npz"


def plain_pickle(folder: Path) -> Path:
    (folder / "bad.npy").write_bytes(pickle.dumps(GOOD))
    return folder / "bad.npy"


def parquet_of_text(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "name": ["x", "y"]}), folder / "bad.parquet")
    return folder / "bad.parquet"


def cut_parquet(folder: Path) -> Path:
    (folder / "bad.parquet").write_bytes(b"PAR1 and nothing more")
    return folder / "bad.parquet"


def binary_csv(folder: Path) -> Path:
    (folder / "bad.csv").write_bytes(bytes(range(256)) * 4)
    return folder / "bad.csv"


def missing(folder: Path) -> Path:
    return folder / "nowhere.csv"


def a_folder(folder: Path) -> Path:
    (folder / "bad.csv").mkdir()
    return folder / "bad.csv"


def unknown_format(folder: Path) -> Path:
    (folder / "bad.xyz").write_text("1,2\n")
    return folder / "bad.xyz"


BAD = {
    "missing file": (missing, "does not exist"),
    "folder": (a_folder, "is a folder"),
    "unknown format": (unknown_format, "unknown format '.xyz'"),
    "empty file": (csv_of(""), "is empty"),
    "header only": (csv_of("a,b,c\n"), "has a header and no rows"),
    "comments only": (csv_of("# nothing\n\n"), "is empty"),
    "text among numbers": (csv_of("a,b\n1,2\n3,x7\n"), "Row 2, column 'b' .* is 'x7', which is no number"),
    "text without header": (csv_of("1,2\n3,4\n5,six\n"), "Row 3, column '2' .* is 'six'"),
    "ragged rows": (csv_of("1,2\n3,4,5\n"), "Row 2 .* has 3 values, 2 were expected"),
    "empty cell": (csv_of("a,b\n1,2\n3,\n5,6\n"), "1 value that is NaN or infinite, the first in row 2, column 'b'"),
    "missing by name": (
        csv_of("a,b\n1,2\n3,NA\n5,6\n"),
        "1 value that is NaN or infinite, the first in row 2, column 'b'",
    ),
    "decimal commas": (csv_of("a;b\n1,5;2\n3;4\n"), "Row 1, column 'a' .* is '1,5': write decimals with a point"),
    "binary csv": (binary_csv, "is not text in UTF-8"),
    "one row": (csv_of("1,2,3\n"), "has 1 row: at least 2 are needed"),
    "NaN": (npy_of(with_value(np.nan)), "1 value that is NaN or infinite, the first in row 5, column 2"),
    "infinity": (npy_of(with_value(-np.inf)), "1 value that is NaN or infinite, the first in row 5, column 2"),
    "no rows": (npy_of(np.zeros((0, 3))), "has 0 rows"),
    "no columns": (npy_of(np.zeros((9, 0))), "has no columns"),
    "three dimensions": (npy_of(np.zeros((4, 3, 2))), "3-dimensional array of shape"),
    "a single number": (npy_of(np.array(3.0)), "0-dimensional array"),
    "text array": (npy_of(np.array([["a", "b"], ["c", "d"]])), "numbers are needed"),
    "complex numbers": (npy_of(np.ones((4, 2), dtype=complex)), "numbers are needed"),
    "pickled npy": (npy_of(np.array([[1, None]], dtype=object)), "pickled Python objects, which are never loaded"),
    "pickled npz": (pickled_npz, "pickled Python objects, which are never loaded"),
    "a pickle": (plain_pickle, "pickled Python objects, which are never loaded"),
    "truncated npz": (truncated_npz, "is damaged"),
    "truncated HDF5": (truncated_hdf5, "damaged, cut short, or no HDF5 file|damaged or cut short"),
    "HDF5 without X": (hdf5_of(Y=GOOD), "has no dataset 'X'; it has Y. Choose one with --dataset"),
    "HDF5 of text": (hdf5_of(X=np.array([[b"a", b"b"]] * 3)), "numbers are needed"),
    "HDF5 of references": (hdf5_of(X=np.array([b"x", b"y"], dtype=h5py.string_dtype())), "numbers are needed"),
    "parquet of text": (parquet_of_text, "Column 'name' .* numbers are needed"),
    "cut parquet": (cut_parquet, "is damaged or no parquet file"),
}
READERS = {
    "hmac": lambda bad, good, out: ["hmac", bad, "-o", out],
    "convert": lambda bad, good, out: ["convert", bad, "-o", out],
    "predict": lambda bad, good, out: ["predict", good, bad, "-o", out.with_suffix(".csv")],
    "distances": lambda bad, good, out: ["distances", bad, "-o", out],
    "info": lambda bad, good, out: ["info", bad],
}


@pytest.fixture(scope="module")
def good_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    np.save(folder / "good.npy", GOOD)
    assert parallel_mix("hmac", folder / "good.npy", "-o", folder / "good.h5", "--levels", 3).returncode == 0
    return folder / "good.h5"


def in_process(words: list[object], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command in this process: hundreds of cases are too many for a new one each."""
    from parallel_mix.cli import main

    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_a_sentence(
    case: str, command: str, tmp_path: Path, good_result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, sentence = BAD[case]
    bad, out = make(tmp_path), tmp_path / "out.h5"
    if command in ("predict", "convert") and case == "one row":
        pytest.skip("one row is enough")
    before = sorted(tmp_path.iterdir())
    code, said = in_process(READERS[command](bad, good_result, out), capsys)
    assert code == 2, said
    assert_sentence(said, sentence)
    assert sorted(tmp_path.iterdir()) == before, "nothing is written"


def without_labels(file: h5py.File) -> None:
    del file["hmac/labels"]


def without_a_level(file: h5py.File) -> None:
    del file["hmac/levels/001"]


def of_a_later_format(file: h5py.File) -> None:
    file.attrs["format"] = 99


def without_settings(file: h5py.File) -> None:
    del file["hmac"].attrs["settings"]


DAMAGES = {
    "labels": (without_labels, "damaged .*labels.*: make it again"),
    "level": (without_a_level, "damaged .*001.*: make it again"),
    "settings": (without_settings, "damaged .*settings.*: make it again"),
    "format": (of_a_later_format, "has format 99, written by a later parallel-mix"),
}
USERS_OF_RESULTS = {
    "info": lambda run, folder: ["info", run],
    "predict": lambda run, folder: ["predict", run, folder / "new.npy", "-o", folder / "new.csv"],
    "plot": lambda run, folder: ["plot", run, "-o", folder / "figures"],
    "export": lambda run, folder: ["export", run, "-o", folder / "labels.csv"],
}


@pytest.mark.parametrize("command", USERS_OF_RESULTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_result_is_a_sentence(
    damage: str, command: str, tmp_path: Path, good_result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    do, sentence = DAMAGES[damage]
    run = tmp_path / "run.h5"
    run.write_bytes(good_result.read_bytes())
    np.save(tmp_path / "new.npy", GOOD)
    with h5py.File(run, "r+") as file:
        del file.attrs["checksums"]  # as one of before, whose numbers nothing vouches for
        do(file)
    code, said = in_process(USERS_OF_RESULTS[command](run, tmp_path), capsys)
    assert code == 2, said
    assert_sentence(said, sentence)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npy", "run.h5"]


def test_new_points_have_the_columns_of_the_model(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_process(["hmac", table, "-o", tmp_path / "run.h5", "--levels", 3, "--quiet"], capsys)[0] == 0
    model, new, out = tmp_path / "run.h5", tmp_path / "new.csv", tmp_path / "p.csv"
    new.write_text("b,a\n1,2\n")
    code, said = in_process(["predict", model, new, "-o", out], capsys)
    assert code == 2
    assert_sentence(said, "new.csv lacks 1 column of the 3 that the model was made from: c. It has b, a")
    predictions = []
    for text in ("a,b,c\n1,2,3\n", "b,note,c,a\n2,x,3,1\n", "1,2,3\n"):
        new.write_text(text)
        code, said = in_process(["predict", model, new, "-o", out, "--force"], capsys)
        assert code == 0, said
        assert ("new.csv: ignored, as the model does not know them: note." in said) == ("note" in text)
        predictions.append(out.read_text())
    assert predictions[0] == predictions[1] == predictions[2]


def assert_sentence(said: str, sentence: str) -> None:
    import re

    last = said.strip().splitlines()[-1]
    assert re.search(sentence, said.replace("\n", " ")), said
    assert last.startswith("parallel-mix: "), said
    assert last.rstrip().endswith((".", "?")), said
    assert "Traceback" not in said


OPTIONS = {
    "bandwidth zero": (["--bandwidths", "0,1"], "Bandwidths must be positive numbers, not 0, 1"),
    "bandwidth negative": (["--bandwidths=-1,1"], "Bandwidths must be positive"),
    "bandwidths falling": (["--bandwidths", "1,0.5"], "Bandwidths must rise from level to level; got 1, 0.5"),
    "bandwidths equal": (["--bandwidths", "1,1"], "must rise"),
    "bandwidths of text": (["--bandwidths", "1,two"], "'1,two' does not do"),
    "bandwidth NaN": (["--bandwidths", "nan"], "Bandwidths must be positive"),
    "no levels": (["--levels", "0"], "'0' does not do: must be a whole number of 1 or more"),
    "range reversed": (["--range", "2,1"], "The range takes the lowest first, not 2,1"),
    "bandwidths and levels": (["--bandwidths", "1,2", "--levels", "3"], "leave out --levels and --range"),
    "bandwidths and range": (["--bandwidths", "1,2", "--range", "1,2"], "leave out --levels and --range"),
    "workers without Dask": (["--workers", "2"], "--workers is for Dask: add --backend dask"),
    "a scheduler without Dask": (["--scheduler", "tcp://x:1"], "--scheduler is for Dask: add --backend dask"),
    "range of one": (["--range", "2"], "range takes two numbers"),
    "unknown approach": (["--approach", "4"], "invalid choice: 4"),
    "abbreviated": (["--band", "1"], "[Uu]nrecognized arguments: --band"),
    "unknown dataset": (["--dataset", "Z"], "no array 'Z'"),
    "unknown weights": (["--weights", "v"], "no array 'v'"),
    "weights negative": (["--weights", "negative"], "must not be negative; row 3 has -1"),
    "weights zero": (["--weights", "zero"], "are all zero"),
    "weights NaN": (["--weights", "holes"], "not all finite numbers, first in row 1"),
    "weights short": (["--weights", "short"], "one for each of the 40 rows is needed"),
    "bandwidths of nothing": (["--bandwidths", ""], "numbers separated by commas are needed"),
    "output of another ending": (["-o", "out.csv"], "out.csv must end in .h5, .hdf5, .hdf"),
    "scheduler file missing": (
        ["--backend", "dask", "--scheduler-file", "none.json"],
        "none.json is no scheduler file of Dask",
    ),
    "config missing": (["--config", "nowhere.toml"], "options file nowhere.toml cannot be read"),
    "a folder as output": (["-o", "."], "The output . is a folder: give the name of a file in it"),
    "workers beside a scheduler": (
        ["--backend", "dask", "--scheduler", "tcp://127.0.0.1:1", "--workers", "2"],
        "a running one has its workers",
    ),
    "no address": (["--backend", "dask", "--scheduler", "foo"], "foo is no address of a Dask scheduler"),
    "seed of text": (["--seed", "x"], "'x' does not do: must be a whole number of 0 or more"),
    "threads zero": (["--threads", "0"], "must be a whole number of 1 or more"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_a_sentence(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags, sentence = OPTIONS[case]
    weights = {"negative": np.where(np.arange(40) == 2, -1.0, 1.0), "zero": np.zeros(40), "short": np.ones(3)}
    np.savez(tmp_path / "t.npz", X=GOOD, holes=np.full(40, np.nan), **weights)
    out = tmp_path / "out.h5"
    code, said = in_process(["hmac", tmp_path / "t.npz", "-o", out, *flags], capsys)
    assert code == 2, said
    assert_sentence(said, sentence)
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]


def test_a_range_as_two_words(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hmac", "--levels", 4, "--range", "0.2", "1.0", table, "-o", tmp_path / "o.h5", "--standardize", "--quiet"]
    assert in_process(words, capsys)[0] == 0
    with h5py.File(tmp_path / "o.h5") as file:
        np.testing.assert_allclose(file["hmac/bandwidths"][()], np.linspace(0.2, 1.0, 4))


def test_constant_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "t.npy", np.ones((10, 3)))
    code, said = in_process(["hmac", tmp_path / "t.npy", "-o", tmp_path / "out.h5"], capsys)
    assert code == 2
    assert_sentence(said, "All 10 rows are equal")


def test_a_toml_file_with_an_unknown_key_lists_the_valid_ones(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "o.toml").write_text("bandwith = 3\n")
    code, said = in_process(["hmac", table, "-o", tmp_path / "o.h5", "--config", tmp_path / "o.toml"], capsys)
    assert code == 2
    assert_sentence(said, "unknown option 'bandwith'. Valid ones: .*bandwidths")


def test_options_from_toml_and_flags_over_them(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "o.toml").write_text('levels = 3\nrange = [0.2, 1.0]\nstandardize = true\nbackend = "serial"\n')
    words = ["hmac", table, "-o", tmp_path / "o.h5", "--config", tmp_path / "o.toml", "--levels", 4, "--quiet"]
    assert in_process(words, capsys)[0] == 0
    with h5py.File(tmp_path / "o.h5") as file:
        sigma = file["hmac/bandwidths"][()]
    np.testing.assert_allclose(sigma, np.linspace(0.2, 1.0, 4))


def test_a_flag_goes_before_what_it_stands_instead_of_in_toml(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "o.toml").write_text("levels = 3\nrange = [0.2, 1.0]\n")
    words = ["hmac", table, "-o", tmp_path / "o.h5", "--config", tmp_path / "o.toml", "--bandwidths", "1,2", "--quiet"]
    assert in_process(words, capsys)[0] == 0
    with h5py.File(tmp_path / "o.h5") as file:
        assert list(file["hmac/bandwidths"][()]) == [1.0, 2.0]
    (tmp_path / "o.toml").write_text("levels = 3\nbandwidths = [0.2, 1.0]\n")
    code, said = in_process(["hmac", table, "-o", tmp_path / "p.h5", "--config", tmp_path / "o.toml"], capsys)
    assert code == 2
    assert_sentence(said, "leave out --levels")


def test_an_existing_result_is_not_overwritten_without_force(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.h5"
    words = ["hmac", table, "-o", out, "--levels", 2, "--quiet"]
    assert in_process(words, capsys)[0] == 0
    first = out.read_bytes()
    code, said = in_process(words, capsys)
    assert code == 2
    assert_sentence(said, "exists already: give --force")
    assert out.read_bytes() == first
    assert in_process([*words, "--force"], capsys)[0] == 0


@pytest.mark.parametrize("command", ["hmac", "convert"])
def test_the_input_is_never_the_output(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = hdf5_of(X=GOOD)(tmp_path)
    kept = path.read_bytes()
    code, said = in_process([command, path, "-o", path, "--force"], capsys)
    assert code == 2
    assert_sentence(said, "is the input: give the output another name")
    assert path.read_bytes() == kept


@pytest.mark.parametrize("command", ["hmac", "convert"])
def test_a_folder_that_is_missing_or_closed(
    command: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = in_process([command, table, "-o", tmp_path / "no" / "out.h5"], capsys)
    assert code == 2
    assert_sentence(said, "The folder .* does not exist")
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        code, said = in_process([command, table, "-o", tmp_path / "closed" / "out.h5"], capsys)
        assert code == 2
        assert_sentence(said, "no permission")


def test_a_full_disk_at_any_write_is_a_sentence(tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: it fails the same writes, whoever runs the tests."""
    import subprocess

    from tests.conftest import BIN, environment

    np.save(tmp_path / "t.npy", blobs(3000, 4))
    for blocks in (1, 8, 30, 80):  # of 1 KiB: probe, status, checkpoint, result
        limited = f'ulimit -f {blocks}; exec "$0" "$@"'
        words = ["hmac", str(tmp_path / "t.npy"), "-o", str(tmp_path / "out.h5"), "--checkpoint-every", "0"]
        words += ["--levels", "3"]
        done = subprocess.run(
            ["bash", "-c", limited, str(BIN / "parallel-mix"), *words],
            env=environment(PYTHONDONTWRITEBYTECODE="1"), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert "Traceback" not in done.stderr
        assert "larger than this system or your limits allow" in done.stderr
        assert not (tmp_path / "out.h5").exists()
        assert not [p for p in tmp_path.iterdir() if p.name.endswith(".part")]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    import subprocess

    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("no mount allowed here")
    try:
        np.save(tmp_path / "t.npy", blobs(3000, 4))
        done = parallel_mix("hmac", tmp_path / "t.npy", "-o", disk / "out.h5", "--levels", 3)
        assert done.returncode == 2, done.stderr
        assert "is full" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (disk / "out.h5").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


GOOD_BUT_ODD = {
    "one column": blobs(60, 1),
    "duplicates": np.repeat(blobs(20), 4, axis=0),
    "constant columns": np.column_stack([blobs(60), np.full(60, 7.0), np.zeros(60)]),
    "200 columns": blobs(50, 200),
    "two rows": np.array([[0.0, 0.0], [1.0, 1.0]]),
    "integers": (blobs(60) * 10).astype(np.int32),
    "booleans": blobs(60) > 0,
    "float32": blobs(60).astype(np.float32),
    "an offset of 1e7": blobs(60) + 1e7,
    "values of 1e200": blobs(60) * 1e200,
    "values of 1e-200": blobs(60) * 1e-200,
    "mostly one point": np.vstack([np.zeros((50, 2)), [[1.0, 1.0]]]),
    "one far outlier": np.vstack([blobs(60), [[1e9, 1e9, 1e9]]]),
    "one dimension": blobs(60, 1).ravel(),
}


@pytest.mark.parametrize("case", GOOD_BUT_ODD)
def test_odd_data_work_without_complaint(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = GOOD_BUT_ODD[case]
    np.save(tmp_path / "t.npy", X)
    words = ["hmac", tmp_path / "t.npy", "-o", tmp_path / "out.h5", "--quiet", "--threads", 1]
    code, said = in_process(words, capsys)
    assert (code, said) == (0, "")
    with h5py.File(tmp_path / "out.h5") as file:
        labels = file["hmac/labels"][()]
        assert labels.shape == (20, len(X))
        assert all(np.isfinite(file[f"hmac/levels/{k:03d}/modes"][()]).all() for k in range(20))


def test_fewer_rows_than_ranks(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", GOOD_BUT_ODD["two rows"])
    for approach in (1, 2):
        words = ["hmac", tmp_path / "t.npy", "-o", tmp_path / "out.h5", "--approach", approach, "--force"]
        assert parallel_mix(*words, backend="mpi4").returncode == 0


def test_all_points_equal_at_some_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "t.npy", GOOD)
    words = ["hmac", tmp_path / "t.npy", "-o", tmp_path / "out.h5", "--quiet", "--bandwidths", "1e-9,1,1e9"]
    assert in_process(words, capsys) == (0, "")
    with h5py.File(tmp_path / "out.h5") as file:
        assert len(np.unique(file["hmac/labels"][0])) == 40
        assert len(np.unique(file["hmac/labels"][2])) == 1


def test_toml_knows_a_flag_by_its_own_name(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "o.toml").write_text("levels = 3\nflat = true\n")
    words = ["hmac", table, "-o", tmp_path / "o.h5", "--config", tmp_path / "o.toml", "--quiet"]
    assert in_process(words, capsys)[0] == 0
    with h5py.File(tmp_path / "o.h5") as file:
        assert '"nested": false' in file["hmac"].attrs["settings"]


def test_pictures_of_very_large_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "huge.npy", GOOD * 1e200)
    assert in_process(["hmac", tmp_path / "huge.npy", "-o", tmp_path / "h.h5", "--levels", 3], capsys)[0] == 0
    code, said = in_process(["plot", tmp_path / "h.h5", "-o", tmp_path / "figures", "--format", "png"], capsys)
    assert code == 0, said
