"""Tables 2 and 3 of the HLM paper on the data sets that are to be had: mean error and sd over 20 random partitions.

python benchmarks/hlm_tables.py FOLDER [names]      FOLDER has aural_sonar.npz, protein.npz, voting.npz, sonar.npz
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.hlm import KERNEL, HlmSettings, fit_hlm
from parallel_mix.models.squares import HeldSquare

COUNTS = (*range(1, 11), 12, 14, 16)
METHODS = {
    "HLM (vsh)": ("vsh", COUNTS),
    "HLM (gknn)": ("gkmeans", COUNTS),
    "HLM (agg)": ("ward", COUNTS),
    "Kernel HLM": ("vsh", (KERNEL,)),
    "HLM (kernel-vsh)": ("vsh", (*COUNTS, KERNEL)),
}
PAPER = {
    "aural_sonar": ["16.00 (5.39)", "14.50 (5.22)", "13.75 (6.30)", "13.75 (5.67)", "15.25 (4.60)"],
    "protein": ["23.49 (10.55)", "14.53 (12.59)", "15.00 (13.00)", "29.07 (7.52)", "24.42 (9.91)"],
    "voting": ["4.89 (2.12)", "6.95 (2.67)", "5.17 (2.37)", "6.09 (1.86)", "4.89 (2.12)"],
    "sonar": ["24.40 (4.69)", "31.43 (5.81)", "24.88 (6.18)", "23.81 (5.05)", "23.57 (5.42)"],
}
PARTITIONS = 20


def distances(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Distances and classes as METHODS.md takes them."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        y = np.unique(data["y"], return_inverse=True)[1]
        if name == "sonar":
            return cdist(data["X"], data["X"]), y
        S = data["S"]
        D = 1.0 / np.maximum(S, 1e-3) if name == "protein" else 1.0 - S
    np.fill_diagonal(D, 0.0)
    return D, y


def main() -> None:
    """A table a data set."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or list(PAPER):
        D, y = distances(folder, name)
        n = len(y)
        print(f"\n{name}, {n} rows\n\n| method | error, % | paper | s |\n|---|---|---|---|")
        for (method, (clustering, counts)), theirs in zip(METHODS.items(), PAPER[name], strict=True):
            found, began = [], time.perf_counter()
            for partition in range(PARTITIONS):
                order = np.random.default_rng([partition, n]).permutation(n)
                test, train = np.sort(order[: n // 5]), np.sort(order[n // 5 :])
                settings = HlmSettings(counts, clustering, seed=partition)
                with SerialBackend() as backend:
                    model = fit_hlm(HeldSquare(D[np.ix_(train, train)]), y[train], settings, backend).model
                guess = model.posteriors(D[np.ix_(test, train[model.centroids])]).argmax(axis=1)
                found.append(100.0 * np.mean(guess != y[test]))
            mean, sd = np.mean(found), np.std(found, ddof=1)
            print(f"| {method} | {mean:.2f} ({sd:.2f}) | {theirs} | {time.perf_counter() - began:.1f} |", flush=True)


if __name__ == "__main__":
    main()
