"""Figure 1 and Table 5 of the HLM paper: error and time of both incremental schemes and of retraining, round by round.

python benchmarks/hlm_incremental.py FOLDER      FOLDER has voting.npz and standin_corel1k_imagery.npz

The time is that of all rounds in a row, each from the new rows' distances (to all before them, and to each other) to
the next model, with what is kept for the round after it: of scheme I statistics, of scheme II the distances within
classes, of retraining the matrix of all rows. Errors are looked at afterwards.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm.fit import components_of_batch, fit_hlm
from parallel_mix.models.hlm.incremental import Past, joined_models, regrouped_model
from parallel_mix.models.hlm.model import HlmModel, HlmSettings

FIRST, MORE, SAMPLES = 4, 2, 4
COLOURS = ("#0072B2", "#E69F00", "#009E73")
PARTITIONS = 5


def voting(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Distances 1 - S."""
    with np.load(folder / "voting.npz", allow_pickle=False) as data:
        D, y = 1.0 - data["S"], np.unique(data["y"], return_inverse=True)[1]
    np.fill_diagonal(D, 0.0)
    return D, y


def imagery(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Euclidean distances of the stand-in's features."""
    with np.load(folder / "standin_corel1k_imagery.npz", allow_pickle=False) as data:
        X, y = data["X"].astype(float), np.unique(data["y"], return_inverse=True)[1]
    return cdist(X, X), y


def mirex_size(_: Path, times: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """As large as the paper's Mirex data, or some times: 3,090 rows of 10 classes, drawn at random."""
    r = np.random.default_rng(0)
    y = np.arange(3_090 * times) % 10
    X = (
        r.normal(0, 3, (30, 12))[r.integers(0, 30, len(y))]
        + r.normal(size=(len(y), 12))
        + 0.7 * r.normal(size=(10, 12))[y]
    )
    return cdist(X, X), y


SETS: dict[str, Callable[[Path], tuple[np.ndarray, np.ndarray]]] = {
    "voting": voting,
    "standin_corel1k_imagery": imagery,
    "Mirex size, at random": mirex_size,
    "twice Mirex size": partial(mirex_size, times=2),
}


def with_rows(D: np.ndarray, to_past: np.ndarray, among: np.ndarray) -> np.ndarray:
    """A matrix with new rows, and their columns."""
    n = len(D)
    grown = np.empty((n + len(among), n + len(among)))
    grown[:n, :n], grown[n:, :n], grown[:n, n:], grown[n:, n:] = D, to_past, to_past.T, among
    return grown


def one_partition(D: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors (3, 9) and seconds of scheme I, scheme II and retraining, over the rounds, and of growing its matrix."""
    n = len(y)
    order = np.random.default_rng([seed, n]).permutation(n)
    test, train = order[: n // 5], order[n // 5 :]
    cuts = [0, *(round(len(train) * share) for share in np.linspace(0.2, 1.0, 9))]
    batches = [train[a:b] for a, b in pairwise(cuts)]
    classes, errors, seconds = int(y.max()) + 1, np.empty((3, 9)), np.zeros(4)

    def settings(count: int) -> HlmSettings:
        return HlmSettings((count,), seed=seed)

    def cut(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return D[np.ix_(a, b)]

    def fitted(matrix: np.ndarray, rows: np.ndarray, count: int) -> HlmModel:
        return fit_hlm(HeldMatrix(matrix), y[rows], settings(count), backend, classes=classes).model

    def error(model: HlmModel, rows: np.ndarray) -> float:
        guess = model.posteriors(D[np.ix_(test, rows[model.centroids])]).argmax(axis=1)
        return 100.0 * float(np.mean(guess != y[test]))

    def judge(scheme: int, models: list[HlmModel]) -> None:
        errors[scheme] = [error(model, np.concatenate(batches[: k + 1])) for k, model in enumerate(models)]

    begun, rows = cut(batches[0], batches[0]), batches[0]
    news = []  # distances of each batch to all rows before it, and among its own
    for batch in batches[1:]:
        news.append((batch, cut(batch, rows), cut(batch, batch)))
        rows = np.concatenate([rows, batch])
    with SerialBackend(1) as backend:
        models = [fitted(begun, batches[0], FIRST)]
        past = Past.of(models[0], begun, y[batches[0]])

        began, one = time.perf_counter(), list(models)
        for batch, _, among in news:
            components = components_of_batch(HeldMatrix(among), y[batch], classes, settings(FIRST), backend)
            one.append(joined_models(one[-1], components, settings(FIRST)))
        seconds[0] = time.perf_counter() - began
        judge(0, one)

        began, two = time.perf_counter(), list(models)
        for number, (batch, to_past, among) in enumerate(news, start=1):
            count = FIRST + MORE * number
            grown = past.extended(to_past, among, y[batch])
            model, past, _ = regrouped_model(grown, two[-1], count, SAMPLES, settings(count), backend)
            two.append(model)
        seconds[1] = time.perf_counter() - began
        judge(1, two)

        began, matrix, rows = time.perf_counter(), begun, batches[0]
        for number, (batch, to_past, among) in enumerate(news, start=1):
            growing = time.perf_counter()
            matrix, rows = with_rows(matrix, to_past, among), np.concatenate([rows, batch])
            seconds[3] += time.perf_counter() - growing
            models.append(fitted(matrix, rows, FIRST + MORE * number))
        seconds[2] = time.perf_counter() - began
        judge(2, models)
    return errors, seconds


def main() -> None:
    """A table a data set."""
    folder = Path(sys.argv[1])
    figure = Figure(figsize=(16, 4), layout="constrained")
    panels = iter(figure.subplots(1, 4))
    for name, read in SETS.items():
        D, y = read(folder)
        partitions = [one_partition(D, y, seed) for seed in range(PARTITIONS)]
        errors = np.mean([part[0] for part in partitions], axis=0)
        seconds = np.median([part[1] for part in partitions], axis=0)
        axes = next(panels)
        for scheme, row, colour in zip(("I", "II", "retraining"), errors, COLOURS, strict=True):
            axes.plot(row, "o-", color=colour, label=scheme)
        axes.set(title=f"{name}, {len(y):,} rows", xlabel="learning round", ylabel="error, %")
        axes.legend(frameon=False)
        print(f"\n{name}, {len(y):,} rows, mean (of times the median) of {PARTITIONS} partitions\n")
        print("| scheme | " + " | ".join(f"round {k}" for k in range(9)) + " | ms | retraining takes |")
        print("|---" * 12 + "|")
        for scheme, row, took in zip(("I", "II", "retraining"), errors, seconds[:3], strict=True):
            alone = seconds[2] - seconds[3]
            ratio = f"{seconds[2] / took:.1f} times as long ({alone / took:.1f} without growing its matrix)"
            ratio = ratio if took != seconds[2] else f"{1e3 * seconds[3]:.1f} of it growing the matrix"
            print(
                f"| {scheme} | " + " | ".join(f"{value:.1f}" for value in row) + f" | {1e3 * took:.1f} | {ratio} |",
                flush=True,
            )
    figure.savefig(Path(__file__).parent / "figure-1.png", dpi=80)


if __name__ == "__main__":
    main()
