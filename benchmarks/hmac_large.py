"""HMAC on large data, with the density from a field or from leaves: speed, memory, exactness.

python benchmarks/hmac_large.py speed [NAME ...]    whole commands from HDF5 to a result, 20 levels, two cores; beside
                                                    them fast_hdbscan, where it is installed
python benchmarks/hmac_large.py exact [NAME ...]    2,000 random rows climbed by plain sums in double precision: do they
                                                    end where their labels say?
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import h5py
import numba
import numpy as np
from large_data import drawn

BIN = Path(sys.executable).parent
DATA = {
    "200k2": (200_000, 2),
    "1M2": (1_000_000, 2),
    "10M2": (10_000_000, 2),
    "1M1": (1_000_000, 1),
    "100k3": (100_000, 3),
    "1M3": (1_000_000, 3),
    "50k5": (50_000, 5),
    "200k5": (200_000, 5),
    "50k10": (50_000, 10),
    "50k17": (50_000, 17),
    "20k64": (20_000, 64),
}
HDBSCAN = """
import sys, time, h5py, numpy as np, fast_hdbscan
X = h5py.File(sys.argv[1])["X"][:]
fast_hdbscan.HDBSCAN(min_cluster_size=100).fit(X[:2000])
began = time.perf_counter()
fast_hdbscan.HDBSCAN(min_cluster_size=100).fit(X)
print(time.perf_counter() - began)
"""
STARTS = 2_000


def made(name: str, folder: Path) -> Path:
    """The file of the data set of this name."""
    path = folder / f"{name}.h5"
    with h5py.File(path, "w") as file:
        file["X"] = drawn(*DATA[name])
    return path


def run(path: Path, out: Path) -> float:
    """Seconds of the whole command."""
    words = [str(BIN / "parallel-mix"), "hmac", str(path), "-o", str(out), "--force", "--quiet", "--no-data"]
    began = time.perf_counter()
    subprocess.run(words, check=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    return time.perf_counter() - began


def speed(names: list[str], folder: Path) -> None:
    """Seconds and memory of each, the better of two runs."""
    print("| data | hmac, s | fast_hdbscan, s | memory of the largest process so far, MB |\n|---|---|---|---|")
    run(made("200k2", folder), folder / "out.h5")  # compiled code is there from here on
    for name in names:
        path = made(name, folder)
        ours = min(run(path, folder / "out.h5") for _ in range(2))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        others = "not installed"
        if find_spec("fast_hdbscan"):
            words = [sys.executable, "-c", HDBSCAN, str(path)]
            others = f"{float(subprocess.run(words, capture_output=True, check=True).stdout):.1f}"
        print(f"| {name} | {ours:.2f} | {others} | {memory:.0f} |", flush=True)
        path.unlink()


@numba.njit(parallel=True, cache=True)
def plain_ends(starts: np.ndarray, X: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where modal EM ends, in bandwidths: plain sums over rows that are sorted by their first column."""
    ends = starts.copy()
    d = X.shape[1]
    for row in numba.prange(len(ends)):
        x, step = ends[row].copy(), np.empty(d)
        for _ in range(100_000):
            low, high = np.searchsorted(order, x[0] - 9.0), np.searchsorted(order, x[0] + 9.0)
            total = 0.0
            step[:] = 0.0
            for i in range(low, high):
                squares = 0.0
                for k in range(d):
                    squares += (X[i, k] - x[k]) ** 2
                if squares < 81.0:
                    p = np.exp(-0.5 * squares)
                    total += p
                    for k in range(d):
                        step[k] += p * (X[i, k] - x[k])
            length = 0.0
            for k in range(d):
                step[k] /= total
                x[k] += step[k]
                length += step[k] ** 2
            if length < 1e-16:
                break
        ends[row] = x
    return ends


def exact(names: list[str], folder: Path) -> None:
    """Random rows climbed by plain sums at three bandwidths, all levels from the rows."""
    print("| data | level | modes | rows climbed | end elsewhere | not listed | rows listed |\n" + "|---" * 7 + "|")
    for name in names:
        path, out = made(name, folder), folder / "out.h5"
        words = [str(BIN / "parallel-mix"), "hmac", str(path), "-o", str(out), "--force", "--quiet", "--no-data"]
        subprocess.run([*words, "--flat", "--levels", "3", "--range", "0.1,0.5"], check=True)
        with h5py.File(path) as file:
            X = file["X"][:]
        X = X[np.argsort(X[:, 0], kind="stable")]
        with h5py.File(path) as file:
            some = np.sort(np.random.default_rng(1).choice(len(X), STARTS, replace=False))
            starts = file["X"][some]
        with h5py.File(out) as file:
            for level in range(3):
                group = file[f"hmac/levels/{level:03d}"]
                sigma, modes = float(group.attrs["bandwidth"]), group["modes"][:]
                labels, listed = file["hmac/labels"][level][some], set(group["boundary"][:])
                ends = plain_ends(starts / sigma, X / sigma, np.ascontiguousarray(X[:, 0] / sigma))
                gaps = np.linalg.norm(ends - modes[labels] / sigma, axis=1)
                other = np.flatnonzero(gaps > 1e-2)
                unlisted = [k for k in other if some[k] not in listed]
                figures = (name, level, len(modes), STARTS, len(other), len(unlisted), len(listed))
                print("| " + " | ".join(map(str, figures)) + " |", flush=True)
        path.unlink()


def main() -> None:
    """Run what is asked for."""
    what, *names = sys.argv[1:] or ["speed"]
    with tempfile.TemporaryDirectory() as folder:
        {"speed": speed, "exact": exact}[what](names or [*DATA], Path(folder))


if __name__ == "__main__":
    main()
