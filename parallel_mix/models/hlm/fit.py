"""Classification by mixtures over distances alone: Mixture HLM, Kernel HLM, and cross-validation between them.

A part is one class in one fold (or in all data): its clusterings into each number of components that is asked for, and
what the estimation needs of them; a task is one of them, or several small ones. Models are put together from these on
rank 0; errors of a fold are tasks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.kernels.medoids.table_substitution import fits_table
from parallel_mix.kernels.mixtures.few_classes import cluster_classes
from parallel_mix.kernels.mixtures.hlm_mixture import mean_square, nearest_sums, sums_of_clusters
from parallel_mix.models.clusters import groups as distance_groups
from parallel_mix.models.clusters.groups import Group, best_of_starts, labels_by
from parallel_mix.models.core.run import QuietRun, Run
from parallel_mix.models.core.sources import HeldMatrix, MatrixSource
from parallel_mix.models.core.tasks import Arrays, MapOfParts, workers_for
from parallel_mix.models.hlm.model import (
    FIELDS,
    KERNEL,
    Components,
    HlmModel,
    HlmSettings,
    as_clusters,
    check_settings,
    components_of,
    model_of,
)

Ints = np.ndarray
NO_CLUSTERS = np.empty((2 + len(FIELDS), 0))
"""The table of clusterings of a class that has none."""


@dataclass(frozen=True)
class HlmRecipe:
    """What a worker makes `HlmData` of: distances, the class (-1: not known) and fold of each row, weights or None."""

    matrix: MatrixSource
    y: Ints
    classes: int
    w: Array | None
    folds: Ints

    def load(self) -> HlmData:
        """The distances with classes, as a worker holds them."""
        return HlmData(self)


class Part(NamedTuple):
    """Class `number` without the rows of a fold (-1: with all rows), to be cut into `counts` of clusters."""

    fold: int
    number: int
    counts: tuple[int, ...]


class HlmData:
    """Distances with classes and folds, of which a part's are taken out."""

    def __init__(self, recipe: HlmRecipe) -> None:
        n = recipe.matrix.shape[0]
        self.y, self.folds = recipe.y, recipe.folds
        order = np.argsort(self.y, kind="stable")
        ends = np.searchsorted(self.y[order], np.arange(recipe.classes + 1))
        self._of_class = [order[a:b] for a, b in pairwise(ends)]
        self.w = np.ones(n) if recipe.w is None else recipe.w
        self._numbers: tuple[Any, Array] | None = None
        whole = (recipe.folds >= 0).any()  # every row is asked for in every fold
        self.matrix: MatrixSource = (
            HeldMatrix(recipe.matrix.among(np.arange(n), np.arange(n))) if whole else recipe.matrix
        )

    def rows(self, part: Part) -> Ints:
        """The rows of a part, in rising order."""
        rows = self._of_class[part.number]
        return rows if part.fold < 0 else rows[self.folds[rows] != part.fold]

    def within(self, rows: Ints) -> Array:
        """The distances between some rows, whose numbers rise."""
        return self.matrix.among(rows, rows)

    def among(self, rows: Ints, columns: Ints) -> Array:
        """The distances of some rows to some others (`columns`), whose numbers may stand in any order."""
        if (columns[1:] > columns[:-1]).all():
            return self.matrix.among(rows, columns)
        order = np.argsort(columns)
        return self.matrix.among(rows, columns[order])[:, np.argsort(order)]

    def numbers(self, settings: HlmSettings, most: int) -> Array:
        """Random numbers by which the starts of vsh are drawn: for each medoid (alike however many), class, start."""
        most = min(most, max(map(len, self._of_class)))
        key = settings.seed, (most, len(self._of_class), settings.restarts)
        if self._numbers is None or self._numbers[0] != key:
            self._numbers = key, np.random.default_rng([settings.seed, len(self.y)]).random(key[1])
        return self._numbers[1]


def fit_task(data: HlmData, parts: Sequence[Part], settings: HlmSettings) -> list[Arrays]:
    """The results of a task's parts (as of `fit_part`); classes of few points of a plain array go in one call."""
    counts, rows = sorted(set(parts[0].counts) - {KERNEL}), [data.rows(part) for part in parts]
    few = fits_table(max(map(len, rows)), max(counts, default=0))
    held = isinstance(data.matrix, HeldMatrix) and data.matrix.D.flags.carray
    if not (few and held and counts) or settings.clustering != "vsh":
        return [fit_part(data, part, settings) for part in parts]
    ends = np.cumsum([0, *map(len, rows)])
    numbers = np.ascontiguousarray(data.numbers(settings, counts[-1])[:, [part.number for part in parts]])
    table, begins, spare = cluster_classes(
        data.matrix[:], data.w, np.concatenate(rows), ends, numbers, np.array(counts)
    )
    values = zip(rows, pairwise(begins), spare, strict=True)
    results: list[Arrays] = [
        {"rows": own, "clusters": table[:, a:b], "spare": square} for own, (a, b), square in values
    ]
    if KERNEL in parts[0].counts:
        for part in results:
            part |= to_nearest(data.within(part["rows"]), data.w[part["rows"]])
    return results


def fit_part(data: HlmData, part: Part, settings: HlmSettings) -> Arrays:
    """The results of a part: its `rows`, the `clusters` (`as_clusters`) of its clusterings, `w` and `nearest` for
    Kernel HLM (`to_nearest`), and the mean squared distance `spare`.
    """
    rows = data.rows(part)
    if not len(rows):
        return {"rows": rows, "spare": 0.0, "clusters": NO_CLUSTERS}
    D = data.within(rows)
    group = Group(np.ascontiguousarray(D.T), data.w[rows])
    result: Arrays = {"rows": rows}
    clusters, numbers = [], np.ascontiguousarray(data.numbers(settings, max(part.counts))[:, part.number])
    for count in sorted(set(part.counts) - {KERNEL}):
        k = min(count, len(rows))
        starts = draw_starts(numbers, len(rows), k) if settings.clustering == "vsh" else None
        medoids = best_of_starts(group, settings.clustering, k, starts)[2]
        if settings.clustering == "ward":
            labels = labels_by(group, "ward", medoids)
            u = np.asarray(D[np.arange(len(rows)), medoids[labels]], dtype=np.float64) ** 2
            sums = sums_of_clusters(u, labels, medoids, group.w, np.ones(len(rows)))
        else:
            sums = nearest_sums(D, medoids, group.w, np.ones(len(rows)))[1]
        clusters.append(as_clusters(count, rows[medoids], sums))
    result["clusters"] = np.concatenate(clusters, axis=1) if clusters else NO_CLUSTERS
    if KERNEL in part.counts:
        result |= to_nearest(D, group.w)
    result["spare"] = mean_square(D)
    return result


def to_nearest(D: Array, w: Array) -> Arrays:
    """The weights `w` of the rows of a class, and the squared distances to the `nearest` other row if there is one."""
    if len(D) < 2:
        return {"w": w}
    apart = D.astype(np.float64)
    np.fill_diagonal(apart, np.inf)
    return {"w": w, "nearest": apart.min(axis=1) ** 2}


def wrong_in_fold(data: HlmData, task: tuple[int, list[HlmModel]]) -> Array:
    """The share (0 to 1) of a fold's rows that each model puts into a wrong class; NaN for a fold without rows."""
    fold, models = task
    rows = np.flatnonzero((data.folds == fold) & (data.y >= 0))
    if not len(rows):
        return np.full(len(models), np.nan)
    return np.array(
        [
            np.mean(model.posteriors(data.among(rows, model.centroids)).argmax(axis=1) != data.y[rows])
            for model in models
        ]
    )


def stratified_folds(y: Ints, folds: int, seed: int) -> Ints:
    """The fold of each row, where every class is spread over the folds evenly; -2 where the class is not known."""
    fold_of = np.full(len(y), -2)
    random = np.random.default_rng([seed, folds])
    following = 0
    for number in range(int(y.max()) + 1):
        rows = random.permutation(np.flatnonzero(y == number))
        fold_of[rows] = (following + np.arange(len(rows))) % folds
        following += len(rows)
    return fold_of


def posteriors_in_fold(data: HlmData, task: tuple[int, HlmModel]) -> tuple[Ints, Array]:
    """The rows of a fold, and their posteriors (rows, classes) by a model that has not seen them."""
    fold, model = task
    rows = np.flatnonzero((data.folds == fold) & (data.y >= 0))
    return rows, model.posteriors(data.among(rows, model.centroids))


@dataclass(frozen=True)
class HlmFit:
    """A fitted model and, of its cross-validation, errors (candidates, folds) and posteriors of the rows held out.

    The posteriors (rows, classes) are those of the chosen candidate; both are None where there was one candidate.
    """

    model: HlmModel
    errors: Array | None = None
    held_out: Array | None = None


def fit_hlm(
    matrix: MatrixSource,
    y: Ints,
    settings: HlmSettings,
    backend: Backend,
    run: Run | None = None,
    w: Array | None = None,
    classes: int = 0,
) -> HlmFit:
    """Fit a model of rows of known class; of several candidates the one of the smallest mean error over the folds.

    Classes are numbers y, -1 where not known. `classes` is how many there are; by default up to the largest in y.
    """
    check_settings(settings)
    if w is not None:
        y = np.where(w > 0, y, -1)
    if not classes:
        check_classes(y)
    if (settings.validate or len(settings.components) > 1) and settings.folds > (y >= 0).sum():
        raise InputError(f"{settings.folds} folds of {int((y >= 0).sum())} rows: there cannot be more folds than rows.")
    candidates, count = settings.components, max(classes, int(y.max()) + 1)
    crossed = settings.validate or len(candidates) > 1
    folds = stratified_folds(y, settings.folds, settings.seed) if crossed else np.full(len(y), -2)
    used = range(settings.folds) if crossed else ()
    backend, parts = fit_parts(HlmRecipe(matrix, y, count, w, folds), (*used, -1), settings, backend, run)

    def fitted(fold: int, candidate: int) -> HlmModel:
        """The model of a candidate without the rows of a fold (-1: with all rows)."""
        weight = np.ones(len(y)) if w is None else w
        totals = np.array([weight[part["rows"]].sum() for part in parts[fold]])
        return model_of(parts[fold], candidate, totals, len(y), settings)

    if not crossed:
        return HlmFit(fitted(-1, candidates[0]))
    trials = [(fold, [fitted(fold, candidate) for candidate in candidates]) for fold in used]
    errors = np.empty((len(candidates), len(trials)))
    for fold, wrong in backend.map(wrong_in_fold, trials):
        errors[:, fold] = wrong
    means = np.nanmean(errors, axis=1)
    best = min(range(len(candidates)), key=lambda c: (round(means[c], 12), candidates[c] or np.inf))
    held_out = np.full((len(y), count), np.nan)
    for _, (rows, posteriors) in backend.map(posteriors_in_fold, [(fold, models[best]) for fold, models in trials]):
        held_out[rows] = posteriors
    return HlmFit(fitted(-1, candidates[best]), errors, held_out)


def fit_parts(
    recipe: HlmRecipe, folds: Sequence[int], settings: HlmSettings, backend: Backend, run: Run | None
) -> tuple[Backend, dict[int, list[Arrays]]]:
    """The results of the parts of all classes, by fold (-1: all rows); and the workers, which hold the data by then."""
    count = recipe.classes
    every = [Part(fold, number, settings.components) for fold in folds for number in range(count)]
    sizes = np.bincount(recipe.y[recipe.y >= 0], minlength=count).astype(np.float64)  # with all folds
    works = list(sizes**2 * (1 + settings.restarts * len(settings.components))) * len(folds)
    backend = workers_for(backend, works)
    backend.share(recipe)
    run = run or QuietRun()
    tasks = MapOfParts(every, works, "HLM, class and fold", run.restored())
    tasks.work_off(backend, run, partial(fit_task, settings=settings))
    parts = tasks.in_order()
    return backend, {fold: parts[k * count : (k + 1) * count] for k, fold in enumerate(folds)}


def components_of_batch(
    matrix: MatrixSource, y: Ints, classes: int, settings: HlmSettings, backend: Backend, run: Run | None = None
) -> Components:
    """The components of a batch of rows of known class, whose parameters have not been estimated."""
    check_settings(settings)
    recipe = HlmRecipe(matrix, y, classes, None, np.full(len(y), -2))
    parts = fit_parts(recipe, [-1], settings, backend, run)[1][-1]
    totals = np.bincount(y, minlength=classes).astype(np.float64)
    return components_of(parts, range(classes), settings.components[0], totals, len(y))


def candidate_models(D: Array, y: Ints, counts: Sequence[int], settings: HlmSettings) -> list[HlmModel]:
    """The models of several numbers of components, fitted in this process; each class's distances are read once."""
    classes = int(y.max()) + 1
    data = HlmData(HlmRecipe(HeldMatrix(D), y, classes, None, np.full(len(y), -2)))
    parts = fit_task(data, [Part(-1, number, tuple(counts)) for number in range(classes)], settings)
    totals = np.bincount(y).astype(np.float64)
    return [model_of(parts, count, totals, len(y), settings) for count in counts]


def warm_up() -> None:
    """Load compiled code, for the usual kind of number: each rank for itself, while all start."""
    distance_groups.warm_up()
    D, y = 1.0 - np.eye(4), np.array([0, 0, 1, 1])
    candidate_models(D, y, (1, 2), HlmSettings((1, 2), restarts=2))
    nearest_sums(D, draw_starts(np.zeros((1, 1)), 1, 1)[0], np.ones(4), np.ones(4))
    mean_square(D)


def check_classes(y: Ints) -> None:
    """Refuse rows of fewer than two known classes."""
    if not (y >= 0).any():
        raise InputError("No row has a known class: there is nothing to learn from.")
    if len(np.unique(y[y >= 0])) < 2:
        raise InputError("All rows are of one class: there is nothing to tell apart.")
