"""Classification by mixtures over distances alone: Mixture HLM, Kernel HLM, and cross-validation between them.

A task is one class in one fold (or in all data): its clusterings into each number of components that is asked for, and
what the estimation needs of them. Models are put together from these on rank 0; errors of a fold are tasks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.gamma_shape import whole_dimension
from parallel_mix.kernels.hlm_mixture import ClusterSums, estimate, kernel_parameters, log_densities, posteriors
from parallel_mix.models.distance_clustering import Group, labels_by, one_start
from parallel_mix.models.run import HowFar, QuietRun, Run, State
from parallel_mix.models.squares import Square
from parallel_mix.models.tiles import work_off

Ints = np.ndarray
KERNEL = 0
"""The candidate that stands for Kernel HLM among numbers of components."""
FIELDS = ("sizes", "counts", "means", "spreads", "points", "zeros")


@dataclass(frozen=True)
class HlmSettings:
    """What decides a model, besides the data."""

    components: tuple[int, ...] = (4,)  # several: cross-validation decides; KERNEL is one of them
    clustering: str = "vsh"
    shape: str = "common"
    groups: int = 3
    restarts: int = 20
    folds: int = 10
    seed: int = 0
    kernel_shape: float | None = None  # Kernel HLM's, by hand
    kernel_scale: float | None = None


@dataclass(frozen=True)
class HlmRecipe:
    """What a worker needs: all distances, the class of each row (-1: not known), weights and folds."""

    matrix: Square
    y: Ints
    w: Array | None
    folds: Ints

    def load(self) -> HlmData:
        return HlmData(self)


class HlmData:
    """Distances with classes, ready to be cut."""

    def __init__(self, recipe: HlmRecipe) -> None:
        every = np.arange(recipe.matrix.shape[0])
        self.D = recipe.matrix.among(every, every)
        self.y, self.folds = recipe.y, recipe.folds
        self.w = np.ones(len(every)) if recipe.w is None else recipe.w
        self.weighted = recipe.w is not None


@dataclass(frozen=True)
class Part:
    """A task: class `number` without the rows of a fold (-1: with all rows)."""

    fold: int
    number: int
    counts: tuple[int, ...]


Arrays = dict[str, Any]


def fit_part(data: HlmData, part: Part, settings: HlmSettings) -> Arrays:
    """What a model needs of a class: of its clusterings, of nearest neighbours, and of its distances as a whole."""
    rows = np.flatnonzero((data.y == part.number) & (data.folds != part.fold))
    if not len(rows):
        return {"rows": rows, "spare": 0.0}
    D = data.D[np.ix_(rows, rows)]
    group = Group(np.ascontiguousarray(D.T), data.w[rows])
    found: Arrays = {"rows": rows}
    for count in part.counts:
        if count == KERNEL:
            continue
        k = min(count, len(rows))
        medoids = best_start(group, settings, k, [settings.seed, part.fold + 1, part.number])
        labels = labels_by(group, settings.clustering, medoids)
        u = np.asarray(D[np.arange(len(rows)), medoids[labels]], dtype=np.float64) ** 2
        sums = ClusterSums.of(part.number, u, labels, medoids, data.w[rows] if data.weighted else None)
        found |= {f"{count}/medoids": rows[medoids], **{f"{count}/{name}": getattr(sums, name) for name in FIELDS}}
    if KERNEL in part.counts and len(rows) > 1:
        apart = D.astype(np.float64)
        np.fill_diagonal(apart, np.inf)
        found["nearest"] = apart.min(axis=1) ** 2
    positive = D[D > 0].astype(np.float64)
    found["spare"] = float((positive**2).mean()) if positive.size else 0.0
    return found


def best_start(group: Group, settings: HlmSettings, k: int, seeds: list[int]) -> Ints:
    """Medoids of the least loss of all starts, in rising order."""
    tries = settings.restarts if settings.clustering == "vsh" and k > 1 else 1
    starts = [one_start(group, settings.clustering, k, [*seeds, k, restart]) for restart in range(tries)]
    return np.sort(min(starts, key=lambda start: start[0])[1])


@dataclass(frozen=True)
class HlmModel:
    """A classifier: components with their rows, scales and shapes."""

    count: int  # components of each class; KERNEL
    prior: Array  # (K)
    centroids: Ints  # (m) rows
    classes: Ints  # (m)
    weights: Array  # (m) within the class
    b: Array
    s: Array  # as used, whole dimensions
    estimated: Array  # s as estimated
    sums: ClusterSums | None
    totals: Array  # (K) rows of each class, or their weights
    spare: Array  # (K) mean squared distance within the class, where nothing better is known
    rows: int  # on which it was fitted

    def log_densities(self, squares: Array) -> Array:
        """log phi(z | class) from squared distances to the components."""
        return log_densities(squares, self.b, self.s, np.log(self.weights), self.classes, len(self.prior))

    def posteriors(self, D: Array) -> Array:
        """p(class | z) from distances to the components."""
        return posteriors(self.log_densities(np.asarray(D, dtype=np.float64) ** 2), self.prior)


def put_together(parts: Sequence[Arrays], count: int, totals: Array, rows: int, settings: HlmSettings) -> HlmModel:
    """The model of all classes from their parts."""
    spare = np.array([part["spare"] for part in parts])
    found_spare, prior = spare.copy(), totals / totals.sum()
    spare[spare == 0] = spare[spare > 0].mean() if (spare > 0).any() else 1.0
    if count == KERNEL:
        of_class = [part["rows"] for part in parts]
        nearest = np.concatenate([part["nearest"] for part in parts if "nearest" in part] or [np.empty(0)])
        s, b = kernel_parameters(nearest, float(spare.mean()))
        s = settings.kernel_shape or s
        b = settings.kernel_scale or b
        m = sum(map(len, of_class))
        classes = np.repeat(np.arange(len(parts)), [len(one) for one in of_class])
        weights = np.concatenate([np.full(len(one), 1.0 / max(len(one), 1)) for one in of_class])
        centroids = np.concatenate(of_class)
        scales = np.full(m, b), np.full(m, whole_dimension(s)), np.full(m, s)
        return HlmModel(KERNEL, prior, centroids, classes, weights, *scales, None, totals, found_spare, rows)
    sums = ClusterSums.joined([sums_of(part, k, count) for k, part in enumerate(parts) if f"{count}/medoids" in part])
    found = estimate(sums, spare, settings.shape, settings.groups)
    centroids = np.concatenate([part[f"{count}/medoids"] for part in parts if f"{count}/medoids" in part])
    total = np.bincount(sums.classes, weights=sums.sizes, minlength=len(parts))
    weights = sums.sizes / total[sums.classes]
    scales = found.b, found.whole, found.s
    return HlmModel(count, prior, centroids, sums.classes, weights, *scales, sums, totals, found_spare, rows)


def sums_of(part: Arrays, number: int, count: int) -> ClusterSums:
    """The sums of one class's clusters."""
    values = {name: np.asarray(part[f"{count}/{name}"]) for name in FIELDS}
    return ClusterSums(classes=np.full(len(values["sizes"]), number), **values)


def wrong_in_fold(data: HlmData, task: tuple[int, list[HlmModel]]) -> Array:
    """The part of a fold's rows that each model puts into a wrong class."""
    fold, models = task
    rows = np.flatnonzero((data.folds == fold) & (data.y >= 0))
    if not len(rows):
        return np.full(len(models), np.nan)
    return np.array(
        [
            np.mean(model.posteriors(data.D[np.ix_(rows, model.centroids)]).argmax(axis=1) != data.y[rows])
            for model in models
        ]
    )


def stratified_folds(y: Ints, folds: int, seed: int) -> Ints:
    """A fold for each row, of all classes alike; -2 where the class is not known."""
    found = np.full(len(y), -2)
    random = np.random.default_rng([seed, folds])
    following = 0
    for number in range(int(y.max()) + 1):
        rows = random.permutation(np.flatnonzero(y == number))
        found[rows] = (following + np.arange(len(rows))) % folds
        following += len(rows)
    return found


@dataclass(frozen=True)
class HlmFit:
    """A model, and what cross-validation said of the candidates (candidates, folds)."""

    model: HlmModel
    errors: Array | None


def fit_hlm(
    matrix: Square,
    y: Ints,
    settings: HlmSettings,
    backend: Backend,
    run: Run | None = None,
    w: Array | None = None,
    classes: int = 0,
) -> HlmFit:
    """Fit a model of rows of known class; of several candidates the one of the smallest mean error over the folds.

    With `classes` there are so many, though there may be no rows of some.
    """
    run = run or QuietRun()
    if not classes:
        check_classes(y)
    candidates, count = settings.components, max(classes, int(y.max()) + 1)
    folds = stratified_folds(y, settings.folds, settings.seed) if len(candidates) > 1 else np.full(len(y), -2)
    folds = np.where((y >= 0) & (folds == -2), -3, folds)
    used = range(settings.folds) if len(candidates) > 1 else ()
    tasks = [Part(fold, number, candidates) for fold in (*used, -1) for number in range(count)]
    parts = parts_of_state(run.restored())
    done = np.array([k in parts for k in range(len(tasks))])
    backend.share(HlmRecipe(matrix, y, w, folds))

    def keep(number: int, part: Arrays) -> None:
        parts[number] = part

    def ledger() -> State:
        return {"done": int(done.sum())} | {
            f"part/{number}/{name}": value for number, part in parts.items() for name, value in part.items()
        }

    def how_far() -> HowFar:
        return float(done.sum()), float(len(tasks)), f"HLM, class and fold {int(done.sum())}/{len(tasks)}"

    work_off(backend, run, partial(fit_part, settings=settings), tasks, done, keep, ledger, how_far)

    def model_of(fold: int, candidate: int) -> HlmModel:
        chosen = [parts[k] for k, task in enumerate(tasks) if task.fold == fold]
        weight = np.ones(len(y)) if w is None else w
        totals = np.array([weight[part["rows"]].sum() for part in chosen])
        return put_together(chosen, candidate, totals, len(y), settings)

    if len(candidates) == 1:
        return HlmFit(model_of(-1, candidates[0]), None)
    trials = [(fold, [model_of(fold, candidate) for candidate in candidates]) for fold in used]
    errors = np.empty((len(candidates), len(trials)))
    for fold, wrong in backend.map(wrong_in_fold, trials):
        errors[:, fold] = wrong
    means = np.nanmean(errors, axis=1)
    order = sorted(range(len(candidates)), key=lambda c: (round(means[c], 12), candidates[c] or np.inf))
    return HlmFit(model_of(-1, candidates[order[0]]), errors)


def parts_of_state(state: State | None) -> dict[int, Arrays]:
    """Parts that an earlier attempt has finished."""
    found: dict[int, Arrays] = {}
    for name, value in (state or {}).items():
        if name.startswith("part/"):
            _, number, rest = name.split("/", 2)
            found.setdefault(int(number), {})[rest] = value
    return found


def check_classes(y: Ints) -> None:
    """Refuse what no classifier can be made of."""
    if not (y >= 0).any():
        raise InputError("No row has a known class: there is nothing to learn from.")
    if len(np.unique(y[y >= 0])) < 2:
        raise InputError("All rows are of one class: there is nothing to tell apart.")
