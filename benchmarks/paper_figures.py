"""Why figures of the papers' tables differ from ours: what each depends on, one table a question.

python benchmarks/paper_figures.py FOLDER [partitions sonar components ridges price bins neighbours vectors]

FOLDER has the papers' data (npz). Errors in %, mean over the partitions of the papers' protocol, and their sd.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.evaluate.crossval import crossval
from parallel_mix.evaluate.data import similarities_of
from parallel_mix.evaluate.paper_tables import SOURCES
from parallel_mix.evaluate.partitions import Protocol
from parallel_mix.families.crossval.paper import read_source
from parallel_mix.models.similarity.methods import LOCAL_NEIGHBOURS, PRICES


def errors(
    folder: Path, data: str, method: Any, protocol: Protocol | None = None, values: np.ndarray | None = None
) -> np.ndarray:
    """Errors in % of a classifier over the partitions; `values`: another matrix (similarities) than the data's."""
    source = SOURCES[data]
    table = read_source(folder, source)
    matrix, kind = (table.matrix, source.kind) if values is None else (values, "similarities")
    conversion = (source.conversion if kind == "similarities" else None) or "inverse"
    comparison = crossval([method], matrix, table.y, protocol or Protocol(), kind=kind, conversion=conversion)
    return 100.0 * np.asarray(comparison.errors[0])


def cell(values: np.ndarray) -> str:
    """Mean and sd."""
    return f"{np.mean(values):.1f} ({np.std(values, ddof=1):.1f})"


def row(*cells: object) -> None:
    """A line of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: object) -> None:
    """The first lines of a table."""
    row(*cells)
    print("|---" * len(cells) + "|")


def partitions(folder: Path) -> None:
    """Means over twenty partitions move with the seed of the partitions."""
    head("classifier", "data", "ten seeds, 20 partitions each: lowest and highest", "100 partitions")
    for name, data in (("knn", "sonar"), ("knn", "aural_sonar"), ("hlm-gknn", "aural_sonar")):
        some = [np.mean(errors(folder, data, name, Protocol(seed=seed))) for seed in range(10)]
        many = errors(folder, data, name, Protocol(partitions=100))
        row(name, data, f"{min(some):.1f} to {max(some):.1f}", cell(many))
    local = ("knn", {"n_neighbors": list(LOCAL_NEIGHBOURS)})
    row(
        "knn, neighbours of local SDA's paper",
        "aural_sonar",
        "",
        cell(errors(folder, "aural_sonar", local, Protocol(100))),
    )


def sonar(folder: Path) -> None:
    """Sonar as similarities 1/D, by the similarity of a row to itself: so many times the largest of the others."""
    methods: Sequence[str] = ("svm-features-linear", "krr-knn", "psvm")
    head("times", *methods)
    S = similarities_of(read_source(folder, SOURCES["sonar"]).matrix)
    for times in (1, 2, 5, 20):
        scaled = S.copy()
        np.fill_diagonal(scaled, times * S.max())
        row(times, *(cell(errors(folder, "sonar", name, values=scaled)) for name in methods))
    row("paper", "20.60 (5.60)", "20.71 (5.22)", "19.29 (4.64)")


def components(folder: Path) -> None:
    """HLM (vsh) on protein by its number of components for every class, no selection; three seeds."""
    head("components", *(f"seed {seed}" for seed in range(3)))
    for count in (1, 2, 3, 4):
        method = ("hlm-vsh", {"n_components": count})
        row(count, *(cell(errors(folder, "protein", method, Protocol(seed=seed))) for seed in range(3)))


def ridges(folder: Path) -> None:
    """KRI k-NN on protein by the largest ridge that the folds may take."""
    head("ridges from 0.001 to", "error")
    for most in (1, 2, 3):
        row(10**most, cell(errors(folder, "protein", ("kri-knn", {"ridge": [10.0**k for k in range(most, -4, -1)]}))))


def price(folder: Path) -> None:
    """P-SVM on sonar with the price eps of all weights together, and for each sample."""
    head("eps", "error")
    row("in all", cell(errors(folder, "sonar", "psvm")))
    n = round(0.8 * len(read_source(folder, SOURCES["sonar"]).matrix))
    row("for each sample", cell(errors(folder, "sonar", ("psvm", {"eps": [p * n for p in PRICES]}))))


def bins(folder: Path) -> None:
    """Local SDA on protein by the number of equal bins of similarities, and by its fallback."""
    head("bins", "sda-bayesian", "sda-pairwise", "sda-pairwise, fallback knn")
    for count in (10, 20, 50, 100):
        wide = [("sda-bayesian", {"bins": count}), ("sda-pairwise", {"bins": count})]
        wide.append(("sda-pairwise", {"bins": count, "fallback": "knn"}))
        row(count, *(cell(errors(folder, "protein", method)) for method in wide))


def neighbours(folder: Path) -> None:
    """SVM-KNN with similarities as features on protein by its number of neighbours; C chosen by the folds."""
    head("neighbours", "error")
    for k in (16, 32, 64, 128):
        row(k, cell(errors(folder, "protein", ("svm-knn-features", {"n_neighbors": k}))))


def vectors(folder: Path) -> None:
    """Support vector machines on sonar's vectors: the grids of Chen et al., smaller ones, columns divided by sds."""
    table = read_source(folder, SOURCES["sonar-vectors"])
    small = {"C": [0.1, 1.0, 10.0]}
    head("vectors", "svm-linear", "svm-linear, C 0.1 to 10", "svm-rbf", "svm-rbf, C 0.1 to 10, gamma 0.001 to 0.1")
    for name, X in (("as they are", table.X), ("divided by sds", table.X / table.X.std(axis=0, ddof=1))):
        methods: list[Any] = ["svm-linear", ("svm-linear", small), "svm-rbf"]
        methods.append(("svm-rbf", {**small, "gamma": [0.001, 0.01, 0.1]}))
        rates = [crossval([method], X, table.y, Protocol(), kind="vectors").errors[0] for method in methods]
        row(name, *(cell(100.0 * np.asarray(rate)) for rate in rates))
    row("paper", "16.90 (5.05)", "", "20.00 (5.40)", "")


def main() -> None:
    """Answer what is asked, or all."""
    parts = {part.__name__: part for part in (partitions, sonar, components, ridges, price, bins, neighbours, vectors)}
    folder, *asked = sys.argv[1:]
    for name in asked or parts:
        print(f"\n### {name}\n\n{inspect.getdoc(parts[name])}\n")
        parts[name](Path(folder))


if __name__ == "__main__":
    main()
