"""`parallel-mix hlm fit` and `predict` with its model: the same everywhere, sentences for bad input."""

from __future__ import annotations

import csv
import re
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.conftest import assert_same_result, blobs, environment, parallel_mix
from tests.processes import program

X = blobs(300, 4, 6)
Y = np.array(["red", "green", "blue"])[np.arange(300) % 3]
X[Y == "red"] += 2.0
X[Y == "blue", 0] -= 3.0
NEW = blobs(40, 4, 6, seed=1)
D = cdist(X, X)
MORE = ["--restarts", "100"]  # work enough to be handed out
KINDS = {
    "mixture": ["--components", "3", *MORE],
    "kernel": ["--kernel", *MORE],
    "selection": ["--select", "1..3,6,kernel", "--folds", "4", "--restarts", "3"],
    "grouped": ["--components", "5", "--shape", "grouped", "--groups", "2", "--clustering", "ward", *MORE],
    "class": ["--components", "2", "--shape", "class", "--clustering", "gkmeans", *MORE],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hlm")
    names = [f"row {k}" for k in range(300)]
    for name, rows, y in (("old", X, Y), ("new", NEW, None)):
        with h5py.File(path / f"{name}.h5", "w") as file:
            file["X"], file["rows"] = rows, names if y is not None else [f"new {k}" for k in range(40)]
            if y is not None:
                file["y"] = list(map(str, y))
    assert parallel_mix("distances", path / "old.h5", "-o", path / "D.h5").returncode == 0
    assert parallel_mix("distances", path / "new.h5", path / "old.h5", "-o", path / "N.h5").returncode == 0
    np.savez(path / "few.npz", distances=cdist(NEW, X[:7]), y=np.arange(40) % 2)
    np.savez(path / "one.npz", distances=D, y=np.zeros(300))
    np.savez(path / "some.npz", distances=D, y=np.where(np.arange(300) < 5, "", Y))
    np.savez(path / "none.npz", distances=D)
    np.savez(path / "skew.npz", distances=np.triu(D) + D, y=Y)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_everywhere(folder: Path, tmp_path: Path, kind: str) -> None:
    for backend in ("serial1", "serial2", "mpi3", "dask2", *(["mpi1"] if kind == "mixture" else [])):
        model = tmp_path / f"{backend}.h5"
        done = parallel_mix("hlm", "fit", folder / "D.h5", "-o", model, *KINDS[kind], backend=backend)
        assert done.returncode == 0, done.stderr
        assert_same_result(tmp_path / "serial1.h5", model)
    for backend in ("serial1", "mpi2", *(["dask2"] if kind == "mixture" else [])):
        out = tmp_path / f"{backend}.csv"
        done = parallel_mix("predict", model, folder / "N.h5", "-o", out, backend=backend)
        assert done.returncode == 0, done.stderr
        assert out.read_text() == (tmp_path / "serial1.csv").read_text()
    assert parallel_mix("info", tmp_path / "mpi3.h5").returncode == 0
    with (tmp_path / "mpi2.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == [f"new {k}" for k in range(40)]
    for row in rows:
        shares = {name: float(row[f"p({name})"]) for name in ("red", "green", "blue")}
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-8)
        assert shares[row["class"]] == max(shares.values())


def test_distances_to_the_centroids_alone(folder: Path, tmp_path: Path) -> None:
    assert parallel_mix("hlm", "fit", folder / "D.h5", "-o", tmp_path / "m.h5").returncode == 0
    assert parallel_mix("predict", tmp_path / "m.h5", folder / "N.h5", "-o", tmp_path / "all.csv").returncode == 0
    with h5py.File(tmp_path / "m.h5") as file:
        centroids = file["hlm/components/centroids"][:]
        assert list(file["hlm/components/names"].asstr()) == [f"row {k}" for k in centroids]
    np.savez(tmp_path / "c.npz", distances=cdist(NEW, X[centroids]))
    assert parallel_mix("predict", tmp_path / "m.h5", tmp_path / "c.npz", "-o", tmp_path / "few.csv").returncode == 0
    one, other = ((tmp_path / name).read_text().splitlines() for name in ("all.csv", "few.csv"))
    assert [line.split(",")[1:] for line in one] == [line.split(",")[1:] for line in other]


BAD = {
    "weights of kept rows": (["D.h5", "--keep", "--weights", "w"], "--keep knows no weights"),
    "seed": (["D.h5", "--seed", "-1"], "must be a whole number of 0 or more"),
    "skew for Ward": (["skew.npz", "--clustering", "ward"], "is not symmetric .* as Ward's method needs it"),
    "skew to keep": (["skew.npz", "--keep"], "is not symmetric .* as --keep needs it"),
    "two ways": (["D.h5", "--kernel", "--components", "3"], "are two ways to say one thing"),
    "no such number": (["D.h5", "--select", "1..x"], "takes numbers, ranges and `kernel`"),
    "backwards": (["D.h5", "--select", "5..2"], "takes numbers, ranges"),
    "one fold": (["D.h5", "--select", "1,2", "--folds", "1"], "must be 2 folds or more"),
    "scale of no kernel": (["D.h5", "--kernel-scale", "3"], "are for --kernel"),
    "no scale": (["D.h5", "--kernel", "--kernel-scale", "0"], "must be above 0"),
    "one class": (["one.npz"], "All rows are of one class"),
    "no classes": (["none.npz"], "has no array 'y'"),
    "not square": (["few.npz"], "40 x 7 entries: it is not square"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_wish_is_a_sentence(folder: Path, tmp_path: Path, case: str) -> None:
    (name, *words), sentence = BAD[case]
    done = parallel_mix("hlm", "fit", folder / name, *words, "-o", tmp_path / "m.h5")
    assert done.returncode == 2, done.stderr
    assert re.search(sentence, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_bad_new_distances_are_sentences(folder: Path, tmp_path: Path) -> None:
    done = parallel_mix("hlm", "fit", folder / "some.npz", "-o", tmp_path / "m.h5", "--components", "2")
    assert done.returncode == 0
    assert "5 rows without a class are left out" in done.stderr
    done = parallel_mix("predict", tmp_path / "m.h5", folder / "few.npz", "-o", tmp_path / "p.csv")
    assert done.returncode == 2
    assert "has distances to 7 rows" in done.stderr
    done = parallel_mix("predict", tmp_path / "m.h5", folder / "N.h5", "-o", tmp_path / "p.csv", "--level", "3")
    assert "is a classifier: it has no --level" in done.stderr
    with h5py.File(folder / "N.h5") as file, h5py.File(tmp_path / "N.h5", "w") as out:
        out["distances"] = file["distances"][:]
        out.create_group("old")["rows"] = [f"line {k}" for k in range(300)]
    assert parallel_mix("hlm", "fit", folder / "D.h5", "-o", tmp_path / "named.h5").returncode == 0
    done = parallel_mix("predict", tmp_path / "named.h5", tmp_path / "N.h5", "-o", tmp_path / "p.csv")
    assert done.returncode == 2
    assert "has no distances to 'row " in done.stderr


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Old rows, new rows, distances of the new ones to all."""
    path = tmp_path_factory.mktemp("batches")
    parts = {"old": slice(0, 180), "more": slice(180, 300), "all": slice(0, 300)}
    for name, part in parts.items():
        with h5py.File(path / f"{name}.h5", "w") as file:
            file["X"], file["rows"] = X[part], [f"row {k}" for k in range(300)[part]]
            file["y"] = list(map(str, np.where(np.arange(300) > 290, "violet", Y)[part]))
    for words in (["old.h5"], ["more.h5"], ["more.h5", "all.h5"], ["all.h5"]):
        out = path / f"D-{'-'.join(word.removesuffix('.h5') for word in words)}.h5"
        assert parallel_mix("distances", *[path / word for word in words], "-o", out).returncode == 0
    words = ["hlm", "fit", path / "D-old.h5", "-o", path / "model.h5", "--components", "3", "--keep"]
    words += ["--restarts", "1500"]  # an update is handed out, too
    assert parallel_mix(*words).returncode == 0
    return path


@pytest.mark.parametrize("scheme", ["1", "2", "2 weighted"])
def test_a_model_grows_alike_everywhere(batches: Path, tmp_path: Path, scheme: str) -> None:
    words = ["--scheme", scheme[0], *(["--no-reassign"] if "weighted" in scheme else []), "--components", "4"]
    more = batches / ("D-more.h5" if scheme == "1" else "D-more-all.h5")
    for backend in ("serial1", "serial2", "mpi2", "dask2"):
        out = tmp_path / f"{backend}.h5"
        done = parallel_mix("hlm", "update", batches / "model.h5", more, "-o", out, *words, backend=backend)
        assert done.returncode == 0, done.stderr
        assert ("scheme 1 keeps no rows" in done.stderr) == (scheme == "1")
        assert_same_result(tmp_path / "serial1.h5", out)
    assert parallel_mix("info", out).returncode == 0
    with h5py.File(out) as file:
        assert list(file["hlm/classes"].asstr()) == ["blue", "green", "red", "violet"]
        names = list(file["hlm/components/names"].asstr())
        assert any(int(name.split()[1]) >= 180 for name in names)
        np.testing.assert_allclose(file["hlm/prior"][:].sum(), 1.0)
    done = parallel_mix("predict", out, batches / "D-all.h5", "-o", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr


def test_a_model_grows_in_place_and_knows_its_batches(batches: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.h5"
    words = [
        "hlm",
        "fit",
        batches / "D-old.h5",
        "-o",
        model,
        "--select",
        "3",
        "--folds",
        "3",
        "--restarts",
        "2",
        "--keep",
    ]
    assert parallel_mix(*words).returncode == 0
    done = parallel_mix("hlm", "update", model, batches / "D-more-all.h5", "--scheme", "2")
    assert done.returncode == 0, done.stderr
    assert "before it saw them the model put" in done.stderr
    with h5py.File(model) as file:
        assert list(file["hlm/history/schemes"]) == [0, 2]
        assert list(file["hlm/history/rows"]) == [180, 300]
        assert (file["hlm/history/errors"][:] < 1).all()
        before = file["hlm/components/b"][:]
    again = parallel_mix("hlm", "update", model, batches / "D-more-all.h5", "--scheme", "2")
    assert again.returncode == 2
    assert "already, as its batch 1" in again.stderr
    twice = parallel_mix("hlm", "update", model, batches / "D-more.h5")
    assert twice.returncode == 2
    assert re.search(r"Row 'row 1\d\d' of .* \(120 of 120\) is in .* already", twice.stderr), twice.stderr
    with h5py.File(model) as file:
        np.testing.assert_array_equal(file["hlm/components/b"][:], before)
    assert parallel_mix("plot", model, "-o", tmp_path / "figures", "--format", "png").returncode == 0
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"history.png"}


def test_the_pictures_of_a_result(folder: Path, tmp_path: Path) -> None:
    words = ["hlm", "fit", folder / "D.h5", "-o", tmp_path / "m.h5", "--select", "2,4,kernel", "--folds", "3"]
    assert parallel_mix(*words).returncode == 0
    done = parallel_mix("plot", tmp_path / "m.h5", "-o", tmp_path / "figures", "--format", "png")
    assert done.returncode == 0, done.stderr
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert pictures == {"selection.png", "calibration.png", "map.png"}


def test_an_update_stopped_and_gone_on_with(tmp_path: Path) -> None:
    X, y = blobs(2000, 6, 9), np.arange(2000) % 5
    past, new = np.arange(600), np.arange(600, 2000)
    np.savez(tmp_path / "old.npz", distances=cdist(X[past], X[past]), y=y[past])
    np.savez(tmp_path / "more.npz", distances=cdist(X[new], X), y=y[new])
    words = ["hlm", "fit", tmp_path / "old.npz", "-o", tmp_path / "model.h5", "--keep", "--restarts", "1000"]
    assert parallel_mix(*words).returncode == 0
    words = ["hlm", "update", tmp_path / "model.h5", tmp_path / "more.npz", "--scheme", "2", "--components", "30"]
    assert parallel_mix(*words, "-o", tmp_path / "whole.h5").returncode == 0
    out = tmp_path / "out.h5"
    command = [*program(), *map(str, words), "-o", str(out), "--checkpoint-every", "0", "--threads", "1"]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
    kept, seen = out.with_name("out.h5.checkpoint"), set()
    while len(seen) < 2 and process.poll() is None:  # the first speaks of nothing done
        seen |= {kept.stat().st_mtime_ns} if kept.exists() else set()
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert not out.exists()
    done = parallel_mix(*words, "-o", out, backend="mpi2")
    assert done.returncode == 0, done.stderr
    assert "Going on from" in done.stderr
    assert_same_result(tmp_path / "whole.h5", out)


def test_an_update_says_what_it_needs(batches: Path, tmp_path: Path) -> None:
    model = batches / "model.h5"
    bare, kernel = tmp_path / "bare.h5", tmp_path / "kernel.h5"
    assert parallel_mix("hlm", "fit", batches / "D-old.h5", "-o", bare).returncode == 0
    assert parallel_mix("hlm", "fit", batches / "D-old.h5", "-o", kernel, "--kernel").returncode == 0
    (earlier := tmp_path / "earlier.h5").write_bytes(model.read_bytes())
    with h5py.File(earlier, "a") as file:
        del file.attrs["checksums"]
        del file["hlm/past/distances"]
        file["hlm/past/distances"] = np.zeros((180, 180))
    cases = [
        ([earlier, batches / "D-more-all.h5", "--scheme", "2"], "as an earlier version did: fit it anew with --keep"),
        (
            [model, batches / "D-more.h5", "--scheme", "2"],
            "needed are those of 120 new rows to the 180 rows|no distances to",
        ),
        (
            [bare, batches / "D-more-all.h5", "--scheme", "2"],
            r"keeps no rows, which scheme 2 needs: fit it with --keep \(scheme 1 drops them\)",
        ),
        ([kernel, batches / "D-more.h5"], "is Kernel HLM, whose components are all rows"),
        ([model, batches / "D-more.h5", "--scheme", "3"], "--scheme is 1 or 2, not 3"),
        ([model, batches / "D-more.h5", "--no-reassign"], "--no-reassign is for --scheme 2"),
    ]
    for words, sentence in cases:
        done = parallel_mix("hlm", "update", *words, "-o", tmp_path / "out.h5")
        assert done.returncode == 2, done.stderr
        assert re.search(sentence, done.stderr), done.stderr
        assert "Traceback" not in done.stderr
