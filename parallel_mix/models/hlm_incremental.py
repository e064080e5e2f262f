"""Models over distances that grow batch by batch (hlm.txt, section 4).

Scheme I clusters each batch by itself and joins what the estimation needs of all clusters: past data are not needed
again. Scheme II clusters the new rows together with some of each old cluster: its centroid and `samples` others, of
weight sqrt((|I_j| + 1) / (samples + 1)) where there were more; then all rows go to their nearest new centroid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.hlm_mixture import ClusterSums
from parallel_mix.models.distance_clustering import Group, best_of_starts
from parallel_mix.models.hlm import best_start, parts_of_state, state_of_parts
from parallel_mix.models.hlm_model import FIELDS, HlmModel, HlmSettings, mixture_model, sums_of
from parallel_mix.models.run import HowFar, QuietRun, Run
from parallel_mix.models.tiles import work_off

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
    return mixture_model(sums, centroids, totals, spare, old.rows + batch.rows, settings, old.count)


@dataclass(frozen=True)
class Past:
    """Rows that a model keeps, with all their distances, and the component that each belongs to.

    Where rows were dropped the others of their component stand for them, too: that is their mass.
    """

    D: Array
    y: Ints
    component: Ints
    mass: Array

    def extended(self, to_past: Array, among: Array, y: Ints) -> Past:
        """With a batch of new rows, which belong to no component (-1) yet."""
        n, m = len(self.y), len(y)
        D = np.empty((n + m, n + m), dtype=np.result_type(self.D, among))
        D[:n, :n], D[n:, :n], D[n:, n:], D[:n, n:] = self.D, to_past, among, to_past.T
        component, mass = np.concatenate([self.component, np.full(m, -1)]), np.concatenate([self.mass, np.ones(m)])
        return Past(D, np.concatenate([self.y, y]), component, mass)


@dataclass(frozen=True)
class PastRecipe:
    """What a worker needs: all rows, and the old centroids (as rows, class by class)."""

    past: Past
    centroids: Ints

    def load(self) -> PastRecipe:
        return self


Regrouped = dict[str, Any]
"""A class in its new clusters: `medoids` and `rows`, the `labels` of these (numbers of medoids), their `mass`, the
fields of the clusters' sums, and `spare`."""


def chosen_rows(data: PastRecipe, number: int, samples: int, seed: int) -> tuple[Ints, Array, Array]:
    """Rows of a class that are clustered anew, in rising order, their weights, and how many each stands for."""
    rows = np.flatnonzero(data.past.y == number)
    of, mass = data.past.component[rows], data.past.mass[rows]
    keys = np.random.default_rng([seed, number]).random(len(rows))
    keys[np.isin(rows, data.centroids)] = -1.0  # first of its component, and not counted as a sample
    order = np.lexsort((keys, of))
    counts = np.bincount(of + 1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = (of < 0) | (place <= samples)
    kept = np.bincount(of[chosen] + 1, minlength=len(counts))
    stands_for = np.bincount(of + 1, weights=mass) / np.maximum(kept, 1)
    stands_for[0] = 1.0  # new rows
    return rows[chosen], np.sqrt(stands_for[of + 1])[chosen], stands_for[of + 1][chosen]


def regroup(
    data: PastRecipe, number: int, components: int, samples: int, reassign: bool, settings: HlmSettings
) -> Regrouped:
    """Cluster a class anew, from samples of its old clusters and all its new rows."""
    D, y = data.past.D, data.past.y
    chosen, w, stands_for = chosen_rows(data, number, samples, settings.seed)
    inner = D[np.ix_(chosen, chosen)]
    group = Group(np.ascontiguousarray(inner.T), w)
    k = min(components, len(chosen))
    known = np.searchsorted(chosen, np.intersect1d(data.centroids, chosen))
    medoids = chosen[best_grown(group, settings, k, known, [settings.seed, number])]
    rows = np.flatnonzero(y == number) if reassign else chosen
    near = D[np.ix_(rows, medoids)]
    labels = near.argmin(axis=1)
    places = np.searchsorted(rows, medoids)
    labels[places] = np.arange(k)
    u = np.asarray(near[np.arange(len(rows)), labels], dtype=np.float64) ** 2
    sums = ClusterSums.of(number, u, labels, places, None if reassign else w)
    positive = inner[inner > 0].astype(np.float64)
    mass = data.past.mass[rows] if reassign else stands_for
    found = {"medoids": medoids, "rows": rows, "labels": labels, "mass": mass}
    found["spare"] = float((positive**2).mean()) if positive.size else 0.0
    return found | {name: getattr(sums, name) for name in FIELDS}


def best_grown(group: Group, settings: HlmSettings, k: int, known: Ints, seeds: list[int]) -> Ints:
    """Medoids of the least loss; starts of vsh are the medoids known before, made up to k at random.

    They begin near their ends, so that a quarter of the restarts is enough.
    """
    if settings.clustering != "vsh" or k == 1:
        return best_start(group, settings, k, seeds)
    numbers = np.random.default_rng([*seeds, k]).random((-(-settings.restarts // 4), len(group.w)))
    numbers[:, known] -= 1.0
    begun = np.sort(np.argpartition(numbers, k - 1, axis=1)[:, :k], axis=1)
    return best_of_starts(group, "vsh", k, begun)[2]


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
    run = run or QuietRun()
    numbers = [int(k) for k in np.unique(past.y)]
    found = parts_of_state(run.restored())
    done = np.array([k in found for k in range(len(numbers))])
    backend.share(PastRecipe(past, old.centroids))
    kernel = partial(regroup, components=components, samples=samples, reassign=reassign, settings=settings)

    def how_far() -> HowFar:
        return float(done.sum()), float(len(numbers)), f"HLM, class {int(done.sum())}/{len(numbers)}"

    work_off(
        backend, run, kernel, numbers, done, found.__setitem__, lambda: state_of_parts(found, int(done.sum())), how_far
    )
    parts = [found[k] for k in range(len(numbers))]
    count = max(len(old.totals), int(past.y.max()) + 1)
    totals = np.bincount(past.y[past.component < 0], minlength=count).astype(np.float64)
    totals[: len(old.totals)] += old.totals
    spare, component, mass, before = np.zeros(count), np.full(len(past.y), -1), np.ones(len(past.y)), 0
    for number, part in zip(numbers, parts, strict=True):
        spare[number], mass[part["rows"]] = part["spare"], part["mass"]
        component[part["rows"]] = before + part["labels"]
        before += len(part["medoids"])
    centroids = np.concatenate([part["medoids"] for part in parts])
    sums = ClusterSums.joined([sums_of(part, number) for number, part in zip(numbers, parts, strict=True)])
    kept = np.flatnonzero(component >= 0)
    place = np.full(len(past.y), -1)
    place[kept] = np.arange(len(kept))
    D = past.D if len(kept) == len(past.y) else past.D[np.ix_(kept, kept)]
    smaller = Past(D, past.y[kept], component[kept], mass[kept])
    model = mixture_model(sums, place[centroids], totals, spare, len(kept), settings, components)
    return model, smaller, kept
