"""A classifier by mixtures over distances: its settings and parameters, and how these come of its clusters' sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density import Array
from parallel_mix.kernels.gamma_shape import LARGEST_SHAPE as LARGEST_SHAPE
from parallel_mix.kernels.gamma_shape import whole_dimension
from parallel_mix.kernels.hlm_mixture import SHAPES, ClusterSums, estimate, kernel_parameters, log_densities, posteriors
from parallel_mix.models.distance_groups import CLUSTERINGS
from parallel_mix.models.parts import Arrays

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
    validate: bool = False  # cross-validate a lone candidate, too


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


def kernel_model(parts: Sequence[Arrays], totals: Array, rows: int, settings: HlmSettings) -> HlmModel:
    """Kernel HLM of all classes from their parts."""
    spare = np.array([part["spare"] for part in parts])
    of_class = [part["rows"] for part in parts]
    nearest = np.concatenate([part["nearest"] for part in parts if "nearest" in part] or [np.empty(0)])
    s, b = kernel_parameters(nearest, float(filled(spare).mean()), settings.kernel_shape)
    b = settings.kernel_scale or b
    m = sum(map(len, of_class))
    classes = np.repeat(np.arange(len(parts)), [len(one) for one in of_class])
    weights = np.concatenate([np.full(len(one), 1.0 / max(len(one), 1)) for one in of_class])
    scales = np.full(m, b), np.full(m, whole_dimension(s)), np.full(m, s)
    prior, centroids = totals / totals.sum(), np.concatenate(of_class)
    return HlmModel(KERNEL, prior, centroids, classes, weights, *scales, None, totals, spare, rows)


def filled(spare: Array) -> Array:
    """What stands in where nothing is known of a class: the mean of the others."""
    some = spare[spare > 0]
    return np.where(spare > 0, spare, some.mean() if len(some) else 1.0)


def mixture_model(
    sums: ClusterSums, centroids: Ints, totals: Array, spare: Array, rows: int, settings: HlmSettings, count: int
) -> HlmModel:
    """A model from the sums of its clusters, class by class."""
    order = np.argsort(sums.classes, kind="stable")
    sums = ClusterSums(**{name: getattr(sums, name)[order] for name in ClusterSums.__dataclass_fields__})
    found = estimate(sums, filled(spare), settings.shape, settings.groups)
    of_class = np.bincount(sums.classes, weights=sums.sizes, minlength=len(totals))
    weights = sums.sizes / of_class[sums.classes]
    scales, prior = (found.b, found.whole, found.s), totals / totals.sum()
    return HlmModel(count, prior, centroids[order], sums.classes, weights, *scales, sums, totals, spare, rows)


def put_together(parts: Sequence[Arrays], count: int, totals: Array, rows: int, settings: HlmSettings) -> HlmModel:
    """The model of all classes from their parts."""
    if count == KERNEL:
        return kernel_model(parts, totals, rows, settings)
    found = [clusters_of(part["clusters"], k, count) for k, part in enumerate(parts)]
    sums = ClusterSums.joined([one for _, one in found])
    centroids = np.concatenate([medoids for medoids, _ in found])
    spare = np.array([part["spare"] for part in parts])
    return mixture_model(sums, centroids, totals, spare, rows, settings, count)


def as_clusters(count: int, medoids: Ints, sums: ClusterSums) -> Array:
    """A clustering into `count` clusters, or fewer, as one table: a column each, of `count`, medoid and `FIELDS`."""
    return np.stack([np.full(len(medoids), float(count)), medoids, *(getattr(sums, name) for name in FIELDS)])


def clusters_of(table: Array, number: int, count: int) -> tuple[Ints, ClusterSums]:
    """The medoids and sums of class `number` from such tables side by side."""
    _, medoids, *rest = table[:, table[0] == count]
    values = dict(zip(FIELDS, rest, strict=True))
    values |= {name: values[name].astype(np.int64) for name in ("points", "zeros")}
    return medoids.astype(np.int64), ClusterSums(classes=np.full(len(medoids), number), **values)


def check_settings(settings: HlmSettings) -> None:
    """Refuse what no model can be made by."""
    if settings.clustering not in CLUSTERINGS:
        raise InputError(f"There is no clustering {settings.clustering!r}: use {', '.join(CLUSTERINGS)}.")
    if settings.shape not in SHAPES:
        raise InputError(f"There is no shape {settings.shape!r}: use {', '.join(SHAPES)}.")
    if not settings.components or min(settings.components) < 0:
        raise InputError(f"Components must be numbers of 1 or more, or 0 for a kernel; not {settings.components}.")
    for name, least in (("groups", 1), ("restarts", 1), ("folds", 2)):
        if getattr(settings, name) < least:
            raise InputError(f"There must be {least} {name} or more, not {getattr(settings, name)}.")
    for name in ("kernel_shape", "kernel_scale"):
        if (value := getattr(settings, name)) is not None and not value > 0:
            raise InputError(f"The {name.replace('_', ' ')} must be above 0, not {value:g}.")
