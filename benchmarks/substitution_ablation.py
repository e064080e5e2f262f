"""What each variant and each shortcut of vertex substitution brings, on five sets of distances.

taskset -c 1 python benchmarks/substitution_ablation.py [FOLDER]      FOLDER has voting.npz, or that set is left out

Everything is run with and without the shortcut in turns; medoids and losses are compared once and must be equal. A cell
says how many times as long it takes without: the median of the ratios of seven pairs or more, in time of the processor.
A shortcut inside compiled code is taken out of (or, where the package has it no longer, put into) the text of the
module, which is compiled anew; a text that is not there any more ends the benchmark.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from substitution_shortcuts import OF_SEARCH, OF_TABLE, ONCE_OF_SEARCH, ONCE_OF_TABLE, ONE_PASS, changed

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.medoids import table_substitution, vertex_substitution
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.kernels.medoids.vertex_substitution import is_symmetric, steps_of
from parallel_mix.kernels.mixtures.few_classes import cluster_few
from parallel_mix.models.clusters import sharded_substitution
from parallel_mix.models.clusters.groups import Group, best_of_starts, random_starts
from parallel_mix.models.clusters.substitution import substitute
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm.fit import HlmData, HlmRecipe, Part, fit_part, fit_task
from parallel_mix.models.hlm.model import HlmSettings

Result = list[Any]
Runs = dict[str, Callable[[], Result]]
FEWEST_PAIRS, MOST_PAIRS, SECONDS = 7, 25, 2.0


class Job(NamedTuple):
    """The distances of a group (candidates in rows), its weights, how many steps make one, and starts."""

    E: np.ndarray
    w: np.ndarray
    steps: float
    starts: np.ndarray


def job_of(D: np.ndarray, k: int, starts: int) -> Job:
    """A group of weights 1."""
    E, w = np.ascontiguousarray(D.T), np.ones(len(D))
    return Job(E, w, steps_of(w, float(E.max())), random_starts(len(E), k, [0, len(E)], 0, starts))


# --- data ---


def drawn_classes(n: int, classes: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Points as those of Mirex size in `hlm_incremental.py`, in so many dimensions: distances and classes."""
    r = np.random.default_rng(0)
    y = np.arange(n) % classes
    X = r.normal(0, 3, (30, size))[r.integers(0, 30, n)] + r.normal(size=(n, size))
    X += 0.7 * r.normal(size=(classes, size))[y]
    return cdist(X, X), y


def voting(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Distances 1 - S of 435 rows of two classes."""
    with np.load(folder / "voting.npz", allow_pickle=False) as data:
        D, y = 1.0 - data["S"], np.unique(data["y"], return_inverse=True)[1]
    np.fill_diagonal(D, 0.0)
    return D, y


class Classes(NamedTuple):
    """A set whose classes are clustered each by itself, and their number of medoids."""

    D: np.ndarray
    y: np.ndarray
    k: int

    def jobs(self) -> list[Job]:
        """A group for each class, with 20 starts."""
        return [job_of(self.D[np.ix_(self.y == c, self.y == c)], self.k, 20) for c in range(self.y.max() + 1)]


def sets_of_few(folder: Path | None) -> dict[str, Classes]:
    """The sets of which each class fits the table."""
    sets = {
        "Mirex size, classes of 309, k = 20": Classes(*drawn_classes(3_090, 10, 12), 20),
        "Mirex size, classes of 39, k = 4": Classes(*drawn_classes(3_090, 80, 12), 4),
    }
    if folder is not None and (folder / "voting.npz").exists():
        sets["voting, classes of 267 and 168, k = 12"] = Classes(*voting(folder), 12)
    else:
        print("The voting data are left out: no folder with voting.npz was given.\n")
    return sets


def sets_of_many() -> dict[str, list[Job]]:
    """The sets that are searched; the first start of the first job is what slow variants get."""
    D = drawn_classes(7_000, 1, 16)[0].astype(np.float32)
    skew = D[:2_000, :2_000] * np.random.default_rng(1).uniform(0.8, 1.2, (2_000, 2_000))
    return {
        "one class of 7,000, float32, k = 8 and 40": [job_of(D, 8, 2), job_of(D, 40, 2)],
        "asymmetric, 2,000, float64, k = 8 and 40": [job_of(skew, 8, 4), job_of(skew, 40, 4)],
    }


# --- runs ---


def by_table(module: Any, jobs: Sequence[Job], numbers: bool = False) -> Result:
    """All jobs by the table; with `numbers` by a changed module that judges from the distances themselves."""
    results = []
    for E, w, steps, starts in jobs:
        medoids = starts.copy()
        losses = module.substitute_by_table(*((E, w, steps) if numbers else (module.table_of(E, w, steps),)), medoids)
        results += [losses, medoids]
    return results


def by_search(module: Any, jobs: Sequence[Job], at_once: int = 99) -> Result:
    """All jobs by the search, so many starts a call."""
    results = []
    for E, w, steps, starts in jobs:
        medoids = starts.copy()
        parts = range(0, len(starts), at_once)
        losses = [module.substitute_by_search(E, w, medoids[a : a + at_once], steps) for a in parts]
        results += [np.concatenate(losses), medoids]
    return results


def spread(jobs: Sequence[Job], fewest: int = 16, most: int = 1_024) -> Result:
    """All jobs with rows spread over workers (here one); from `fewest` to `most` candidates are judged at once."""
    results = []
    sharded_substitution.FEWEST, sharded_substitution.MOST = fewest, most
    for E, w, steps, starts in jobs:
        medoids = starts.copy()
        with SerialBackend(1) as backend:
            backend.share(sharded_substitution.ShardsRecipe(HeldMatrix(E.T), w, steps))
            results += [substitute(sharded_substitution.SpreadRows(backend, len(E)), medoids), medoids]
    return results


def prepared(jobs: Sequence[Job], looks: bool) -> Result:
    """Five times the starts of each job, from the matrix as it is stored: turned always, or where it is asymmetric."""
    results = []
    for E, w, steps, starts in jobs:
        D = np.ascontiguousarray(E.T) if E.dtype == np.float64 else E  # the large one is symmetric
        turned = D if looks and is_symmetric(D) else np.ascontiguousarray(D.T)
        results += by_search(vertex_substitution, [Job(turned, w, steps, starts)] * 5)
    return results


def models(data: HlmData, parts: Sequence[Part], settings: HlmSettings, how: str) -> Result:
    """What HLM needs of all classes: in one call, a call a class, or step by step."""
    if how == "one call":
        fits = fit_task(data, parts, settings)
    elif how == "a call a class":
        fits = [fit_task(data, [part], settings)[0] for part in parts]
    else:
        fits = [fit_part(data, part, settings) for part in parts]
    return [part["clusters"] for part in fits]


def class_by_class(D: np.ndarray, rows: Sequence[np.ndarray], numbers: np.ndarray, k: int, compiled: bool) -> Result:
    """The medoids of each class as scheme II of `hlm update` seeks them: in one call a class, or step by step."""
    medoids = []
    for own in rows:
        w = np.ones(len(own))
        if compiled:
            medoids.append(cluster_few(D, own, w, numbers, k)[1])
        else:
            group = Group(np.ascontiguousarray(D[np.ix_(own, own)].T), w)
            medoids.append(best_of_starts(group, "vsh", k, draw_starts(numbers, len(own), k))[2])
    return medoids


# --- the table ---


def seconds_of(run: Callable[[], Result]) -> float:
    """Time of the processor."""
    began = time.process_time()
    run()
    return time.process_time() - began


def without(with_it: Callable[[], Result], without_it: Callable[[], Result]) -> str:
    """How many times as long it takes without; both in turns, and equal."""
    for one, other in zip(with_it(), without_it(), strict=True):
        np.testing.assert_array_equal(one, other)
    ratios: list[float] = []
    began = time.perf_counter()
    while len(ratios) < FEWEST_PAIRS or (len(ratios) < MOST_PAIRS and time.perf_counter() - began < SECONDS):
        if len(ratios) % 2:
            after, before = seconds_of(without_it), seconds_of(with_it)
        else:
            before, after = seconds_of(with_it), seconds_of(without_it)
        ratios.append(after / before)
    return f"{statistics.median(ratios):.2f}"


def rows_of_few(classes: Classes) -> dict[str, str]:
    """The column of a set whose classes fit the table."""
    jobs, D = classes.jobs(), np.ascontiguousarray(classes.D)
    now = partial(by_table, table_substitution, jobs)
    rows = {"**table**, not search": without(now, partial(by_search, vertex_substitution, jobs))}
    for name, changes in OF_TABLE.items():
        numbers = name == "a table of whole numbers"
        module = changed(table_substitution, [*(OF_TABLE["padded lanes"] if numbers else []), *changes])
        rows[f"table: {name}"] = without(now, partial(by_table, module, jobs, numbers))
    for name, changes in ONCE_OF_TABLE.items():
        rows[f"table: {name} (removed)"] = without(partial(by_table, changed(table_substitution, changes), jobs), now)
    settings = HlmSettings((classes.k,))
    number = int(classes.y.max()) + 1
    data = HlmData(HlmRecipe(HeldMatrix(D), classes.y, number, None, np.full(len(D), -2)))
    run = partial(models, data, [Part(-1, c, (classes.k,)) for c in range(number)], settings)
    rows["**few classes** in a compiled call a class, not step by step"] = without(
        partial(run, "a call a class"), partial(run, "steps")
    )
    rows["few classes: all in one call, not a call a class"] = without(
        partial(run, "one call"), partial(run, "a call a class")
    )
    own = [np.flatnonzero(classes.y == c) for c in range(number)]
    again = partial(class_by_class, D, own, np.random.default_rng(0).random((classes.k, 20)), classes.k)
    rows["few classes: scheme II in a compiled call a class, not step by step"] = without(
        partial(again, True), partial(again, False)
    )
    return rows


def rows_of_many(jobs: list[Job]) -> dict[str, str]:
    """The column of a set that is searched."""
    first = [jobs[0]._replace(starts=jobs[0].starts[:1])]
    now, once = partial(by_search, vertex_substitution, jobs), partial(by_search, vertex_substitution, first)
    rows = {"**search**, not table": without(now, partial(by_table, table_substitution, jobs))}
    one_by_one = changed(vertex_substitution, ONE_PASS)
    rows["search: all exchanges judged in one pass (k = 8)"] = without(once, partial(by_search, one_by_one, first))
    for name, changes in OF_SEARCH.items():
        rows[f"search: {name}"] = without(now, partial(by_search, changed(vertex_substitution, changes), jobs))
    rows["search: starts side by side, not one after the other"] = without(
        now, partial(by_search, vertex_substitution, jobs, 1)
    )
    for name, changes in ONCE_OF_SEARCH.items():
        rows[f"search: {name} (removed)"] = without(
            partial(by_search, changed(vertex_substitution, changes), jobs), now
        )
    rows["search: a symmetric matrix is not turned (20 starts)"] = without(
        partial(prepared, jobs, True), partial(prepared, jobs, False)
    )
    rows["**shards**, one worker: not spread (k = 8)"] = without(partial(spread, first), once)
    for name, bounds in {"16": (16, 16), "1,024": (1_024, 1_024)}.items():
        rows[f"shards: 16 to 1,024 candidates at once, not always {name} (k = 8)"] = without(
            partial(spread, first), partial(spread, first, *bounds)
        )
    return rows


def main() -> None:
    """Print one table in Markdown."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    columns = {name: rows_of_few(classes) for name, classes in sets_of_few(folder).items()}
    columns |= {name: rows_of_many(jobs) for name, jobs in sets_of_many().items()}
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    print(f"| with, not without | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name in names:
        print(f"| {name} | {' | '.join(column.get(name, '') for column in columns.values())} |")


if __name__ == "__main__":
    main()
