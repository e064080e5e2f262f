"""Speed of clustering and of HLM over distances.

python benchmarks/clusters_speed.py [vsh few ranks hlm]      prints tables in Markdown; vsh needs `pip install kmedoids`
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
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.medoids.table_substitution import substitute_by_table, table_of
from parallel_mix.kernels.medoids.vertex_substitution import steps_of, substitute_by_search
from parallel_mix.models.clusters.groups import random_starts
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm.fit import fit_hlm
from parallel_mix.models.hlm.model import KERNEL, HlmSettings

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
COUNTS = (*range(1, 11), 12, 14, 16)


def points(n: int, d: int, k: int, seed: int = 0) -> np.ndarray:
    """A few clusters."""
    r = np.random.default_rng(seed)
    return r.normal(0, 3, (k, d))[r.integers(0, k, n)] + r.normal(size=(n, d))


def vsh(folder: Path) -> None:
    """10,000 x 10,000 float32, k = 100, five starts, one thread; kmedoids.fasterpam from the same starts."""
    import kmedoids

    X = points(10_000, 16, 40)
    D = cdist(X, X).astype(np.float32)
    w = np.ones(len(D))
    steps = steps_of(w, float(D.max()))
    rows: list[list[float]] = []
    substitute_by_search(D[:200, :200].copy(), w[:200], np.arange(3)[None], steps)
    for seed in range(5):
        start = np.random.default_rng(seed).choice(len(D), 100, replace=False)
        medoids, began = start.copy(), time.perf_counter()
        loss = substitute_by_search(D, w, medoids[None], steps)[0] / steps
        middle = time.perf_counter()
        theirs = kmedoids.fasterpam(D, start.astype(np.uint64), random_state=seed)
        rows.append([middle - began, loss, time.perf_counter() - middle, float(theirs.loss)])
    print("| start | ours, s | loss | kmedoids, s | loss |\n|---|---|---|---|---|")
    for seed, row in enumerate(rows):
        print(f"| {seed} | {row[0]:.2f} | {row[1]:,.1f} | {row[2]:.2f} | {row[3]:,.1f} |")
    mean = np.mean(rows, axis=0)
    print(f"| mean | {mean[0]:.2f} | {mean[1]:,.1f} | {mean[2]:.2f} | {mean[3]:,.1f} |")


def few(folder: Path) -> None:
    """Starts of few points, 20 a call, microseconds each: by looking for those that change, and at all of them."""
    X, random = points(3_090, 12, 30), np.random.default_rng(0)
    print("| points, medoids | those that change | all |\n|---|---|---|")
    for n, k in ((25, 4), (50, 6), (124, 10), (247, 20), (900, 20)):
        took = np.zeros(2)
        for draw in range(42 if n < 500 else 5):
            Y, w = X[random.choice(len(X), n, replace=False)], np.ones(n)
            D = cdist(Y, Y)
            steps, starts = steps_of(w, D.max()), random_starts(n, k, [draw], 0, 20)
            one, other, began = starts.copy(), starts.copy(), time.perf_counter()
            substitute_by_search(D, w, one, steps)
            middle = time.perf_counter()
            substitute_by_table(table_of(D, w, steps), other)
            took += (draw > 1) * np.array([middle - began, time.perf_counter() - middle])  # the first two: compiling
            assert (one == other).all()
        took *= 1e6 / 20 / (draw - 1)
        print(f"| {n}, {k} | {took[0]:.1f} | {took[1]:.1f} |")


def seconds(words: list[Any], count: str, out: Path) -> float:
    """From the first row read to the result, on so many ranks."""
    command = [BIN / "mpirun", "-n", count, BIN / "parallel-mix", *words, "-o", out, "--force", "--quiet"]
    subprocess.run(list(map(str, command)), env=ENVIRONMENT, check=True)
    with h5py.File(out) as result:
        return float(result["run"].attrs["seconds"])


def ranks(folder: Path) -> None:
    """20 restarts of k = 100 on 10,000 rows, float32, from a file, on one and two ranks."""
    X = points(10_000, 16, 40)
    with h5py.File(folder / "D.h5", "w") as file:
        file["distances"] = cdist(X, X).astype(np.float32)
    words = ["cluster", folder / "D.h5", "--clusters", "100"]
    shortest = {count: min(seconds(words, count, folder / "C.h5") for _ in range(2)) for count in ("1", "2")}
    print("| ranks | s | 2 against 1 |\n|---|---|---|")
    print(f"| 1 | {shortest['1']:.2f} | |\n| 2 | {shortest['2']:.2f} | {shortest['1'] / shortest['2']:.2f} |")


def hlm(folder: Path) -> None:
    """3,090 rows of 10 classes: selection of 13 counts by 10 folds, 20 restarts; and Kernel HLM."""
    X, y = points(3_090, 12, 30), np.arange(3_090) % 10
    X += 0.7 * np.random.default_rng(1).normal(size=(10, 12))[y]
    D = cdist(X, X)
    with h5py.File(folder / "D.h5", "w") as file:
        file["distances"], file["y"] = D, y
    words = ["hlm", "fit", folder / "D.h5", "--select", ",".join(map(str, COUNTS))]
    took = {count: seconds(words, count, folder / "m.h5") for count in ("2", "1")}
    print("| what | s |\n|---|---|")
    print(f"| selection, 1 rank | {took['1']:.1f} |\n| selection, 2 ranks | {took['2']:.1f} |")
    train, test = np.arange(len(y)) % 5 != 0, np.arange(len(y)) % 5 == 0
    inner, outer = D[np.ix_(train, train)], D[np.ix_(test, train)]
    times = []
    with SerialBackend(1) as backend:
        for _ in range(5):
            began = time.perf_counter()
            model = fit_hlm(HeldMatrix(inner), y[train], HlmSettings((KERNEL,)), backend).model
            middle = time.perf_counter()
            model.posteriors(outer[:, model.centroids])
            times.append((middle - began, time.perf_counter() - middle))
    fit, predict = np.min(times, axis=0)
    print(
        f"| Kernel HLM, fit of 2,472 rows, one thread | {fit:.3f} |\n| prediction of 618, one thread | {predict:.3f} |"
    )


def main() -> None:
    """Run what is asked for, or all."""
    parts = {"vsh": vsh, "few": few, "ranks": ranks, "hlm": hlm}
    for part in sys.argv[1:] or list(parts):
        print(f"\n### {part}\n\n{inspect.getdoc(parts[part])}\n")
        with tempfile.TemporaryDirectory() as name:
            parts[part](Path(name))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
