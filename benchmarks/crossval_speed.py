"""Speed of cross-validation.

python benchmarks/crossval_speed.py [mirex overhead ranks search]      prints tables in Markdown
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from clusters_speed import points
from scipy.spatial.distance import cdist

from parallel_mix import Protocol, crossval
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.evaluate.data import RowsData, RowsRecipe, similarities_of
from parallel_mix.evaluate.fold_tasks import predictions
from parallel_mix.evaluate.methods import known_methods
from parallel_mix.evaluate.partitions import WHOLE, partition_of

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PAPER = {"knn": 0.95, "hlm-kernel": 4.4, "hlm-vsh": 661.3, "sda": 1406.9, "svm-features-rbf": 13216.8}


def mirex_size() -> tuple[np.ndarray, np.ndarray]:
    """3,090 rows of 10 classes that overlap as much as the paper's Mirex data."""
    X, y = points(3_090, 12, 30), np.arange(3_090) % 10
    X += 0.7 * np.random.default_rng(1).normal(size=(10, 12))[y]
    return cdist(X, X), y


def run(folder: Path, words: list[str], ranks: int, out: str = "R.h5") -> float:
    """Seconds of a run on so many ranks, from the first row read to the result."""
    command = [BIN / "mpirun", "-n", ranks, BIN / "parallel-mix", "crossval", *words, "-o", folder / out]
    subprocess.run([str(word) for word in [*command, "--force", "--fresh", "--quiet"]], env=ENVIRONMENT, check=True)
    with h5py.File(folder / out) as file:
        return float(file["run"].attrs["seconds"])


def mirex(folder: Path) -> None:
    """3,090 x 3,090, 10 classes, one partition, 10 folds, full grids, 2 ranks; beside the paper's Table 4."""
    D, y = mirex_size()
    with h5py.File(folder / "D.h5", "w") as file:
        file["distances"], file["y"] = D, y
    words = [str(folder / "D.h5"), "--partitions", "1"]
    print("| classifier | s | paper, s | times faster | error, % |\n|---|---|---|---|---|")
    for name, theirs in PAPER.items():
        took = min(run(folder, [*words, "--classifiers", name], 2) for _ in range(3 if theirs < 100 else 1))
        with h5py.File(folder / "R.h5") as file:
            error = 100 * float(file["crossval/methods/000/errors"][0])
            inner = float(file["run/seconds/000"][0])
        times = f"{took:.2f} (fits alone, added up: {inner:.2f})"
        print(f"| {name} | {times} | {theirs} | {theirs / took:.1f} | {error:.1f} |", flush=True)
    with SerialBackend(2) as backend:  # without the file, its digest, and the loading of compiled code
        for name in ("knn", "hlm-kernel"):
            times = []
            for _ in range(8):
                began = time.perf_counter()
                crossval([name], D, y, Protocol(partitions=1), backend)
                times.append(time.perf_counter() - began)
            took = min(times[1:])
            print(f"| {name}, in memory, again | {took:.3f} | {PAPER[name]} | {PAPER[name] / took:.1f} | |")
    took = run(folder, [*words, "--classifiers", ",".join(PAPER)], 2)
    print(f"| all together | {took:.1f} | {sum(PAPER.values()):.0f} | {sum(PAPER.values()) / took:.0f} | |")


def overhead(folder: Path) -> None:
    """600 rows, 3 partitions: the harness on one process against its own fits in a bare loop, best of three."""
    X, y = points(600, 8, 12), np.arange(600) % 4
    D, protocol = cdist(X, X), Protocol(partitions=3)
    names = ["knn", "svm-clip", "hlm-vsh", "sda", "svm-features-rbf"]

    def harness() -> None:
        with SerialBackend(1) as backend:
            crossval(names, D, y, protocol, backend)

    def bare() -> None:
        rows = RowsData(RowsRecipe(D, "distances", y, tuple(range(int(y.max()) + 1))))
        for p in range(protocol.partitions):
            partition = partition_of(y, protocol, p)
            for name in names:
                method, means = known_methods()[name], 0.0
                for fold in range(protocol.folds):
                    train, test = partition.rows(fold)
                    wrong = np.empty(len(method.settings))
                    for which, told in predictions(rows, method, method.settings, train, test):
                        wrong[which] = (told != y[test]).mean(axis=1)
                    means = means + wrong
                train, test = partition.rows(WHOLE)
                list(predictions(rows, method, [method.settings[int(np.argmin(means))]], train, test))

    times: dict[str, list[float]] = {"bare": [], "harness": []}
    for _ in range(3):
        for name, work in (("bare", bare), ("harness", harness)):
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    loop, whole = min(times["bare"]), min(times["harness"])
    print("| bare loop, s | harness, s | overhead |\n|---|---|---|")
    print(f"| {loop:.2f} | {whole:.2f} | {whole / loop - 1:.1%} |")


def ranks(folder: Path) -> None:
    """Six classifiers, 600 rows, 20 partitions, on one and two ranks."""
    X, y = points(600, 8, 12), np.arange(600) % 4
    with h5py.File(folder / "D.h5", "w") as file:
        file["distances"], file["y"] = cdist(X, X), y
    words = [str(folder / "D.h5"), "--classifiers", "knn,sda,hlm-kernel,hlm-vsh,hlm-kernel-vsh,svm-clip"]
    shortest = {count: min(run(folder, words, count) for _ in range(2)) for count in (1, 2)}
    print("| ranks | s | 2 against 1 |\n|---|---|---|")
    print(f"| 1 | {shortest[1]:.2f} | |\n| 2 | {shortest[2]:.2f} | {shortest[1] / shortest[2]:.2f} |")


def search(folder: Path) -> None:
    """1,500 rows, 10 folds, two workers: GridSearchCV(n_jobs=2) on the same folds (the clipped kernel given to it)."""
    from sklearn.model_selection import GridSearchCV, PredefinedSplit
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    from parallel_mix.kernels.similarity.spectrum import definite

    X, y = points(1_500, 8, 12), np.arange(1_500) % 4
    D, protocol = cdist(X, X), Protocol(partitions=1)
    partition = partition_of(y, protocol, 0)
    train, _ = partition.rows(WHOLE)
    split = PredefinedSplit(partition.fold[train])
    S = definite(similarities_of(D), "clip")[0]  # definite already: ours clips it again in each fold
    inner, far = S[np.ix_(train, train)], D[np.ix_(train, train)]
    settings: dict[str, tuple[Any, dict[str, Any], np.ndarray]] = {
        "svm-clip": (SVC(kernel="precomputed"), {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}, inner),
        "knn": (KNeighborsClassifier(metric="precomputed"), {"n_neighbors": list(range(1, 17))}, far),
    }
    print("| classifier | GridSearchCV, s | ours, s | the same scores |\n|---|---|---|---|")
    for name, (estimator, grid, matrix) in settings.items():
        times: dict[str, float] = {}
        for _ in range(2):
            began = time.perf_counter()
            theirs = GridSearchCV(estimator, grid, cv=split, n_jobs=2, refit=True).fit(matrix, y[train])
            times["theirs"] = min(times.get("theirs", np.inf), time.perf_counter() - began)
            began = time.perf_counter()
            data, kind = (S, "similarities") if name == "svm-clip" else (D, "distances")
            with SerialBackend(2) as backend:
                ours = crossval([(name, grid)], data, y, protocol, backend, kind=kind)
            times["ours"] = min(times.get("ours", np.inf), time.perf_counter() - began)
        gap = np.abs(1 - theirs.cv_results_["mean_test_score"] - ours.marks[0].inner[0].mean(axis=0)).max()
        print(f"| {name} | {times['theirs']:.2f} | {times['ours']:.2f} | to {gap:.1g} |", flush=True)


def main() -> None:
    """Run what is asked for, or all."""
    parts = {"mirex": mirex, "overhead": overhead, "ranks": ranks, "search": search}
    for part in sys.argv[1:] or list(parts):
        print(f"\n### {part}\n\n{inspect.getdoc(parts[part])}\n")
        with tempfile.TemporaryDirectory() as name:
            parts[part](Path(name))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
