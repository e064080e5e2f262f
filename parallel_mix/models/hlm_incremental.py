"""Models over distances that grow batch by batch (hlm.txt, section 4).

Scheme I clusters each batch by itself and joins what the estimation needs of all clusters: past data are not needed
again. Scheme II clusters the new rows together with some of each old cluster: its centroid and `samples` others, of
weight sqrt((|I_j| + 1) / (samples + 1)) where there were more; then all rows go to their nearest new centroid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.hlm_mixture import ClusterSums, estimate
from parallel_mix.models.distance_clustering import Group
from parallel_mix.models.hlm import HlmModel, HlmSettings, best_start

Ints = np.ndarray


def joined_models(old: HlmModel, batch: HlmModel, settings: HlmSettings) -> HlmModel:
    """Scheme I: the model of a batch added to an older one; its rows come after the older ones.

    The batch's classes are numbered as the old ones, new classes after them.
    """
    assert old.sums is not None  # noqa: S101 (a kernel model has none, and is refused before)
    assert batch.sums is not None  # noqa: S101
    count = len(batch.prior)
    totals = np.concatenate([old.totals, np.zeros(count - len(old.totals))]) + batch.totals
    spare = np.concatenate([old.spare, np.zeros(count - len(old.spare))])
    spare = np.where(spare > 0, spare, batch.spare)
    sums = ClusterSums.joined([old.sums, batch.sums])
    centroids = np.concatenate([old.centroids, old.rows + batch.centroids])
    return model_of(sums, centroids, totals, spare, old.rows + batch.rows, settings, old.count)


def model_of(
    sums: ClusterSums,
    centroids: Ints,
    totals: Array,
    spare: Array,
    rows: int,
    settings: HlmSettings,
    count: int,
) -> HlmModel:
    """A model from the sums of its clusters, class by class."""
    order = np.argsort(sums.classes, kind="stable")
    sums = ClusterSums(**{name: getattr(sums, name)[order] for name in ClusterSums.__dataclass_fields__})
    filled = np.where(spare > 0, spare, spare[spare > 0].mean() if (spare > 0).any() else 1.0)
    found = estimate(sums, filled, settings.shape, settings.groups)
    of_class = np.bincount(sums.classes, weights=sums.sizes, minlength=len(totals))
    weights = sums.sizes / of_class[sums.classes]
    shares = totals / totals.sum()
    scales = found.b, found.whole, found.s
    return HlmModel(count, shares, centroids[order], sums.classes, weights, *scales, sums, totals, spare, rows)


@dataclass(frozen=True)
class Past:
    """Rows that a model keeps, with all their distances and the component that each belongs to."""

    D: Array
    y: Ints
    component: Ints

    def extended(self, to_past: Array, among: Array, y: Ints) -> Past:
        """With a batch of new rows, which belong to no component (-1) yet."""
        n, m = len(self.y), len(y)
        D = np.empty((n + m, n + m), dtype=np.result_type(self.D, among))
        D[:n, :n], D[n:, :n], D[n:, n:], D[:n, n:] = self.D, to_past, among, to_past.T
        return Past(D, np.concatenate([self.y, y]), np.concatenate([self.component, np.full(len(y), -1)]))


@dataclass(frozen=True)
class PastRecipe:
    """What a worker needs: all rows, and the old centroids (as rows, class by class)."""

    past: Past
    centroids: Ints

    def load(self) -> PastRecipe:
        return self


@dataclass(frozen=True)
class Regrouped:
    """A class in its new clusters."""

    medoids: Ints  # rows
    rows: Ints
    labels: Ints  # of these rows, as numbers of medoids
    sums: ClusterSums
    spare: float


def chosen_rows(data: PastRecipe, number: int, samples: int, seed: int) -> tuple[Ints, Array]:
    """Rows of a class that are clustered anew, and their weights."""
    past = data.past
    here = past.y == number
    rows, weights = [np.flatnonzero(here & (past.component < 0))], []
    weights.append(np.ones(len(rows[0])))
    for component in np.unique(past.component[here & (past.component >= 0)]):
        centroid = data.centroids[component]
        others = np.setdiff1d(np.flatnonzero(here & (past.component == component)), [centroid])
        weight = 1.0
        if len(others) > samples:
            weight = float(np.sqrt((len(others) + 1.0) / (samples + 1.0)))
            others = np.random.default_rng([seed, number, int(component)]).choice(others, samples, replace=False)
        rows.append(np.concatenate([[centroid], others]))
        weights.append(np.full(len(others) + 1, weight))
    found, w = np.concatenate(rows), np.concatenate(weights)
    order = np.argsort(found)
    return found[order], w[order]


def regroup(
    data: PastRecipe, number: int, components: int, samples: int, reassign: bool, settings: HlmSettings
) -> Regrouped:
    """Cluster a class anew, from samples of its old clusters and all its new rows."""
    D, y = data.past.D, data.past.y
    chosen, w = chosen_rows(data, number, samples, settings.seed)
    inner = D[np.ix_(chosen, chosen)]
    group = Group(np.ascontiguousarray(inner.T), w)
    k = min(components, len(chosen))
    medoids = chosen[best_start(group, settings, k, [settings.seed, number])]
    rows = np.flatnonzero(y == number) if reassign else chosen
    near = D[np.ix_(rows, medoids)]
    labels = near.argmin(axis=1)
    places = np.searchsorted(rows, medoids)
    labels[places] = np.arange(k)
    u = np.asarray(near[np.arange(len(rows)), labels], dtype=np.float64) ** 2
    sums = ClusterSums.of(number, u, labels, places, None if reassign else w)
    positive = inner[inner > 0].astype(np.float64)
    return Regrouped(medoids, rows, labels, sums, float((positive**2).mean()) if positive.size else 0.0)


def regrouped_model(
    past: Past,
    old: HlmModel,
    components: int,
    samples: int,
    settings: HlmSettings,
    backend: Backend,
    reassign: bool = True,
) -> tuple[HlmModel, Past, Ints]:
    """Scheme II: past rows (with their components) and new ones (-1) in new clusters; the rows that are kept come last.

    Without `reassign` only what was clustered is estimated from, by its weights (equation (4)), and kept.
    """
    numbers = [int(k) for k in np.unique(past.y)]
    backend.share(PastRecipe(past, old.centroids))
    kernel = partial(regroup, components=components, samples=samples, reassign=reassign, settings=settings)
    found = dict(backend.map(kernel, numbers))
    parts = [found[k] for k in range(len(numbers))]
    count = max(len(old.totals), int(past.y.max()) + 1)
    totals = np.bincount(past.y[past.component < 0], minlength=count).astype(np.float64)
    totals[: len(old.totals)] += old.totals
    spare = np.zeros(count)
    spare[numbers] = [part.spare for part in parts]
    component, before = np.full(len(past.y), -1), 0
    for part in parts:
        component[part.rows] = before + part.labels
        before += len(part.medoids)
    centroids = np.concatenate([part.medoids for part in parts])
    sums = ClusterSums.joined([part.sums for part in parts])
    kept = np.flatnonzero(component >= 0)
    place = np.full(len(past.y), -1)
    place[kept] = np.arange(len(kept))
    D = past.D if len(kept) == len(past.y) else past.D[np.ix_(kept, kept)]
    smaller = Past(D, past.y[kept], component[kept])
    model = model_of(sums, place[centroids], totals, spare, len(kept), settings, components)
    return model, smaller, kept
