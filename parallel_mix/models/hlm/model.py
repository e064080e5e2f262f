"""A classifier by mixtures over distances: its settings, its parameters, and their estimation from sums of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.mixtures.gamma_shape import LARGEST_SHAPE as LARGEST_SHAPE
from parallel_mix.kernels.mixtures.gamma_shape import whole_dimension
from parallel_mix.kernels.mixtures.hlm_mixture import FIELDS as FIELDS
from parallel_mix.kernels.mixtures.hlm_mixture import (
    SHAPES,
    ClusterSums,
    estimate,
    kernel_parameters,
    log_densities,
    posteriors,
)
from parallel_mix.models.clusters.groups import CLUSTERINGS
from parallel_mix.models.core.tasks import Arrays

Ints = np.ndarray
KERNEL = 0
"""The candidate that stands for Kernel HLM among numbers of components."""


@dataclass(frozen=True)
class HlmSettings:
    """The options that decide a model, besides the data."""

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
class Components:
    """The components of all classes, class by class, and what an estimation needs of them."""

    count: int  # components of each class; KERNEL
    centroids: Ints  # (m) rows
    classes: Ints  # (m)
    sums: ClusterSums | None  # Kernel HLM has none
    totals: Array  # (K) rows of each class, or their weights
    spare: Array  # (K) mean squared distance within the class, where nothing better is known
    rows: int  # that were clustered


@dataclass(frozen=True)
class HlmModel(Components):
    """A classifier: components with their scales and shapes."""

    prior: Array  # (K)
    weights: Array  # (m) within the class
    b: Array
    s: Array  # as used, whole dimensions
    estimated: Array  # s as estimated

    def log_densities(self, squares: Array) -> Array:
        """The log density log phi(z | class) of each class (columns), from squared distances to the components."""
        return log_densities(squares, self.b, self.s, np.log(self.weights), self.classes, len(self.prior))

    def posteriors(self, D: Array) -> Array:
        """The posterior p(class | z) of each class (columns), from distances to the components."""
        return posteriors(self.log_densities(np.asarray(D, dtype=np.float64) ** 2), self.prior)


def kernel_model(parts: Sequence[Arrays], totals: Array, rows: int, settings: HlmSettings) -> HlmModel:
    """The model of Kernel HLM, from the results of the parts of all classes."""
    spare = np.array([part["spare"] for part in parts])
    of_class = [part["rows"] for part in parts]
    some = [part for part in parts if "nearest" in part]
    nearest, w = (np.concatenate([part[name] for part in some] or [np.empty(0)]) for name in ("nearest", "w"))
    s, b = kernel_parameters(nearest, w, float(filled(spare).mean()), settings.kernel_shape)
    b = settings.kernel_scale or b
    m = sum(map(len, of_class))
    classes = np.repeat(np.arange(len(parts)), [len(one) for one in of_class])
    weights = np.concatenate([part["w"] / part["w"].sum() if len(part["rows"]) else np.empty(0) for part in parts])
    scales = np.full(m, b), np.full(m, whole_dimension(s)), np.full(m, s)
    known = KERNEL, np.concatenate(of_class), classes, None, totals, spare, rows
    return HlmModel(*known, totals / totals.sum(), weights, *scales)


def filled(spare: Array) -> Array:
    """Mean squared distances of all classes, where a class that has none (0) is given the mean of the others."""
    if spare.all():
        return spare
    some = spare[spare > 0]
    return np.where(spare > 0, spare, some.mean() if len(some) else 1.0)


def mixture_model(components: Components, settings: HlmSettings) -> HlmModel:
    """The model of these components, with its scales and shapes estimated."""
    sums = components.sums
    assert sums is not None  # noqa: S101 (Kernel HLM has `kernel_model`)
    known = (
        components.count,
        components.centroids,
        components.classes,
        sums,
        components.totals,
        components.spare,
        components.rows,
    )
    of = estimate(sums, filled(components.spare), settings.shape, settings.groups)
    of_class = np.bincount(sums.classes, weights=sums.sizes, minlength=len(components.totals))
    prior, weights = components.totals / components.totals.sum(), sums.sizes / of_class[sums.classes]
    return HlmModel(*known, prior, weights, of.b, of.whole, of.s)


def model_of(parts: Sequence[Arrays], count: int, totals: Array, rows: int, settings: HlmSettings) -> HlmModel:
    """The model of `count` components a class (or of Kernel HLM), from the results of the parts of all classes."""
    if count == KERNEL:
        return kernel_model(parts, totals, rows, settings)
    return mixture_model(components_of(parts, range(len(parts)), count, totals, rows), settings)


def components_of(parts: Sequence[Arrays], numbers: Sequence[int], count: int, totals: Array, rows: int) -> Components:
    """The clusterings into `count` clusters of the classes of these numbers; of all classes there are `totals`."""
    tables, spare = [part["clusters"] for part in parts], np.zeros(len(totals))
    spare[list(numbers)] = [part["spare"] for part in parts]
    table = np.concatenate(tables, axis=1)
    here = table[0] == count
    classes = np.repeat(numbers, [one.shape[1] for one in tables])[here]
    sums = ClusterSums(classes, table[2:, here])
    return Components(count, table[1, here].astype(np.int64), classes, sums, totals, spare, rows)


def as_clusters(count: int, medoids: Ints, sums: Array) -> Array:
    """A clustering into `count` clusters, or fewer, as a table: each column has `count`, a medoid and its `FIELDS`."""
    table = np.empty((2 + len(FIELDS), len(medoids)))
    table[0], table[1], table[2:] = count, medoids, sums
    return table


def check_settings(settings: HlmSettings) -> None:
    """Refuse settings by which no model can be made."""
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
