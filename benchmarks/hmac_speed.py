"""Speed of HMAC, everything side by side in one go: against the prototype, BLAS, one rank, and the clock.

python benchmarks/hmac_speed.py [prototype rates ranks start memory ...]      prints tables in Markdown
"""

from __future__ import annotations

import inspect
import json
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

from parallel_mix.backends.base import Backend, Kernel, Recipe
from parallel_mix.backends.threads import one_blas_thread
from parallel_mix.kernels.density import kernel_sums as density
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacSettings

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "bench"
BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def best(action: Callable[[], Any], times: int = 5) -> float:
    """Shortest of several times."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def workloads(folder: Path) -> Path:
    """W1 to W4 of the workload generator beside the project."""
    if not SHARED.exists():
        sys.exit("The workloads and the prototype are not here (../shared/bench).")
    code = (SHARED / "workloads.py").read_text().split("# W5")[0]
    subprocess.run(
        [sys.executable, "-c", code], env={**ENVIRONMENT, "OUT": str(folder)}, check=True, stdout=subprocess.PIPE
    )
    return folder


class Timed(Backend):
    """Runs kernels at once in this thread and adds up their time."""

    name, size = "timed", 1

    def share(self, recipe: Recipe) -> None:
        self.context, self.in_kernels = recipe.load(), 0.0

    def _begin(self, kernel: Kernel) -> None:
        self.kernel, self.results = kernel, []

    def _submit(self, index: int, task: Any) -> bool:
        began = time.perf_counter()
        self.results.append((index, self.kernel(self.context, task)))
        self.in_kernels += time.perf_counter() - began
        return True

    def _wait(self) -> list[tuple[int, Any]]:
        results, self.results = self.results, []
        return results


OURS = """
import sys, time
import numpy as np
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacSettings
from parallel_mix.models.core.sources import HeldRows
X, times = np.load(sys.argv[1])["X"], []
for _ in range(3):
    began = time.perf_counter()
    with SerialBackend(int(sys.argv[2])) as backend:
        result = fit_hmac(HeldRows(X), HmacSettings(), backend)
    times.append(time.perf_counter() - began)
np.save(sys.argv[3], result.labels)
print(f"{min(times):.4f} s")
"""


def prototype(folder: Path) -> None:
    """Ours against the plain prototype, each in a process of its own, taking turns; best of three of best of three."""

    def seconds(*words: str) -> float:
        done = subprocess.run([sys.executable, *words], env=ENVIRONMENT, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-2])

    cores = str(os.cpu_count() or 1)
    print(f"| workload | prototype, s | ours on {cores} cores, s | ratio | ours on 1 core, s |")
    print("|---|---|---|---|---|")
    for name in ("W1", "W2", "W3s", "W4s", "W4"):
        path, plain, ours, one = str(folder / f"{name}.npz"), [], [], []
        for _ in range(3):
            plain.append(seconds(str(SHARED / "prototype_hmac.py"), path))
            ours.append(seconds("-c", OURS, path, cores, str(folder / "labels.npy")))
            one.append(seconds("-c", OURS, path, "1", str(folder / "labels.npy")))
        shape = np.load(path)["X"].shape
        ratio = min(plain) / min(ours)
        print(
            f"| {name} {shape[0]:,} x {shape[1]} | {min(plain):.2f} | {min(ours):.2f} | {ratio:.2f} | {min(one):.2f} |",
            flush=True,
        )


def rates(folder: Path) -> None:
    """Pair evaluations a second of a step, against the two products and the exp alone."""
    limits = one_blas_thread()
    print("| d | block | BLAS and exp alone, M pairs/s | a step of ours, M pairs/s | share |\n|---|---|---|---|---|")
    r = np.random.default_rng(0)
    for d in (2, 17, 64):
        for m, n in ((64, 2048), (128, 2048), (256, 4096)):
            X, Y = r.normal(size=(n, d)), r.normal(size=(m, d))
            kernels = density.scale_kernels(X, np.full(n, -np.log(n)), 1.0)
            offset = np.full(m, -np.log(n) - d / 2)
            width = density.PAIRS_AT_ONCE // m
            G, E = np.empty((m, min(n, width))), -np.abs(r.normal(size=(m, min(n, width)))) * 20

            def bare(X: np.ndarray = X, Y: np.ndarray = Y, G: np.ndarray = G, E: np.ndarray = E, n: int = n) -> None:
                for a in range(0, n, len(G[0])):
                    np.matmul(Y, X[a : a + len(G[0])].T, out=G)
                    np.exp(E, out=G)
                    G @ X[a : a + len(G[0])]

            full, step = [], []
            for _ in range(15):  # taking turns
                full.append(best(bare, 3))
                step.append(best(lambda Y=Y, o=offset, k=kernels: density.kernel_sums(Y, o, k), 3))
            a, b = m * n / min(full) / 1e6, m * n / min(step) / 1e6
            print(f"| {d} | {m} x {n} | {a:.0f} | {b:.0f} | {b / a:.0%} |")
    limits.restore_original_limits()


def run_seconds(command: list[str], out: Path) -> float:
    """What the run record says a run took, from its first word to its result."""
    subprocess.run([*command, "-o", str(out), "--force", "--quiet"], env=ENVIRONMENT, check=True)
    with h5py.File(out) as file:
        return float(file["run"].attrs["seconds"])


IN_KERNELS = """
import sys, time
from parallel_mix.backends import threads
from parallel_mix.cli import main
seconds, run_task = [], threads.run_task
def timed(*words):
    began = time.thread_time()
    result = run_task(*words)
    seconds.append(time.thread_time() - began)
    return result
threads.run_task = timed
try:
    main(sys.argv[2:])
finally:
    open(sys.argv[1], "w").write(str(sum(seconds)))
"""


def ranks(folder: Path) -> None:
    """W4 on one and two ranks, both approaches, beside the serial backend and the kernels alone.

    The framework's share is what of one rank's run its compute thread did not spend in kernels (CPU time of that run).
    """
    with np.load(folder / "W4.npz") as data, h5py.File(folder / "W4.h5", "w") as file:
        X = file["X"] = data["X"]
    program, mpirun = str(BIN / "parallel-mix"), [str(BIN / "mpirun"), "-n"]
    print("| approach | kernels alone, s | serial, 1 thread | 1 rank | 2 ranks | 2 against 1 | framework's share |")
    print("|---|---|---|---|---|---|---|")
    for approach in (2, 1):
        common = ["hmac", str(folder / "W4.h5"), "--approach", str(approach)]
        measured: dict[str, list[float]] = {"kernels": [], "serial": [], "1": [], "2": [], "share": []}
        for _ in range(3):
            limits = one_blas_thread()
            timed = Timed()
            fit_hmac(HeldRows(X), HmacSettings(approach=approach), timed)
            limits.restore_original_limits()
            measured["kernels"].append(timed.in_kernels)
            measured["serial"].append(run_seconds([program, *common, "--threads", "1"], folder / "o.h5"))
            for count in ("1", "2"):
                measured[count].append(run_seconds([*mpirun, count, program, *common], folder / "o.h5"))
            watched = [*mpirun, "1", sys.executable, "-c", IN_KERNELS, str(folder / "kernels"), *common]
            seconds = run_seconds(watched, folder / "o.h5")
            measured["share"].append(1 - float((folder / "kernels").read_text()) / seconds)
        low = {key: min(value) for key, value in measured.items()}
        low["share"] = float(np.median(measured["share"]))
        print(
            f"| {approach} | {low['kernels']:.2f} | {low['serial']:.2f} | {low['1']:.2f} | {low['2']:.2f} | "
            f"{low['1'] / low['2']:.2f} | {low['share']:.1%} |"
        )


def start(folder: Path) -> None:
    """From the command to its end on a table so small that nothing but starting takes time."""
    np.savetxt(folder / "tiny.csv", np.random.default_rng(0).normal(size=(20, 2)), delimiter=",")
    program = str(BIN / "parallel-mix")
    tiny = [
        program,
        "hmac",
        str(folder / "tiny.csv"),
        "-o",
        str(folder / "t.h5"),
        "--force",
        "--quiet",
        "--levels",
        "2",
    ]
    timing = (
        "import time; t = time.perf_counter(); from parallel_mix.backends.mpi_launch import import_mpi; import mpi4py; "
        "t = time.perf_counter(); import_mpi(); print(time.perf_counter() - t)"
    )
    run = lambda words: subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True)  # noqa: E731
    mpirun = [str(BIN / "mpirun"), "--oversubscribe", "-n"]
    print("| what | s |\n|---|---|")
    print(f"| `parallel-mix --help` | {best(lambda: run([program, '--help'])):.2f} |")
    print(f"| `parallel-mix hmac --help` | {best(lambda: run([program, 'hmac', '--help'])):.2f} |")
    print(f"| a whole run on 20 rows, serially | {best(lambda: run(tiny)):.2f} |")
    for count in ("1", "2"):
        seconds = min(
            max(float(line) for line in run([*mpirun, count, sys.executable, "-c", timing]).stdout.split())
            for _ in range(5)
        )
        print(f"| MPI_Init, {count} rank{'s' if count != '1' else ''} on one host | {seconds:.2f} |")
    print(f"| `mpirun -n 2 true` | {best(lambda: run([*mpirun, '2', 'true'])):.2f} |")
    print(f"| the same run on 20 rows, `mpirun -n 2` | {best(lambda: run([*mpirun, '2', *tiny])):.2f} |")


MEMORY = """
import resource, sys
from pathlib import Path
from functools import partial
import numpy as np
from parallel_mix.backends.mpi import MpiBackend
from parallel_mix.kernels.density.kernel_sums import add_sums
from parallel_mix.models.hmac.climbing import kernel_blocks, sums_of_block
from parallel_mix.models.hmac.points import Frame, PointsRecipe
from parallel_mix.store.hdf5_tables import StoredRows
backend = MpiBackend()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n, d = 1_000_000, 40
if backend.rank:
    backend.serve()
else:
    source = StoredRows.of(Path(sys.argv[1]), "X", None, (n, d))
    backend.share(PointsRecipe(source, Frame(np.zeros(d), np.ones(d), 1.0)))
    points = {"at": np.zeros((8, d)), "log_density": np.full(8, -20.0), "coarse": np.zeros(8, dtype=bool)}
    kernel = partial(sums_of_block, sigma=5.0, **points)
    backend.map_reduce(kernel, kernel_blocks(n), add_sums)
    backend.close()
if backend.rank == backend.ranks - 1:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def memory(folder: Path) -> None:
    """What the last rank of Approach I comes to hold of a table of a million rows and 40 columns (305 MiB)."""
    with h5py.File(folder / "big.h5", "w") as file:
        data = file.create_dataset("X", (1_000_000, 40), dtype="f4")
        for a in range(0, 1_000_000, 100_000):
            data[a : a + 100_000] = np.random.default_rng(a).normal(size=(100_000, 40))
    print("| ranks | memory of the last rank over its start, MiB |\n|---|---|")
    for count in ("1", "2", "4", "8"):
        words = [
            str(BIN / "mpirun"),
            "--oversubscribe",
            "-n",
            count,
            sys.executable,
            "-c",
            MEMORY,
            str(folder / "big.h5"),
        ]
        done = subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        print(f"| {count} | {float(done.stdout):.0f} |")


def main() -> None:
    """Run what is asked for, or all."""
    parts = {"prototype": prototype, "rates": rates, "ranks": ranks, "start": start, "memory": memory}
    asked = sys.argv[1:] or list(parts)
    with tempfile.TemporaryDirectory() as name:
        folder = workloads(Path(name))
        print(json.dumps({"cores": os.cpu_count(), "numpy": np.__version__}))
        for part in asked:
            print(f"\n### {part}\n\n{inspect.getdoc(parts[part])}\n")
            parts[part](folder)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
