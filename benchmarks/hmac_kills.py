"""Kill a run of some twenty seconds at a random moment, resume it, compare: thirty times.

python benchmarks/hmac_kills.py [how often]
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.conftest import BIN, assert_same_result, blobs, environment, launcher

BACKENDS = ("serial2", "mpi2", "mpi3", "dask2")
ROWS = {1: 30_000, 2: 68_000}  # runs of some twenty seconds on two cores


def command(folder: Path, out: Path, approach: int, backend: str) -> list[str]:
    before, after = launcher(backend)
    words = [
        "hmac",
        str(folder / f"t{approach}.h5"),
        "-o",
        str(out),
        "--approach",
        str(approach),
        "--levels",
        "8",
        "--quiet",
    ]
    return [*before, str(BIN / "parallel-mix"), *words, "--range", "0.08,0.8", *after]


def run(words: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(words, env=environment(), check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def processes_of(out: Path) -> list[int]:
    """Every process that names this output."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if str(out).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def main() -> None:
    """Prints a table row a kill, and a summary."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    r = random.Random(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for approach, n in ROWS.items():
            with h5py.File(folder / f"t{approach}.h5", "w") as file:
                file["X"] = blobs(n, 8, 12, 5)
        whole, seconds = {}, {}
        for approach in (1, 2):
            whole[approach] = folder / f"whole{approach}.h5"
            seconds[approach] = run(command(folder, whole[approach], approach, "serial2"))
        print(f"uninterrupted on 2 processes: {seconds[1]:.1f} s (approach 1), {seconds[2]:.1f} s (approach 2)\n")
        print("| approach | killed | what died | after, s | resumed on | work reused | done |")
        print("|---|---|---|---|---|---|---|")
        shares = []
        for trial in range(times):
            approach, first, second = r.choice((1, 2, 2)), r.choice(BACKENDS), r.choice(BACKENDS)
            out = folder / f"run{trial}.h5"
            moment = r.uniform(1.0, 0.97 * seconds[approach])
            with subprocess.Popen(
                command(folder, out, approach, first),
                env=environment(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:
                time.sleep(moment)
                died = r.choice(("one", "all"))
                targets = processes_of(out)
                for pid in [r.choice(targets)] if died == "one" and targets else targets:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.5)
                for pid in processes_of(out) if first.startswith("dask") else []:
                    os.kill(pid, signal.SIGKILL)
                process.wait(timeout=60)
            early = out.exists()
            if not early:
                run(command(folder, out, approach, second))
            assert_same_result(whole[approach], out)
            with h5py.File(out) as file:
                reused, rows = float(file["run"].attrs["reused"]), file["hmac/labels"].shape[1]
            shares.append(reused)
            state = json.loads((folder / f"{out.name}.progress.json").read_text())
            print(
                f"| {approach} | {first} | {died} | {moment:.1f} | {'(was done)' if early else second} | "
                f"{reused:,.0f} ascents | {'yes' if state['state'] == 'done' else state['state']} |",
                flush=True,
            )
            assert rows == ROWS[approach]
        used = sum(share > 0 for share in shares)
        print(f"\n{times} kills, {times} identical results, work reused in {used}; numpy {np.__version__}.")


if __name__ == "__main__":
    main()
