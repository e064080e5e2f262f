"""Speed of distance matrices, side by side with the libraries one would use instead.

python benchmarks/distances_speed.py [euclidean file mallows ranks memory]      prints tables in Markdown
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from parallel_mix import pairwise
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.metrics.signatures import Signatures

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PROGRAM = str(BIN / "parallel-mix")


def taking_turns(ways: dict[str, Callable[[], Any]], times: int = 4) -> dict[str, float]:
    """Shortest time of each, in turns."""
    measured: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, action in ways.items():
            began = time.perf_counter()
            action()
            measured[name].append(time.perf_counter() - began)
    return {name: min(seconds) for name, seconds in measured.items()}


def on(workers: int, *words: Any, **more: Any) -> np.ndarray:
    """`pairwise` on so many threads."""
    with SerialBackend(workers, forked=False) as backend:
        return np.asarray(pairwise(*words, **more, backend=backend))


def euclidean(folder: Path) -> None:
    """10,000 x 64 float64, all pairs, to an array in memory."""
    from scipy.spatial.distance import cdist, pdist
    from sklearn.metrics import pairwise_distances

    X = np.random.default_rng(0).normal(size=(10_000, 64))
    shortest = taking_turns(
        {
            "ours, 2 workers": lambda: on(2, X),
            "ours, 1 worker": lambda: on(1, X),
            "scikit-learn, n_jobs=2": lambda: pairwise_distances(X, n_jobs=2),
            "scipy pdist (half)": lambda: pdist(X),
            "scipy cdist": lambda: cdist(X, X),
        }
    )
    close = np.concatenate([X[:500], X[:500] + 1e-3 * X[500:1000]]) + 1e6 / 8
    exact = cdist(X[:1000], X[:1000]), cdist(close, close)
    worst = {
        "ours": [np.nanmax(np.abs(_over(pairwise(Z), D))) for Z, D in zip((X[:1000], close), exact, strict=True)],
        "scikit-learn": [
            np.nanmax(np.abs(_over(pairwise_distances(Z), D))) for Z, D in zip((X[:1000], close), exact, strict=True)
        ],
    }
    print("| way | s |\n|---|---|")
    for name, seconds in shortest.items():
        print(f"| {name} | {seconds:.2f} |")
    print("\n| largest relative error | these points | norm 1e6, pairs 1e-3 apart |\n|---|---|---|")
    for name, (plain, near) in worst.items():
        print(f"| {name} | {plain:.1e} | {near:.1e} |")


def _over(D: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(exact > 0, D / exact - 1.0, 0.0)


def file(folder: Path) -> None:
    """The same to HDF5, synced, beside plain sequential writes of as many bytes."""
    np.save(folder / "X.npy", np.random.default_rng(0).normal(size=(10_000, 64)))

    def ours() -> None:
        out = folder / "D.h5"
        out.unlink(missing_ok=True)
        subprocess.run([PROGRAM, "distances", str(folder / "X.npy"), "-o", str(out), "--quiet"], check=True)

    def plain() -> None:
        chunk = np.random.default_rng(0).bytes(2**23)
        with (folder / "plain").open("wb") as out:
            for _ in range(800_000_000 // 2**23 + 1):
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        (folder / "plain").unlink()

    shortest = taking_turns({"ours": ours, "plain": plain})
    with h5py.File(folder / "D.h5") as result:
        inside = float(result["run"].attrs["seconds"])
    print("| way | s | MB/s |\n|---|---|---|")
    print(f"| `distances`, 2 workers, the whole command | {shortest['ours']:.2f} | {800 / shortest['ours']:.0f} |")
    print(f"| of it from the first row read to the result | {inside:.2f} | {800 / inside:.0f} |")
    print(f"| sequential writes of 8 MiB, fsync | {shortest['plain']:.2f} | {800 / shortest['plain']:.0f} |")


def colours(n: int = 600) -> Signatures:
    """Signatures of 6 to 14 weighted points in R^3."""
    r = np.random.default_rng(0)
    lengths = r.integers(6, 15, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = r.normal(size=(offsets[-1], 3)) * r.uniform(0.5, 1.5, (offsets[-1], 1))
    weights = r.uniform(0.1, 1.0, offsets[-1])
    return Signatures(values, weights / np.repeat(np.add.reduceat(weights, offsets[:-1]), lengths), offsets)


def mallows(folder: Path) -> None:
    """600 signatures of 6 to 14 points in R^3, all pairs, in memory; numba's compiled code loaded beforehand."""
    import ot

    S = colours()
    on(2, S, metric="mallows")

    def loop() -> np.ndarray:
        D = np.zeros((len(S), len(S)))
        spans = [slice(a, b) for a, b in zip(S.offsets[:-1], S.offsets[1:], strict=True)]
        for i, a in enumerate(spans):
            for j, b in enumerate(spans[:i]):
                D[i, j] = D[j, i] = ot.emd2(S.weights[a], S.weights[b], ot.dist(S.values[a], S.values[b]))
        return np.sqrt(D)

    shortest = taking_turns({"2": lambda: on(2, S, metric="mallows"), "1": lambda: on(1, S, metric="mallows")}, 5)
    began = time.perf_counter()
    expected = loop()
    seconds = time.perf_counter() - began
    worst = np.abs(_over(on(2, S, metric="mallows"), expected)).max()
    print("| way | s |\n|---|---|")
    print(f"| ours, 2 workers | {shortest['2']:.2f} |\n| ours, 1 worker | {shortest['1']:.2f} |")
    print(f"| a loop over ot.emd2 | {seconds:.2f} |\n\nLargest relative difference from it: {worst:.1e}.")


def ranks(folder: Path) -> None:
    """Mallows, 2,000 signatures, to a file, on one and two ranks."""
    S = colours(2000)
    with h5py.File(folder / "S.h5", "w") as out:
        out["values"], out["weights"], out["offsets"] = S.values, S.weights, S.offsets

    def run(count: str) -> float:
        words = [
            str(BIN / "mpirun"),
            "-n",
            count,
            PROGRAM,
            "distances",
            str(folder / "S.h5"),
            "-o",
            str(folder / "M.h5"),
        ]
        subprocess.run([*words, "--metric", "mallows", "--force", "--quiet"], env=ENVIRONMENT, check=True)
        with h5py.File(folder / "M.h5") as result:
            return float(result["run"].attrs["seconds"])

    seconds = {count: min(run(count) for _ in range(3)) for count in ("1", "2")}
    print("| ranks | s | 2 against 1 |\n|---|---|---|")
    print(f"| 1 | {seconds['1']:.2f} | |\n| 2 | {seconds['2']:.2f} | {seconds['1'] / seconds['2']:.2f} |")


LIMITED = """
import resource, sys
import parallel_mix.runs.job, parallel_mix.families.distances.job, numpy
numpy.ones((500, 500)) @ numpy.ones((500, 500))
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + 2**30, pages + 2**30))
from parallel_mix.cli import main
main(sys.argv[1:])
"""


def memory(folder: Path) -> None:
    """40,000 x 40,000 float32 (6.4 GB) in processes limited to 1 GiB of address space beyond start-up."""
    np.save(folder / "X.npy", np.random.default_rng(0).normal(size=(40_000, 8)))
    words = ["distances", str(folder / "X.npy"), "-o", str(folder / "D.h5"), "--single", "--quiet", "--force"]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", LIMITED, *words], check=True)
    seconds = time.perf_counter() - began
    with h5py.File(folder / "D.h5") as result:
        D = result["distances"]
        X = np.load(folder / "X.npy")
        error = np.abs(D[-5:] - np.linalg.norm(X[-5:, None] - X, axis=2)).max()
    print(f"{(folder / 'D.h5').stat().st_size / 1e9:.1f} GB written in {seconds:.1f} s; last rows off by {error:.1e}.")


def main() -> None:
    """Run what is asked for, or all."""
    parts = {"euclidean": euclidean, "file": file, "mallows": mallows, "ranks": ranks, "memory": memory}
    for part in sys.argv[1:] or list(parts):
        print(f"\n### {part}\n\n{inspect.getdoc(parts[part])}\n")
        with tempfile.TemporaryDirectory() as name:
            parts[part](Path(name))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
