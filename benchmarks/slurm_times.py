"""On a private SLURM: from sbatch to the first ascent, and from the signal of the time limit to the checkpoint.

python benchmarks/slurm_times.py      (root and SLURM needed)
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.slurm.cluster import Cluster, running_cluster, why_not


def status(folder: Path) -> dict[str, object]:
    """What the run says."""
    path = folder / "o.h5.progress.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def seconds_until(condition: Callable[[], object]) -> float:
    """Time until it holds."""
    began = time.monotonic()
    while not condition():
        time.sleep(0.01)
    return time.monotonic() - began


def trial(cluster: Cluster, folder: Path, table: Path) -> tuple[float, float]:
    """Seconds to the first ascent, and from the signal to the state `stopped`."""
    folder.mkdir()
    words = ["--nodes", 2, "--ntasks-per-node", 1, "--max-requeue", 0, "--", "hmac", table, "-o", "o.h5"]
    (job,) = cluster.submit(folder, *words)
    first = seconds_until(lambda: "level" in str(status(folder).get("message")))
    time.sleep(8.0)
    cluster.run("scancel", "--batch", "-s", "USR1", job)
    stop = seconds_until(lambda: status(folder).get("state") == "stopped")
    cluster.wait_done(job, folder)
    return first, stop


def main() -> None:
    """Five times."""
    if reason := why_not():
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slurm").mkdir()
        r = np.random.default_rng(0)
        np.save(folder / "t.npy", r.normal(size=(200_000, 2)) + r.integers(0, 8, (200_000, 1)))
        with running_cluster(folder / "slurm", folder) as cluster:
            trials = [trial(cluster, folder / f"run{k}", folder / "t.npy") for k in range(5)]
    print("200,000 x 2, two nodes with a rank each, five times, lowest and highest:\n")
    print("| what | s |\n|---|---|")
    for text, times in zip(
        ("sbatch to the first ascent", "signal to checkpoint"), zip(*trials, strict=True), strict=True
    ):
        print(f"| {text} | {min(times):.1f} to {max(times):.1f} |")


if __name__ == "__main__":
    main()
