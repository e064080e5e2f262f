"""The dissertation's Figure 5.2: running time of both approaches against the number of ranks.

    python benchmarks/figure_5_2.py      W1 (its ship data: 2,000 x 17) and W2 (its images: 1,400 x 64)

Up to as many ranks as there are cores are measured as such; more are drawn hollow: they share cores.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
from hmac_speed import BIN, run_seconds, workloads
from matplotlib.figure import Figure

RANKS = (1, 2, 4)
COLOURS = {1: "#D55E00", 2: "#0072B2"}


def main() -> None:
    """Measure, print a table, draw."""
    cores = os.cpu_count() or 1
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    print(
        "| workload | approach | " + " | ".join(f"{k} ranks, s" for k in RANKS) + " |\n|---|---|" + "---|" * len(RANKS)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = workloads(Path(name))
        for axes, workload in zip(panels, ("W1", "W2"), strict=True):
            with np.load(folder / f"{workload}.npz") as data, h5py.File(folder / f"{workload}.h5", "w") as file:
                X = file["X"] = data["X"]
            for approach in (1, 2):
                program = [
                    str(BIN / "parallel-mix"),
                    "hmac",
                    str(folder / f"{workload}.h5"),
                    "--approach",
                    str(approach),
                ]
                more = {k: ["--oversubscribe"] if k > cores else [] for k in RANKS}  # else each rank has its core
                words = {k: [str(BIN / "mpirun"), *more[k], "-n", str(k), *program] for k in RANKS}
                seconds = [min(run_seconds(words[k], folder / "o.h5") for _ in range(5)) for k in RANKS]
                print(f"| {workload} | {approach} | " + " | ".join(f"{s:.2f}" for s in seconds) + " |")
                own = [k for k in RANKS if k <= cores]
                axes.plot(RANKS, seconds, color=COLOURS[approach], linewidth=1, linestyle=":")
                axes.plot(own, seconds[: len(own)], color=COLOURS[approach], marker="o", label=f"approach {approach}")
                axes.plot(
                    RANKS[len(own) :],
                    seconds[len(own) :],
                    color=COLOURS[approach],
                    marker="o",
                    fillstyle="none",
                    linestyle="",
                )
            axes.set_title(f"{workload}: {X.shape[0]:,} x {X.shape[1]}, 20 levels")
            axes.set_xlabel(f"ranks (hollow: more than the {cores} cores)")
            axes.set_ylabel("seconds, from reading to result")
            axes.set_xticks(RANKS)
            axes.set_ylim(0)
            axes.legend(frameon=False)
    out = Path(__file__).parent / "figure-5-2.png"
    figure.savefig(out, dpi=120)
    print(f"\n{out.name} drawn")


if __name__ == "__main__":
    main()
