"""`parallel-mix crossval`: the same everywhere, gone on with after a kill, sentences for bad input."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.evaluate.tables import FORMATS
from tests.conftest import assert_same_result, blobs, environment, parallel_mix
from tests.processes import program

X = blobs(160, 4, 6)
Y = np.array(["red", "green", "blue"])[np.arange(160) % 3]
X[Y == "red"] += 2.0
X[Y == "blue", 0] -= 3.0
SMALL = ["--partitions", "3", "--folds", "3"]
SMALLER = ["--partitions", "2", "--folds", "2"]
OWN = """
from sklearn.base import BaseEstimator, ClassifierMixin

class Moody(ClassifierMixin, BaseEstimator):
    def __init__(self, mood="good"):
        self.mood = mood

    def fit(self, X, y):
        if len(y) % 2 and self.mood == "bad":
            raise RuntimeError("not today")
        self.y = y
        return self

    def predict(self, X):
        return [self.y[0]] * len(X) if self.mood != "strange" else ["?"] * len(X)

class Nothing:
    pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crossval")
    D = cdist(X, X)
    np.savez(path / "D.npz", distances=D, y=Y)
    with h5py.File(path / "D.h5", "w") as file:
        file["distances"], file["y"] = D, list(map(str, Y))
    np.savez(path / "S.npz", S=np.exp(-D), y=Y)
    np.savez(path / "V.npz", X=X, y=Y)
    rows = [",".join(["note", "party", *(f"v{k}" for k in range(3))])]
    votes = np.where(np.median(X, axis=0) < X, "y", np.where(X.min(axis=0) + 1.0 < X, "n", "?"))
    rows += [",".join([f"r{k}", Y[k], *votes[k, :3]]) for k in range(len(Y))]
    (path / "votes.csv").write_text("\n".join(rows) + "\n")
    np.savez(path / "one.npz", distances=D, y=np.zeros(160))
    np.savez(path / "none.npz", distances=D)
    np.savez(path / "few.npz", distances=D[:3, :3], y=Y[:3])
    np.savez(path / "minus.npz", distances=-D, y=Y)
    np.savez(path / "rare.npz", distances=D, y=np.where(np.arange(160) == 7, "rare", Y))
    np.savez(path / "some.npz", distances=D, y=np.where(np.arange(160) < 5, "", Y))
    (path / "mine.py").write_text(OWN)
    (path / "grid.toml").write_text('[knn]\nn_neighbors = [1, 3]\n["mine:Moody"]\nmood = ["good", "bad"]\n')
    (path / "odd.toml").write_text("[knn]\nneighbours = [1, 3]\n")
    (path / "zero.toml").write_text("[knn]\nn_neighbors = [0, 1]\n")
    (path / "other.toml").write_text("[svm-clip]\nC = [1.0]\n")
    return path


KINDS = {
    "distances": ["D.h5", "--classifiers", "knn,hlm-vsh,hlm-kernel,svm-clip"],
    "similarities": [
        "S.npz",
        "--kind",
        "similarities",
        "--classifiers",
        "knn,kri-knn,hlm-agg",
        "--from-similarity",
        "bound",
    ],
    "categories": [
        "votes.csv",
        "--metric",
        "vdm",
        "--labels",
        "party",
        "--drop",
        "note",
        "--classifiers",
        "knn,svm-clip",
    ],
    "vectors": ["V.npz", "--classifiers", "knn-vectors,sklearn.tree:DecisionTreeClassifier", "--stratified"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_everywhere(folder: Path, tmp_path: Path, kind: str) -> None:
    name, *words = KINDS[kind]
    for backend in ("serial1", "serial2", "mpi3", "dask2", *(["mpi1"] if kind == "distances" else [])):
        out = tmp_path / f"{backend}.h5"
        done = parallel_mix("crossval", folder / name, "-o", out, *words, *SMALLER, backend=backend)
        assert done.returncode == 0, done.stderr
        assert_same_result(tmp_path / "serial1.h5", out)
    assert "classifier" in parallel_mix("info", out).stdout
    for form in FORMATS:
        done = parallel_mix("table", out, "--format", form)
        assert done.returncode == 0, done.stderr
        assert "nothing is marked: with fewer than 5 partitions" in done.stdout


def test_what_is_in_a_result(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "R.h5"
    done = parallel_mix("crossval", folder / "D.h5", "-o", out, "--classifiers", "knn,hlm-kernel", *SMALL)
    assert done.returncode == 0, done.stderr
    with h5py.File(out) as file:
        tests, y = file["crossval/tests"][:], file["crossval/y"][:]
        assert tests.shape == (3, 32)
        for key in ("000", "001"):
            group = file[f"crossval/methods/{key}"]
            wrong = (group["predicted"][:] != y[tests]).mean(axis=1)
            np.testing.assert_allclose(group["errors"][:], wrong)
        group = file["crossval/methods/000"]
        assert group["inner"].shape == (3, 3, 19)
        np.testing.assert_array_equal(group["chosen"][:], np.round(group["inner"][:].mean(axis=1), 12).argmin(axis=1))


@pytest.mark.parametrize("backend", ["serial2", "mpi2", "own-dask2"])
def test_a_classifier_that_fails_is_told_and_the_others_finish(folder: Path, tmp_path: Path, backend: str) -> None:
    out, more = tmp_path / "R.h5", {"PYTHONPATH": str(folder)}
    (tmp_path / "bad.toml").write_text('["mine:Moody"]\nmood = ["bad", "strange"]\n[svm-linear]\nC = [1.0]\n')
    words = ["crossval", folder / "V.npz", "-o", out, "--classifiers", "mine:Moody,svm-linear", *SMALL]
    done = parallel_mix(*words, "--grid", tmp_path / "bad.toml", backend=backend, **more)
    assert done.returncode == 1, done.stderr
    number = re.search(r"--only-task (\d+)", done.stderr)
    assert number, done.stderr
    assert re.search("RuntimeError: not today|ValueError: predict\\(\\) returned", done.stderr)
    with h5py.File(out) as file:
        assert np.isfinite(file["crossval/methods/001/errors"][:]).all()
        assert np.isnan(file["crossval/methods/000/errors"][:]).all()
    again = parallel_mix(*words, "--grid", tmp_path / "bad.toml", "--only-task", number[1], **more)
    assert again.returncode == 1
    assert re.search("not today|which is no class", again.stderr)
    done = parallel_mix(*words[:4], "--classifiers", "mine:Moody,knn-vectors", *SMALL, "--force", **more)
    assert done.returncode == 0, done.stderr


def test_which_rows_have_a_class_is_in_the_checkpoint(tmp_path: Path) -> None:
    rows, y = blobs(900, 6, 9), np.arange(450) % 4
    nothing = np.full(450, -1.0) * np.nan
    np.savez(tmp_path / "D.npz", distances=cdist(rows, rows), y=np.r_[y, nothing], other=np.r_[nothing, y])
    words = ["crossval", tmp_path / "D.npz", "-o", tmp_path / "R.h5", "--classifiers", "svm-features-rbf,sda"]
    command = [*program(), *words, "--checkpoint-every", "0"]
    process = subprocess.Popen(list(map(str, command)), env=environment(), stderr=subprocess.DEVNULL)
    while not (tmp_path / "R.h5.checkpoint").exists() and process.poll() is None:
        time.sleep(0.002)
    process.terminate()
    process.wait()
    done = parallel_mix(*words, "--labels", "other")
    assert done.returncode == 2
    assert "belongs to another run: the classes differ" in done.stderr


def test_the_pictures_of_a_result(folder: Path, tmp_path: Path) -> None:
    words = ["--classifiers", "knn,hlm-kernel,svm-features-rbf", *SMALL]
    assert parallel_mix("crossval", folder / "D.h5", "-o", tmp_path / "R.h5", *words).returncode == 0
    done = parallel_mix("plot", tmp_path / "R.h5", "-o", tmp_path / "figures", "--format", "png")
    assert done.returncode == 0, done.stderr
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    confusions = {f"confusion-{name}.png" for name in ("knn", "hlm-kernel", "svm-features-rbf")}
    assert pictures == {"errors.png", "settings.png", "times.png", "efficiency.png"} | confusions


def test_a_papers_table_again(tmp_path: Path) -> None:
    r = np.random.default_rng(0)
    points = blobs(60, 3, 3, seed=2)
    (tmp_path / "data").mkdir()
    S = np.exp(-cdist(points, points))
    np.savez(tmp_path / "data" / "voting.npz", S=S, y=r.integers(0, 2, 60))
    listed = parallel_mix("paper", "--list", "--data", tmp_path / "data")
    assert "protein (not there)" in listed.stdout
    words = ["paper", "sda-table-2", "--data", tmp_path / "data", "-o", tmp_path / "out", "--folds", "2"]
    assert parallel_mix(*words, "--partitions", "2", "--dry-run").returncode == 0
    assert not (tmp_path / "out").exists()
    done = parallel_mix(*words, "--partitions", "2", backend="mpi2")
    assert done.returncode == 0, done.stderr
    assert "| k-NN | voting |" in done.stdout
    assert (tmp_path / "out" / "sda-table-2.md").read_text() == done.stdout
    again = parallel_mix(*words, "--partitions", "2")
    assert "is there already" in again.stderr
    assert again.stdout == done.stdout
    other = parallel_mix(*words, "--partitions", "1")
    assert other.stdout != done.stdout
    for bad, sentence in ((["paper"], "are needed; --list"), (["paper", "x", *words[2:]], "There is no table 'x'")):
        refused = parallel_mix(*bad)
        assert refused.returncode == 2
        assert sentence in refused.stderr
    empty = parallel_mix("paper", "sda-table-2", "--data", tmp_path, "-o", tmp_path / "o")
    assert "has none of the table's data" in empty.stderr


BAD = {
    "no neighbour": (
        ["D.h5", "--classifiers", "knn", "--grid", "zero.toml"],
        "n_neighbors must be a whole number, at least 1",
    ),
    "no such classifier": (["D.h5", "--classifiers", "knnn"], "no classifier 'knnn'.* Perhaps knn?"),
    "no module": (["D.h5", "--classifiers", "nowhere:Class"], "cannot be imported"),
    "no class": (["D.h5", "--classifiers", "mine:Other"], "has no class 'Other'"),
    "no classifier": (["V.npz", "--classifiers", "mine:Nothing"], "is no scikit-learn classifier"),
    "unknown parameter": (
        ["D.h5", "--classifiers", "knn", "--grid", "odd.toml"],
        "has no parameter 'neighbours'.*n_neighbors",
    ),
    "grid of another": (["D.h5", "--classifiers", "knn", "--grid", "other.toml"], "none of the classifiers asked for"),
    "no grid": (["D.h5", "--classifiers", "knn", "--grid", "none.toml"], "cannot be read"),
    "one class": (["one.npz", "--classifiers", "knn"], "All rows are of one class"),
    "no classes": (["none.npz", "--classifiers", "knn"], "has no array 'y'"),
    "few rows": (["few.npz", "--classifiers", "knn"], "10 folds of 2 training rows"),
    "negative": (["minus.npz", "--classifiers", "knn"], "distances are not negative"),
    "vectors for distances": (["V.npz", "--classifiers", "hlm-vsh"], "takes distances, and the input holds vectors"),
    "distances for vectors": (["D.h5", "--classifiers", "svm-rbf"], "takes vectors, and the input holds distances"),
    "no conversion": (["S.npz", "--kind", "similarities", "--classifiers", "hlm-vsh"], "--from-similarity bound"),
    "conversion of nothing": (["D.h5", "--classifiers", "knn", "--from-similarity", "bound"], "is for similarities"),
    "distances as similarities": (["D.h5", "--kind", "similarities", "--classifiers", "knn"], "these are distances"),
    "columns of a matrix": (["D.h5", "--classifiers", "knn", "--columns", "a"], "--columns is for a table"),
    "symmetric vectors": (["V.npz", "--classifiers", "svm-rbf", "--symmetrize"], "--symmetrize is for a matrix"),
    "test share": (["D.h5", "--classifiers", "knn", "--test", "1.5"], "between 0 and 1"),
    "one fold": (["D.h5", "--classifiers", "knn", "--folds", "1"], "2 folds or more"),
    "no task": (["D.h5", "--classifiers", "knn", "--only-task", "999"], "There is no task 999"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_wish_is_a_sentence(folder: Path, tmp_path: Path, case: str) -> None:
    (name, *words), sentence = BAD[case]
    words = [str(folder / word) if word.endswith(".toml") else word for word in words]
    out = tmp_path / "R.h5"
    done = parallel_mix("crossval", folder / name, *words, "-o", out, PYTHONPATH=str(folder))
    assert done.returncode == 2, done.stderr
    assert re.search(sentence, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_classes_that_are_rare_or_not_known(folder: Path, tmp_path: Path) -> None:
    words = ["--classifiers", "knn,svm-clip,hlm-vsh", "--partitions", "5", "--folds", "3"]
    done = parallel_mix("crossval", folder / "rare.npz", "-o", tmp_path / "R.h5", *words)
    assert done.returncode == 0, done.stderr
    assert "class 'rare' has 1 row, fewer than there are folds" in done.stderr
    done = parallel_mix("crossval", folder / "some.npz", "-o", tmp_path / "K.h5", *words)
    assert "5 rows without a class are left out" in done.stderr
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "K.h5") as file:
        assert len(file["crossval/y"]) == 155


def test_distances_that_know_the_classes_of_test_rows_are_told(folder: Path, tmp_path: Path) -> None:
    """The value difference metric of all rows is too good: what is said, and what learns within the training parts."""
    words = ["--labels", "party", "--drop", "note"]
    made = parallel_mix("distances", folder / "votes.csv", "-o", tmp_path / "D.h5", "--metric", "vdm", *words)
    assert made.returncode == 0, made.stderr
    leaking = ["crossval", tmp_path / "D.h5", "-o", tmp_path / "R.h5", "--classifiers", "knn", *SMALL]
    done = parallel_mix(*leaking)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("was made by vdm from the classes of all rows, test rows too") == 1
    done = parallel_mix("hlm", "fit", tmp_path / "D.h5", "-o", tmp_path / "M.h5", "--select", "1..2", "--folds", "3")
    assert done.stderr.count("was made by vdm from the classes of all rows") == 1, done.stderr
    honest = [
        "crossval",
        folder / "votes.csv",
        "-o",
        tmp_path / "H.h5",
        "--metric",
        "vdm",
        *words,
        "--classifiers",
        "knn",
    ]
    done = parallel_mix(*honest, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "made by vdm" not in done.stderr
    for bad, sentence in (
        ([*honest, "--kind", "vectors"], "leave out --kind"),
        ([*honest, "--symmetrize"], "is for a matrix"),
        ([*leaking, "--drop", "2"], "--drop is for a table"),
    ):
        done = parallel_mix(*bad, "--force")
        assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
