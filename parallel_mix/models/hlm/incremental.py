"""Models over distances that grow batch by batch (hlm.txt, section 4).

Scheme I clusters each batch by itself and joins what the estimation needs of all clusters: past data are not needed
again. Scheme II clusters the new rows together with some of each old cluster: its centroid and `samples` others, of
weight sqrt((|I_j| + 1) / (samples + 1)) where there were more; then all rows go to their nearest new centroid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.medoids.starts import draw_starts
from parallel_mix.kernels.medoids.table_substitution import fits_table
from parallel_mix.kernels.mixtures.few_classes import cluster_few, grown_block
from parallel_mix.kernels.mixtures.hlm_mixture import ClusterSums, first_of_clusters, mean_square, nearest_sums
from parallel_mix.models.clusters.groups import Group, best_of_starts
from parallel_mix.models.core.run import QuietRun, Run
from parallel_mix.models.core.tasks import Arrays, MapOfParts, part_by_part, workers_for
from parallel_mix.models.hlm import fit as hlm
from parallel_mix.models.hlm.model import Components, HlmModel, HlmSettings, as_clusters, components_of, mixture_model

Ints = np.ndarray


def joined_models(old: HlmModel, batch: Components, settings: HlmSettings) -> HlmModel:
    """Scheme I: the components of a batch added to an older model; its rows come after the older ones.

    The batch's classes are numbered as the old ones, new classes after them.
    """
    assert old.sums is not None  # noqa: S101 (a kernel model has none, and is refused before)
    assert batch.sums is not None  # noqa: S101
    totals, spare, known = batch.totals.copy(), batch.spare.copy(), len(old.totals)
    totals[:known] += old.totals
    spare[:known] = np.where(old.spare > 0, old.spare, spare[:known])
    sums = ClusterSums.joined([old.sums, batch.sums])
    order = np.argsort(sums.classes, kind="stable")
    sums = ClusterSums(sums.classes[order], sums.table[:, order])
    centroids = np.concatenate([old.centroids, old.rows + batch.centroids])[order]
    components = Components(old.count, centroids, sums.classes, sums, totals, spare, old.rows + batch.rows)
    return mixture_model(components, settings)


@dataclass(frozen=True)
class Past:
    """The rows that a model keeps: the component that each belongs to, and the distances within each class.

    Where rows were dropped the others of their component stand for them, too: that is their mass.
    """

    D: tuple[Array, ...]  # of each class, its rows in rising order
    y: Ints
    component: Ints
    mass: Array

    @classmethod
    def of(cls, model: HlmModel, D: Array, y: Ints) -> Past:
        """All rows that a model was fitted to; D are their distances, y their classes."""
        component, distances = np.full(len(y), -1), []
        for number in range(len(model.prior)):
            rows, components = np.flatnonzero(y == number), np.flatnonzero(model.classes == number)
            distances.append(D[np.ix_(rows, rows)])
            if len(rows):
                component[rows] = components[D[np.ix_(rows, model.centroids[components])].argmin(axis=1)]
        component[model.centroids] = np.arange(len(model.centroids))
        return cls(tuple(distances), y, component, np.ones(len(y)))

    def extended(self, to_past: Array, among: Array, y: Ints) -> Past:
        """These rows and a batch of new ones, of classes y, which belong to no component (-1) yet."""
        kind, distances = np.result_type(among, *self.D), []
        to_past, among = (np.ascontiguousarray(some, dtype=kind) for some in (to_past, among))
        for number in range(max(len(self.D), int(y.max()) + 1)):
            D = self.D[number].astype(kind, copy=False) if number < len(self.D) else np.empty((0, 0), dtype=kind)
            distances.append(
                grown_block(D, to_past, among, np.flatnonzero(self.y == number), np.flatnonzero(y == number))
            )
        new = np.full(len(y), -1), np.ones(len(y))
        component, mass = (np.concatenate(pair) for pair in zip((self.component, self.mass), new, strict=True))
        return Past(tuple(distances), np.concatenate([self.y, y]), component, mass)

    def only(self, kept: Ints) -> Past:
        """The past of some of the rows, whose numbers rise."""
        if len(kept) == len(self.y):
            return self
        is_kept = np.zeros(len(self.y), dtype=bool)
        is_kept[kept] = True
        blocks = [D[np.ix_(here, here)] for k, D in enumerate(self.D) for here in [is_kept[self.y == k]]]
        return Past(tuple(blocks), self.y[kept], self.component[kept], self.mass[kept])


@dataclass(frozen=True)
class ClassPast:
    """The past of one class: the numbers of its rows; all else is by their places among these."""

    rows: Ints
    D: Array
    component: Ints
    mass: Array
    order: Ints  # of its rows, at random, old centroids first


@dataclass(frozen=True)
class PastRecipe:
    """What a worker makes `PastData` of: all rows, and the old centroids (numbers of rows, class by class)."""

    past: Past
    centroids: Ints
    components: int
    settings: HlmSettings

    def load(self) -> PastData:
        """The past of all classes, as a worker holds it."""
        return PastData(self)


class PastData:
    """The past of all classes, and the random numbers by which they are clustered anew."""

    def __init__(self, recipe: PastRecipe) -> None:
        self._past, n, settings = recipe.past, len(recipe.past.y), recipe.settings
        random = np.random.default_rng([settings.seed, n])
        self._place = random.random(n)
        self._place[recipe.centroids] -= 1.0
        self._numbers = random.random((recipe.components, len(recipe.past.D), settings.restarts))

    def of_class(self, number: int) -> ClassPast:
        """The past of one class."""
        past, rows = self._past, np.flatnonzero(self._past.y == number)
        order = np.argsort(self._place[rows])
        return ClassPast(rows, past.D[number], past.component[rows], past.mass[rows], order)

    def numbers(self, number: int, k: int) -> Array:
        """Random numbers by which the starts of vsh for a class are drawn: for each of k medoids and each start."""
        return np.ascontiguousarray(self._numbers[:k, number])


Regrouped = Arrays
"""A class in its new clusters: the `clusters` (`as_clusters`), its `rows`, their `labels` (numbers of clusters) and
`mass`, and `spare`."""


def chosen_places(known: ClassPast, samples: int) -> tuple[Ints, Array, Array]:
    """The places of a class's rows that are clustered anew, rising; their weights; how many rows each stands for."""
    chosen, stands_for = first_of_clusters(known.component, known.mass, known.order, samples + 1)  # and the centroid
    return chosen, np.sqrt(stands_for), stands_for


def regroup(
    data: PastData, number: int, components: int, samples: int, reassign: bool, settings: HlmSettings
) -> Regrouped:
    """Cluster a class anew, from samples of its old clusters and all its new rows."""
    known = data.of_class(number)
    chosen, w, stands_for = chosen_places(known, samples)
    k = min(components, len(chosen))
    numbers = data.numbers(number, k)
    if settings.clustering == "vsh" and fits_table(len(chosen), k):
        inner, medoids = cluster_few(known.D, chosen, w, numbers, k)
    else:
        inner = known.D[np.ix_(chosen, chosen)]
        starts = draw_starts(numbers, len(chosen), k) if settings.clustering == "vsh" else None
        medoids = best_of_starts(Group(np.ascontiguousarray(inner.T), w), settings.clustering, k, starts)[2]
    if reassign:
        places, mass, rows = chosen[medoids], known.mass, known.rows
        labels, sums = nearest_sums(known.D, places, np.ones(len(rows)), np.ones(len(rows)))
    else:
        places, mass, rows = medoids, stands_for, known.rows[chosen]
        labels, sums = nearest_sums(inner, places, w, stands_for)
    clusters = as_clusters(components, rows[places], sums)
    return {"clusters": clusters, "rows": rows, "labels": labels, "mass": mass, "spare": mean_square(inner)}


def warm_up() -> None:
    """Load compiled code: each rank for itself, while all start."""
    hlm.warm_up()
    first_of_clusters(np.zeros(2, dtype=np.int64), np.ones(2), np.arange(2), 1)
    D, one = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
    cluster_few(grown_block(D, D, D, one, one), one, np.ones(1), np.ones((1, 1)), 1)


def regrouped_model(
    past: Past,
    old: HlmModel,
    components: int,
    samples: int,
    settings: HlmSettings,
    backend: Backend,
    run: Run | None = None,
    reassign: bool = True,
) -> tuple[HlmModel, Past, Ints]:
    """Scheme II: past rows (with their components) and new ones (-1) in new clusters; the rows that are kept come last.

    Without `reassign` only what was clustered is estimated from, by its weights (equation (4)), and kept.
    """
    numbers = [int(k) for k in np.unique(past.y)]
    new = np.bincount(past.y[past.component < 0], minlength=int(past.y.max()) + 1)[numbers]
    clustered = new + old.count * (samples + 1.0)
    works = list(clustered**2 * (1 + settings.restarts))
    backend = workers_for(backend, works)
    backend.share(PastRecipe(past, old.centroids, components, settings))
    kernel = partial(regroup, components=components, samples=samples, reassign=reassign, settings=settings)
    run = run or QuietRun()
    tasks = MapOfParts(numbers, works, "HLM, class", run.restored())
    tasks.work_off(backend, run, part_by_part(kernel))
    parts = tasks.in_order()
    count = max(len(old.totals), int(past.y.max()) + 1)
    totals = np.bincount(past.y[past.component < 0], minlength=count).astype(np.float64)
    totals[: len(old.totals)] += old.totals
    component, mass, before = np.full(len(past.y), -1), np.ones(len(past.y)), 0
    for part in parts:
        component[part["rows"]], mass[part["rows"]] = before + part["labels"], part["mass"]
        before += part["clusters"].shape[1]
    kept = np.flatnonzero(component >= 0)
    grown = components_of(parts, numbers, components, totals, len(kept))
    model = mixture_model(replace(grown, centroids=np.searchsorted(kept, grown.centroids)), settings)
    return model, Past(past.D, past.y, component, mass).only(kept), kept
