"""`parallel-mix cluster`: the same on every backend, whole after any kill, sentences for bad input."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import h5py
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from parallel_mix.errors import Failure, InputError, TaskError
from parallel_mix.families.clusters import job as clusters_job
from parallel_mix.progress import Progress
from parallel_mix.runs.reader import InputReader
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Selection, read_table
from tests.conftest import assert_same_result, blobs, environment, launcher, parallel_mix
from tests.processes import program

X = blobs(700, 4, 6)
D = cdist(X, X)
KINDS = {
    "vsh": ["--clusters", "5", "--restarts", "6"],
    "several": ["--clusters", "4,8,12", "--restarts", "3", "--seed", "7"],
    "classes": ["--clusters", "3,300", "--by-class", "y", "--restarts", "4"],
    "gkmeans": ["--clusters", "4,8", "--method", "gkmeans"],
    "ward": ["--clusters", "4,8", "--method", "ward"],
    "weights": ["--clusters", "4", "--weights", "v"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cluster")
    with h5py.File(path / "D.h5", "w") as file:
        file["distances"], file["y"] = D, [f"class {k % 3}" for k in range(700)]
        file["rows"] = [f"row {k}" for k in range(700)]
        file["v"] = np.random.default_rng(0).integers(1, 4, 700).astype(float)
    skew = D.copy()
    skew[3, 9] += 1.0
    minus = D.copy()
    minus[4, 5] = -1.0
    some = np.array(["a", "b", ""])[np.arange(700) % 3]
    np.savez(path / "skew.npz", D=skew)
    np.savez(path / "minus.npz", D=minus)
    np.savez(path / "wide.npz", D=D[:5])
    np.savez(path / "zero.npz", D=np.zeros((5, 5)))
    np.savez(path / "large.npz", D=1e200 * (1.0 - np.eye(5)))
    np.savez(path / "nan.npz", D=np.full((5, 5), np.nan))
    np.savez(path / "some.npz", distances=D, y=some)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_everywhere(folder: Path, tmp_path: Path, kind: str) -> None:
    for backend in ("serial1", "serial2", "mpi3", "dask2", *(["mpi1"] if kind == "vsh" else [])):
        out = tmp_path / f"{backend}.h5"
        done = parallel_mix("cluster", folder / "D.h5", "-o", out, *KINDS[kind], backend=backend)
        assert done.returncode == 0, done.stderr
        assert_same_result(tmp_path / "serial1.h5", out)
    assert parallel_mix("info", tmp_path / "mpi3.h5").returncode == 0
    assert parallel_mix("export", tmp_path / "mpi3.h5", "-o", tmp_path / "l.csv").returncode == 0
    names = (tmp_path / "l.csv").read_text().splitlines()
    assert names[1].startswith("row 0,")


@pytest.mark.parametrize("backend", ["serial1", "serial2", "mpi1", "mpi3", "dask2"])
def test_a_matrix_spread_over_the_workers(folder: Path, tmp_path: Path, backend: str) -> None:
    words = ["cluster", folder / "D.h5", "--clusters", "4,7", "--restarts", "2", "--weights", "v"]
    assert parallel_mix(*words, "-o", tmp_path / "whole.h5").returncode == 0
    done = parallel_mix(*words, "-o", tmp_path / "spread.h5", "--shard", backend=backend)
    assert done.returncode == 0, done.stderr
    assert_same_result(tmp_path / "whole.h5", tmp_path / "spread.h5")
    skew = ["cluster", folder / "skew.npz", "--clusters", "3", "--restarts", "1", "--symmetrize"]
    assert parallel_mix(*skew, "-o", tmp_path / "s.h5").returncode == 0
    assert parallel_mix(*skew, "-o", tmp_path / "t.h5", "--shard", backend=backend).returncode == 0
    assert_same_result(tmp_path / "s.h5", tmp_path / "t.h5")


def test_what_is_in_a_result(folder: Path, tmp_path: Path) -> None:
    for kind in ("several", "classes"):
        done = parallel_mix("cluster", folder / "D.h5", "-o", tmp_path / f"{kind}.h5", *KINDS[kind])
        assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "several.h5") as file:
        for count in (4, 8, 12):
            group = file[f"cluster/{count:03d}"]
            labels, centroids = group["labels"][:], group["centroids"][:]
            assert len(centroids) == count
            assert np.array_equal(np.bincount(labels), group["sizes"])
            assert (np.diff(group["sizes"]) <= 0).all()
            assert group.attrs["loss"] == pytest.approx(D[np.arange(700), centroids[labels]].sum(), rel=1e-12)
            assert group.attrs["loss"] == pytest.approx(D[:, centroids].min(axis=1).sum(), rel=1e-12)
            assert np.array_equal(labels[centroids], np.arange(count))
    with h5py.File(tmp_path / "classes.h5") as file:
        for count, several in ((3, 9), (300, 700)):
            group = file[f"cluster/{count:03d}"]
            classes = group["classes"].asstr()[:]
            assert len(classes) == several
            assert all(classes[label] == f"class {k % 3}" for k, label in enumerate(group["labels"][:]))


def test_the_pictures_of_a_result(folder: Path, tmp_path: Path) -> None:
    words = ["cluster", folder / "D.h5", "-o", tmp_path / "C.h5", "--clusters", "3,5", "--restarts", "2"]
    assert parallel_mix(*words).returncode == 0
    done = parallel_mix("plot", tmp_path / "C.h5", "-o", tmp_path / "figures", "--format", "png")
    assert done.returncode == 0, done.stderr
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert pictures == {"losses.png", "map-003-clusters.png", "map-005-clusters.png"}


LONG = ["--clusters", "60,30", "--restarts", "150"]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of some seconds; its matrix lies beside it."""
    folder = tmp_path_factory.mktemp("long")
    rows = blobs(1800, 6, 9)
    with h5py.File(folder / "D.h5", "w") as file:
        file["distances"] = cdist(rows, rows).astype(np.float32)
    assert parallel_mix("cluster", folder / "D.h5", *LONG, "-o", folder / "whole.h5").returncode == 0
    return folder / "whole.h5"


CHANGED = ["--clusters", "9", "--restarts", "1500", "--checkpoint-every", "0"]


@pytest.fixture(scope="module")
def unchanged(folder: Path) -> Path:
    """What comes of a matrix that nobody changes."""
    whole = folder / "unchanged.h5"
    assert parallel_mix("cluster", folder / "D.h5", *CHANGED, "-o", whole).returncode == 0
    return whole


@pytest.mark.parametrize("backend, change", [("mpi2", "other"), ("serial1", "gone"), ("mpi2", "cut")])
def test_a_matrix_that_changes_meanwhile_spoils_nothing(
    folder: Path, unchanged: Path, tmp_path: Path, backend: str, change: str
) -> None:
    """It is not copied, so what is found may be of the one or the other: that is neither kept nor a result."""
    matrix, out = tmp_path / "D.h5", tmp_path / "C.h5"
    matrix.write_bytes((folder / "D.h5").read_bytes())
    was = matrix.stat()
    words = ["cluster", matrix, *CHANGED]
    before, after = launcher(backend)
    command = [*before, *program(), *map(str, words), "-o", str(out), *after]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    kept, seen = out.with_name("C.h5.checkpoint"), set()
    while len(seen) < 2:  # the first speaks of nothing done
        assert process.poll() is None, process.communicate()[1]
        seen |= {kept.stat().st_mtime_ns} if kept.exists() else set()
        time.sleep(0.002)
    if change == "gone":
        matrix.unlink()
    elif change == "cut":  # whoever touches what is gone would end without a word (SIGBUS)
        os.truncate(matrix, 5_000)
    else:
        with matrix.open("r+b") as file:
            file.seek(was.st_size // 2)
            file.write(bytes(was.st_size // 4))
    said = process.communicate(timeout=60)[1]
    assert ("D.h5 is gone" if change == "gone" else "D.h5 has changed since the run began") in said
    assert "Traceback" not in said
    assert process.returncode != 0
    assert not out.exists()
    matrix.write_bytes((folder / "D.h5").read_bytes())
    os.utime(matrix, ns=(was.st_atime_ns, was.st_mtime_ns))
    done = parallel_mix(*words, "-o", out)
    assert "Going on from" in done.stderr
    assert_same_result(unchanged, out, ("run", "data"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of more than one stripe, which all workers look at."""
    path = tmp_path_factory.mktemp("large") / "D.h5"
    Y = blobs(2_200, 3, 5)
    with h5py.File(path, "w") as file:
        file.create_dataset("plain", data=cdist(Y, Y).astype(np.float32))
        file.create_dataset("packed", data=file["plain"][()], chunks=(100, 100), compression="gzip")
        nan = file["plain"][()]
        nan[1_950, 7] = nan[2_100, 3] = np.nan
        file["nan"] = nan
    return path


def test_all_look_at_a_large_matrix(large: Path, tmp_path: Path) -> None:
    words = ["--clusters", "3", "--restarts", "2", "--dataset"]
    for backend, names in (("serial1", ["plain", "packed"]), ("mpi2", ["plain"]), ("dask2", ["plain"])):
        for name in names:
            out = tmp_path / f"{backend}-{name}.h5"
            done = parallel_mix("cluster", large, "-o", out, *words, name, backend=backend)
            assert done.returncode == 0, done.stderr
            assert_same_result(tmp_path / "serial1-plain.h5", out, ("run", "data"))
            with h5py.File(out) as one, h5py.File(tmp_path / "serial1-plain.h5") as other:
                assert one["data"].attrs["digest"] == other["data"].attrs["digest"]
        done = parallel_mix("cluster", large, "-o", tmp_path / "nan.h5", *words, "nan", backend=backend)
        assert re.search(r"row 1,?951\b", done.stderr), done.stderr


def test_a_worker_that_cannot_see_the_matrix_says_so(large: Path) -> None:
    def unseen(kernel: object, tasks: object) -> NoReturn:
        raise TaskError(
            Failure(1, "n2", "rank 3", "InputError: /nowhere/D.h5 does not exist", "Traceback", input_error=True)
        )

    backend = SimpleNamespace(share=lambda recipe: None, map=unseen, only_task=None)
    reader = InputReader(backend, Progress(quiet=True), Selection())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^rank 3 \(host n2\) cannot read the input; /nowhere/D.h5 does not exist\.$"):
        reader.look(StoredMatrix.of(large, "plain"), large)


@pytest.mark.parametrize("backend", ["serial2", "mpi2"])
def test_a_damaged_chunk_is_a_sentence(large: Path, tmp_path: Path, backend: str) -> None:
    damaged = tmp_path / "damaged.h5"
    damaged.write_bytes(large.read_bytes())
    with h5py.File(large) as file:
        chunk = file["packed"].id.get_chunk_info(300)
    with damaged.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(bytes(chunk.size))
    words = ["cluster", damaged, "-o", tmp_path / "C.h5", "--clusters", "3", "--dataset", "packed"]
    done = parallel_mix(*words, backend=backend)
    assert "damaged.h5 is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if not backend.startswith("mpi") else done.returncode) != 0


@pytest.mark.parametrize(
    "there, backend, method, in_shards",
    [
        (1e9, "mpi", "vsh", False),
        (6e6, "mpi", "vsh", False),
        (3e6, "mpi", "vsh", True),
        (6e6, "dask", "vsh", True),
        (6e6, "mpi", "ward", None),
    ],
)
def test_the_workers_of_a_host_share_a_plain_matrix(
    folder: Path, monkeypatch: pytest.MonkeyPatch, there: float, backend: str, method: str, in_shards: bool | None
) -> None:
    monkeypatch.setattr(clusters_job, "available_memory", lambda: there)
    monkeypatch.setattr(clusters_job, "available_cores", lambda: 2)
    job = object.__new__(clusters_job.ClustersJob)
    job.options = SimpleNamespace(method=method, clusters=[3], shard=False, symmetrize=False)
    job.job = SimpleNamespace(backend=SimpleNamespace(size=2, shares_memory=False, limits_memory=backend == "dask"))  # type: ignore[assignment]
    job.groups, job.table = None, read_table(folder / "D.h5", Selection("distances", kind="matrix"))
    if in_shards is None:
        with pytest.raises(InputError, match="use fewer workers, or vsh"):
            job.in_shards()
    else:
        assert job.in_shards() == in_shards


@pytest.mark.parametrize("change", ["weights", "classes", "shard"])
def test_what_decides_a_run_is_in_its_checkpoint(tmp_path: Path, change: str) -> None:
    rows, r = blobs(2000, 6, 9), np.random.default_rng(0)
    first = {"distances": cdist(rows, rows), "v": np.ones(2000), "y": np.arange(2000) % 2}
    other = first | {"v": r.uniform(0.5, 2.0, 2000), "y": r.integers(0, 2, 2000)}
    for name, data in (("first", first), ("other", other)):
        np.savez(tmp_path / f"{name}.npz", **data)
    more = {"weights": ["--weights", "v"], "classes": ["--by-class", "y"], "shard": []}[change]
    words = ["--clusters", "70", "--restarts", "301", "-o", tmp_path / "C.h5", *more]
    command = [*program(), "cluster", tmp_path / "first.npz", *words, "--checkpoint-every", "0"]
    process = subprocess.Popen(list(map(str, command)), env=environment(), stderr=subprocess.DEVNULL)
    kept = tmp_path / "C.h5.checkpoint"
    while not kept.exists() and process.poll() is None:
        time.sleep(0.002)
    process.terminate()
    process.wait()
    assert kept.exists()
    if change == "shard":  # is the same run another way
        done = parallel_mix("cluster", tmp_path / "first.npz", *words, "--shard", "--dry-run")
        assert done.returncode == 0, done.stderr
        return
    done = parallel_mix("cluster", tmp_path / "other.npz", *words)
    assert done.returncode == 2, done.stderr
    assert "belongs to another run" in done.stderr


BAD = {
    "too many": (["D.h5", "--clusters", "701"], "701 clusters of 700 points: there must be from 1 to 700"),
    "none": (["D.h5", "--clusters", "0"], "clusters"),
    "negative": (["minus.npz", "--clusters", "3"], "distance of rows 5 and 6 .* is -1: distances are not negative"),
    "NaN": (["nan.npz", "--clusters", "3"], "NaN or infinite"),
    "not square": (["wide.npz", "--clusters", "3"], "5 x 700 entries: it is not square"),
    "all equal": (["zero.npz", "--clusters", "3"], "All distances of .* are 0"),
    "far too large": (["large.npz", "--clusters", "3"], "squares of such are no numbers"),
    "not symmetric": (["skew.npz", "--clusters", "3", "--method", "ward"], "is not symmetric .*--symmetrize takes"),
    "no classes": (["skew.npz", "--clusters", "3", "--by-class", "kind"], "has no array 'kind'"),
    "unknown classes": (["some.npz", "--clusters", "3", "--by-class", "y"], "class of row 3 .* is not known"),
    "no weights": (["D.h5", "--clusters", "3", "--weights", "u"], "has no dataset 'u'"),
    "spread ward": (["D.h5", "--clusters", "3", "--method", "ward", "--shard"], "--shard is for vsh of all rows"),
    "method": (["D.h5", "--clusters", "3", "--method", "pam"], "method"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_wish_is_a_sentence(folder: Path, tmp_path: Path, case: str) -> None:
    (name, *words), sentence = BAD[case]
    done = parallel_mix("cluster", folder / name, *words, "-o", tmp_path / "C.h5")
    assert done.returncode == 2, done.stderr
    assert re.search(sentence, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_asymmetric_matrix_is_taken_as_it_is_or_halved(folder: Path, tmp_path: Path) -> None:
    done = parallel_mix("cluster", folder / "skew.npz", "-o", tmp_path / "a.h5", "--clusters", "3")
    assert "is not symmetric" in done.stderr
    done = parallel_mix("cluster", folder / "skew.npz", "-o", tmp_path / "b.h5", "--clusters", "3", "--symmetrize")
    assert "is not symmetric" not in done.stderr
    assert done.returncode == 0
