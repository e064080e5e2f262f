"""`parallel-mix distances`: the same file on every backend, whole after any kill."""

from __future__ import annotations

import csv
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.conftest import (
    BIN,
    assert_same_result,
    blobs,
    environment,
    kill_with_children,
    launcher,
    parallel_mix,
    signatures,
)
from tests.slow import slow_distances

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


@pytest.mark.parametrize("backend", ["mpi2", "own-dask2"])
def test_killed_and_gone_on_with(tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = slow_distances(tmp_path, 30.0)
    out, whole = tmp_path / "D.h5", tmp_path / "whole.h5"
    before, after = launcher(backend)
    command = [*before, str(BIN / "parallel-mix"), *words, "-o", str(out), *after]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True)
    kept = out.with_name("D.h5.checkpoint")
    seen: set[int] = set()
    while len(seen) < 2 and process.poll() is None:  # the first is that of no tile
        seen |= {kept.stat().st_mtime_ns} if kept.exists() else set()
        time.sleep(0.01)
    kill_with_children(process)
    assert not out.exists()
    (tmp_path / "slowly").unlink()
    assert parallel_mix(*words, "-o", whole).returncode == 0
    done = parallel_mix(*words, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "Going on from" in done.stderr
    assert_same_result(whole, out)
    with h5py.File(out) as file:
        assert file["run"].attrs["reused"] > 0


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    np.save(folder / "rows.npy", X[:300])
    S = signatures(150, 3, 1)
    with h5py.File(folder / "signatures.h5", "w") as file:
        file["values"], file["weights"], file["offsets"] = S.values, S.weights, S.offsets
    votes = np.random.default_rng(0).choice(["y", "n", "?"], (90, 4))
    party = np.where(votes[:, 0] == "y", "d", "r")
    lines = [
        ",".join(["party", "a", "b", "c", "d"]),
        *(",".join([p, *row]) for p, row in zip(party, votes, strict=True)),
    ]
    (folder / "votes.csv").write_text("\n".join(lines) + "\n")
    np.savez(folder / "S.npz", S=np.exp(-cdist(X[:80], X[:80])) * np.random.default_rng(1).uniform(0.5, 1, (80, 80)))
    with h5py.File(folder / "S.h5", "w") as file, np.load(folder / "S.npz") as archive:
        file["kernel"], file["y"] = archive["S"], ["a", "b"] * 40
    letters = np.random.default_rng(2).choice(list("abcé ,"), (120, 9))
    texts = ["".join(row)[: 1 + k % 9] for k, row in enumerate(letters)]
    with (folder / "texts.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["name", "kind"], *([text, k % 2] for k, text in enumerate(texts))])
    (folder / "ours.py").write_text(OURS)
    np.save(folder / "huge.npy", X[:20] * 1e200)
    np.save(folder / "large.npy", X[:20] * 1e25)
    np.savez(folder / "few.npz", X=X[:8], y=[1, 2, 3])
    np.save(folder / "narrow.npy", X[:20, :3])
    np.save(folder / "zero.npy", X[:20] * (np.arange(20) != 1)[:, None])
    flat = signatures(20, 2, 1)
    with h5py.File(folder / "flat.h5", "w") as file:
        file["values"], file["weights"], file["offsets"] = flat.values, flat.weights, flat.offsets
    odd = np.ones((8, 8))
    odd[2, 3] = -2.0
    np.savez(folder / "minus.npz", S=odd)
    odd[4, 5] = np.nan
    np.savez(folder / "nan.npz", S=odd)
    return folder


OURS = """
import numpy as np
def taxi(x, y):
    return np.abs(x - y).sum()
def skew(x, y):
    return abs(float(x[0] - 2 * y[0]))
def words(x, y):
    return "far"
def nothing(x, y):
    return float("nan")
def broken(x, y):
    return 1 / 0
"""

KINDS = {
    "mallows": ["signatures.h5", "--metric", "mallows"],
    "irm": ["signatures.h5", "--metric", "irm", "--single"],
    "vdm": ["votes.csv", "--metric", "vdm", "--labels", "party"],
    "own": ["rows.npy", "--metric", "ours:taxi"],
    "own, symmetric": ["rows.npy", "--metric", "ours:taxi", "--symmetric"],
    "similarity": ["S.npz", "--dataset", "S", "--from-similarity", "inverse", "--symmetrize"],
    "stored similarity": ["S.h5", "--from-similarity", "inverse", "--symmetrize"],
    "edit": ["texts.csv", "--metric", "edit", "--labels", "kind"],
    "nearest": ["rows.npy", "--knn", "7"],
    "nearest texts": ["texts.csv", "--metric", "edit-normalized", "--dataset", "name", "--knn", "3"],
    "new and old": ["rows.npy", "rows.npy", "--metric", "cosine"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_the_same_everywhere(kind: str, inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    dask = "own-dask2" if kind.startswith("own") else "dask2"  # its workers find a module of this folder
    for backend in ("serial1", "serial2", "mpi2", dask):
        done = parallel_mix("distances", *KINDS[kind], "-o", tmp_path / f"{backend}.h5", backend=backend)
        assert done.returncode == 0, done.stderr
        assert_same_result(tmp_path / "serial1.h5", tmp_path / f"{backend}.h5")
    assert parallel_mix("info", tmp_path / "mpi2.h5").returncode == 0


def test_what_the_kinds_hold(inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    for kind in ("own", "similarity", "stored similarity", "edit", "nearest", "new and old"):
        assert parallel_mix("distances", *KINDS[kind], "-o", tmp_path / f"{kind}.h5").returncode == 0
    rows = X[:300]
    np.testing.assert_allclose(matrix(tmp_path / "own.h5"), cdist(rows, rows, "cityblock"), rtol=1e-12)
    np.testing.assert_allclose(matrix(tmp_path / "new and old.h5"), cdist(rows, rows, "cosine"), atol=1e-12)
    with np.load(inputs / "S.npz") as archive:
        D = 1.0 / np.maximum(archive["S"], 1e-3)
    expected = (D + D.T) / 2 * ~np.eye(80, dtype=bool)
    np.testing.assert_allclose(matrix(tmp_path / "similarity.h5"), expected, rtol=1e-12)
    assert np.array_equal(matrix(tmp_path / "stored similarity.h5"), matrix(tmp_path / "similarity.h5"))
    with h5py.File(tmp_path / "stored similarity.h5") as file:
        assert list(file["y"].asstr()[:3]) == ["a", "b", "a"]
    with (inputs / "texts.csv").open(newline="") as file:
        texts = [row[0].strip() for row in list(csv.reader(file))[1:]]
    assert np.array_equal(matrix(tmp_path / "edit.h5"), [[edits(a, b) for b in texts] for a in texts])
    with h5py.File(tmp_path / "nearest.h5") as file:
        order = np.argsort(cdist(rows, rows) + np.diag(np.full(300, np.inf)), axis=1, kind="stable")[:, :7]
        assert np.array_equal(file["neighbours/indices"], order)


def edits(a: str, b: str) -> int:
    """Levenshtein's distance, as its definition says."""
    before = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other)))
        before = row
    return before[-1]


BAD = {
    "p of nothing": (["rows.npy", "--p", "3"], "--p is for --metric minkowski, not for euclidean"),
    "sigma of nothing": (["rows.npy", "--metric", "cosine", "--sigma", "3"], "--sigma is for --metric gaussian"),
    "sigma zero": (["rows.npy", "--metric", "gaussian", "--sigma", "0"], "must be above 0, not 0"),
    "promise of nothing": (["rows.npy", "--symmetric"], "euclidean is symmetric anyway"),
    "mean of nothing": (["rows.npy", "--symmetrize"], "--symmetrize is for --from-similarity"),
    "two metrics": (["S.npz", "--from-similarity", "bound", "--metric", "cosine"], "--metric has nothing to do beside"),
    "two tables": (["S.npz", "S.npz", "--from-similarity", "bound"], "A second table has nothing to do beside"),
    "single neighbours": (["rows.npy", "--knn", "3", "--single"], "--single is for the whole matrix"),
    "other columns": (["rows.npy", "narrow.npy"], "Old and new have 3 and 5 columns: give the same"),
    "other dimensions": (
        ["signatures.h5", "flat.h5", "--metric", "mallows"],
        "have 2 and 3 coordinates: give",
    ),
    "negative similarity": (["minus.npz", "--from-similarity", "inverse"], "of rows 3 and 4 is -2: below 0 it has no"),
    "NaN similarity": (["nan.npz", "--from-similarity", "bound"], "NaN or infinite, the first in row 5, column 6"),
    "which column": (["texts.csv", "--metric", "edit"], "columns name, kind: choose that of the texts with --dataset"),
    "no texts": (["rows.npy", "--metric", "edit"], "holds float64 values of shape .*: a list of texts is needed"),
    "too large": (["huge.npy"], "too large for a number: scale the data"),
    "too large for float32": (
        ["large.npy", "--metric", "sqeuclidean", "--single"],
        "distances that float32 cannot hold",
    ),
    "few classes": (["few.npz"], "8 rows, but 3 classes"),
    "zero row": (["zero.npy", "--metric", "cosine"], "Row 2 is zero: it has no direction"),
    "unknown": (["rows.npy", "--metric", "cosin"], "There is no metric 'cosin': use one of euclidean"),
    "no classes": (["rows.npy", "--metric", "vdm"], "vdm needs the known classes"),
    "no module": (["rows.npy", "--metric", "nowhere:f"], "cannot be imported: ModuleNotFoundError"),
    "no function": (["rows.npy", "--metric", "ours:f"], "ours has no function 'f'"),
    "words": (
        ["rows.npy", "--metric", "ours:words"],
        "ours:words returned 'far' for rows .* and .*: a number is needed",
    ),
    "NaN": (["rows.npy", "--metric", "ours:nothing"], "ours:nothing returned nan for rows .* and"),
    "not symmetric": (["rows.npy", "--metric", "ours:skew", "--symmetric"], "promised to be symmetric, but gives"),
    "no signatures": (["rows.npy", "--metric", "mallows"], "holds no signatures: give HDF5"),
    "too many neighbours": (["rows.npy", "--knn", "300"], "There are 299 others to be near to"),
    "not square": (["rows.npy", "--from-similarity", "bound"], "300 x 5 entries: it is not square"),
    "no room": (["many.npy"], "needs .* GiB, and the disk of .* GiB free. Take --single, --knn"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_wish_is_a_sentence(case: str, inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    words, sentence = BAD[case]
    if case == "no room":
        np.save(inputs / "many.npy", np.zeros((3_000_000, 1)))
    done = parallel_mix("distances", *words, "-o", tmp_path / "out.h5")
    assert done.returncode == 2, done.stderr
    assert re.search(sentence, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not [path.name for path in tmp_path.iterdir() if path.suffix in (".h5", ".part")]


@pytest.mark.parametrize("command", ["info", "plot"])
@pytest.mark.parametrize("damage", ["cut", "metric", "distances"])
def test_a_damaged_matrix_is_a_sentence(whole: Path, tmp_path: Path, damage: str, command: str) -> None:
    bad = tmp_path / "bad.h5"
    bad.write_bytes(whole.read_bytes()[: 1_000_000 if damage == "cut" else None])
    if damage != "cut":
        with h5py.File(bad, "r+") as file:
            del (file.attrs if damage == "metric" else file)[damage]
    done = parallel_mix(command, bad, *(["-o", tmp_path / "figures"] if command == "plot" else []))
    assert done.returncode == 2, done.stderr
    assert re.search("damaged|no result of parallel-mix", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_function_that_raises_names_the_pair(inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    done = parallel_mix("distances", "rows.npy", "--metric", "ours:broken", "-o", tmp_path / "out.h5")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert re.search(r"ours:broken was called with rows \d+ and \d+", done.stderr)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"weights": [0.5, 0.4, 1.0]}, r"weights of signature 1 .* add to 0.9, off by -0.1"),
        ({"weights": [0.5, 0.5, -1.0]}, "Signature 2 .* has a weight that is not above 0"),
        ({"offsets": [0, 2]}, "must rise from 0 to the number of points, 3"),
        ({"offsets": [0, 3, 3]}, "by one or more for each signature"),
        ({"weights": [1.0]}, "shape"),
    ],
)
def test_bad_signatures(change: dict[str, list[float]], sentence: str, tmp_path: Path) -> None:
    good = {"values": [[0.0], [1.0], [2.0]], "weights": [0.5, 0.5, 1.0], "offsets": [0, 2, 3]}
    with h5py.File(tmp_path / "s.h5", "w") as file:
        for name, value in {**good, **change}.items():
            file[name] = np.array(value)
    done = parallel_mix("distances", tmp_path / "s.h5", "--metric", "mallows", "-o", tmp_path / "o.h5")
    assert done.returncode == 2
    assert re.search(sentence, done.stderr), done.stderr


def test_a_function_that_was_mended_meanwhile_is_another(inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    module = inputs / "mended.py"
    module.write_text("def f(x, y):\n    return abs(x - y).sum() if x[0] < 1e9 else 1 / 0\n")
    far = X[:300].copy()
    far[-1, 0] = 2e9
    np.save(inputs / "beyond.npy", far)
    words = ["distances", "beyond.npy", "--metric", "mended:f", "--checkpoint-every", "0", "-o", tmp_path / "D.h5"]
    assert parallel_mix(*words).returncode == 1
    module.write_text("def f(x, y):\n    return 1000 * abs(x - y).sum()\n")
    done = parallel_mix(*words)
    assert done.returncode == 2
    assert "the function has changed" in done.stderr
    assert parallel_mix(*words, "--fresh").returncode == 0


def test_a_checkpoint_whose_matrix_is_gone_begins_anew(inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """As where a run was killed between the name of its result and the end of its checkpoint."""
    monkeypatch.chdir(inputs)
    words = ["distances", "far.npy", "--metric", "late:f", "--checkpoint-every", "0", "-o", tmp_path / "D.h5"]
    far = X[:300].copy()
    far[-1, 0] = 2e9
    np.save(inputs / "far.npy", far)
    (inputs / "late.py").write_text("from ours import taxi\ndef f(x, y):\n    return taxi(x, y) / (x[0] < 1e9)\n")
    with np.errstate(divide="ignore"):
        assert parallel_mix(*words).returncode == 2
    (part,) = tmp_path.glob(".D.h5.*.part")
    part.unlink()
    done = parallel_mix(*words)
    assert "is gone" not in done.stderr
    assert done.returncode == 2
    assert re.search("returned inf", done.stderr)


def test_distances_are_those_of_the_matrix(inputs: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(inputs)
    words = ["distances", "signatures.h5", "--metric", "mallows"]
    assert parallel_mix(*words, "-o", tmp_path / "D.h5").returncode == 0
    assert parallel_mix(*words, "--knn", "5", "-o", tmp_path / "K.h5").returncode == 0
    D = matrix(tmp_path / "D.h5")
    with h5py.File(tmp_path / "K.h5") as file:
        indices, distances = file["neighbours/indices"][:], file["neighbours/distances"][:]
    assert np.array_equal(np.take_along_axis(D, indices, axis=1), distances)


def test_texts_come_in_all_formats(tmp_path: Path) -> None:
    texts = ["#one", "zwei", "tröis", "a, b", "line\nbreak", ""]
    with (tmp_path / "t.csv").open("w", newline="") as out:
        csv.writer(out).writerows([["text", "k"], *([text, "x"] for text in texts)])
    np.savez(tmp_path / "t.npz", X=np.array(texts))
    np.save(tmp_path / "t.npy", np.array([text.encode() for text in texts]))
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["X"] = texts
        file["fixed"] = np.array([text.encode() for text in texts])
    (tmp_path / "t.txt").write_text("\n".join(text.replace("\n", "\u2028") for text in texts) + "\n")
    expected = [[edits(a, b) for b in texts] for a in texts]
    for name, more in {"t.csv": ["--dataset", "text"], "t.npz": [], "t.npy": [], "t.h5": [], "t.txt": []}.items():
        out = tmp_path / f"{name}.out.h5"
        done = parallel_mix("distances", tmp_path / name, "--metric", "edit", "-o", out, *more)
        assert done.returncode == 0, done.stderr
        assert np.array_equal(matrix(out), expected), name


def test_categories_come_in_all_formats(inputs: Path, tmp_path: Path) -> None:
    with (inputs / "votes.csv").open(newline="") as file:
        _, *rows = list(csv.reader(file))
    votes, party = np.array([row[1:] for row in rows]), np.array([row[0] for row in rows])
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["X"], file["y"] = [list(map(str, row)) for row in votes], list(map(str, party))
    np.savez(tmp_path / "v.npz", X=votes, y=party)
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {f"c{k}": votes[:, k] for k in range(4)} | {"y": party}
    parquet.write_table(pyarrow.table(columns), tmp_path / "v.parquet")
    words = ["--metric", "vdm", "--labels"]
    assert parallel_mix("distances", inputs / "votes.csv", *words, "party", "-o", tmp_path / "c.h5").returncode == 0
    for name in ("v.h5", "v.npz", "v.parquet"):
        done = parallel_mix("distances", tmp_path / name, *words, "y", "-o", tmp_path / f"{name}.out.h5")
        assert done.returncode == 0, done.stderr
        assert np.array_equal(matrix(tmp_path / f"{name}.out.h5"), matrix(tmp_path / "c.h5")), name


def test_names_may_be_those_of_one_table_alone(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "old.csv").write_text("id,kind,a,b\nx,one,1,2\ny,two,3,4\nz,two,5,7\n")
    words = ["distances", tmp_path / "new.csv", tmp_path / "old.csv", "-o", tmp_path / "D.h5"]
    done = parallel_mix(*words, "--row-names", "id", "--labels", "kind")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "D.h5") as file:
        assert list(file["old/rows"].asstr()) == ["x", "y", "z"]
        assert "rows" not in file
    done = parallel_mix(*words, "--row-names", "id", "--labels", "kinf", "--force")
    assert done.returncode == 2
    assert "has no column 'kinf'" in done.stderr


def test_a_checkpoint_of_a_symmetric_run_is_not_taken_for_another(
    inputs: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(inputs)
    (inputs / "late.py").write_text(
        "from ours import taxi\ndef f(x, y):\n    return taxi(x, y) if x[0] < 1e9 else 1 / 0\n"
    )
    words = ["distances", "far.npy", "--metric", "late:f", "--checkpoint-every", "0", "--threads", "1"]
    far = X[:300].copy()
    far[-1, 0] = 2e9
    np.save(inputs / "far.npy", far)
    assert parallel_mix(*words, "--symmetric", "-o", tmp_path / "D.h5").returncode == 1
    assert (tmp_path / "D.h5.checkpoint").exists()
    done = parallel_mix(*words, "-o", tmp_path / "D.h5")
    assert done.returncode == 2
    assert "symmetric was True, is False" in done.stderr
