"""Kill a run of some twenty seconds at a random moment, resume it, compare: thirty times.

python benchmarks/kills.py hmac|distances|cluster|crossval [how often]
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.conftest import BIN, assert_same_result, blobs, environment, launcher, signatures

BACKENDS = ("serial2", "mpi2", "mpi3", "dask2")
LEVELS = ["--levels", "8", "--range", "0.08,0.8"]
RUNS = {  # rows of the table and words of the command, for some twenty seconds on two cores
    "hmac": [(30_000, ["hmac", *LEVELS, "--approach", "1"]), (68_000, ["hmac", *LEVELS, "--approach", "2"])],
    "distances": [
        (12_000, ["distances", "--metric", "minkowski", "--p", "3"]),
        (3_500, ["distances", "--metric", "mallows"]),
    ],
    "cluster": [
        (4_000, ["cluster", "--clusters", "40,80", "--restarts", "150"]),
        (4_000, ["hlm fit", "--select", "8,16,32", "--restarts", "30"]),
    ],
    "crossval": [
        (1_500, ["crossval", "--classifiers", "svm-features-rbf,sda", "--partitions", "2", "--folds", "5"]),
        (900, ["crossval", "--classifiers", "knn,hlm-vsh,sda-bayesian,svm-clip", "--partitions", "10"]),
    ],
}


def command(table: Path, out: Path, words: list[str], backend: str) -> list[str]:
    before, after = launcher(backend)
    name, more = words[0].split(), words[1:]
    return [*before, str(BIN / "parallel-mix"), *name, str(table), "-o", str(out), "--quiet", *more, *after]


def run(words: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(words, env=environment(), check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def processes_of(out: Path) -> list[int]:
    """Every process that names this output."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(out).encode() in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids


def killed(words: list[str], out: Path, backend: str, moment: float, which: str, r: random.Random) -> None:
    """Start a run, and kill one of its processes or all after so many seconds."""
    with subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True) as process:
        time.sleep(moment)
        targets = processes_of(out)
        for pid in [r.choice(targets)] if which == "one" and targets else targets:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        for pid in processes_of(out) if backend.startswith("dask") else []:
            os.kill(pid, signal.SIGKILL)
        process.wait(timeout=60)


def main() -> None:
    """Prints a table row a kill, and a summary."""
    runs = RUNS[sys.argv[1]]
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    r = random.Random(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables, whole, seconds = [], [], []
        for k, (n, words) in enumerate(runs):
            tables.append(folder / f"t{k}.h5")
            whole.append(folder / f"whole{k}.h5")
            with h5py.File(tables[k], "w") as file:
                if "mallows" in words:
                    S = signatures(n, 3, 1)
                    file["values"], file["weights"], file["offsets"] = S.values, S.weights, S.offsets
                elif words[0] in ("cluster", "hlm fit", "crossval"):
                    X = blobs(n, 8, 12, 5)
                    file["distances"], file["y"] = cdist(X, X).astype(np.float32), np.arange(n) % 5
                else:
                    file["X"] = blobs(n, 8, 12, 5)
            seconds.append(run(command(tables[k], whole[k], words, "serial2")))
            print(f"`{' '.join(words)}` on {n:,}, uninterrupted on 2 processes: {seconds[k]:.1f} s")
        print("\n| run | killed | what died | after, s | resumed on | work reused | done |")
        print("|---|---|---|---|---|---|---|")
        shares = []
        for trial in range(times):
            k, first, second = r.choice((0, 1, 1)), r.choice(BACKENDS), r.choice(BACKENDS)
            out, words = folder / f"run{trial}.h5", runs[k][1]
            moment, which = r.uniform(1.0, 0.97 * seconds[k]), r.choice(("one", "all"))
            killed(command(tables[k], out, words, first), out, first, moment, which, r)
            early = out.exists()
            if not early:
                run(command(tables[k], out, words, second))
            assert_same_result(whole[k], out)
            with h5py.File(out) as file:
                record = dict(file["run"].attrs)
            shares.append(float(record["reused"]))
            state = json.loads((folder / f"{out.name}.progress.json").read_text())
            print(
                f"| {k + 1} | {first} | {which} | {moment:.1f} | {'(was done)' if early else second} | "
                f"{shares[-1]:,.0f} {record['unit']} | {'yes' if state['state'] == 'done' else state['state']} |",
                flush=True,
            )
            out.unlink()
        used = sum(share > 0 for share in shares)
        print(f"\n{times} kills, {times} identical results, work reused in {used}; numpy {np.__version__}.")


if __name__ == "__main__":
    main()
