"""A job that fits a classifier over distances, and what it writes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.families.clusters.job import check_distances, tell_asymmetry
from parallel_mix.families.hlm.file import tree_of
from parallel_mix.models.distances.pairwise import class_names, is_known
from parallel_mix.models.hlm.fit import HlmFit, check_classes, fit_hlm
from parallel_mix.models.hlm.incremental import Past
from parallel_mix.models.hlm.model import KERNEL, LARGEST_SHAPE, HlmModel, HlmSettings, check_settings
from parallel_mix.progress import plural
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.results import learnt_from_classes
from parallel_mix.store.tables import Table


def settings_of(options: Any) -> HlmSettings:
    """What decides the model; refused in words where options contradict each other."""
    chosen = [name for name in ("components", "kernel", "select") if getattr(options, name)]
    if len(chosen) > 1:
        raise InputError(f"--{chosen[0]} and --{chosen[1]} are two ways to say one thing: leave out one.")
    candidates: tuple[int, ...] = (options.components or 4,)
    if options.kernel:
        candidates = (KERNEL,)
    if options.select:
        candidates = candidates_of(options.select)
    if options.keep and options.weights:
        raise InputError("--keep knows no weights of rows: leave out --weights.")
    if options.keep and KERNEL in candidates:
        raise InputError("--keep is for models that grow, and Kernel HLM (`kernel`) does not: leave out one of them.")
    if KERNEL not in candidates and (options.kernel_shape or options.kernel_scale):
        raise InputError("--kernel-shape and --kernel-scale are for --kernel.")
    fixed = (options.clustering, options.shape, options.groups, options.restarts, options.folds, options.seed)
    settings = HlmSettings(candidates, *fixed, options.kernel_shape, options.kernel_scale, bool(options.select))
    check_settings(settings)
    return settings


def candidates_of(text: str) -> tuple[int, ...]:
    """1..10,12,kernel as numbers of components; KERNEL comes last."""
    counts: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?", part)
        if part.strip() == "kernel":
            counts.append(KERNEL)
        elif span and 1 <= int(span[1]) <= int(span[2] or span[1]):
            counts += range(int(span[1]), int(span[2] or span[1]) + 1)
        else:
            raise InputError(f"--select takes numbers, ranges and `kernel`, as 1..10,12,14,16,kernel; not {part!r}.")
    return tuple(sorted(set(counts), key=lambda count: count or np.inf))


class HlmJob:
    """One model."""

    def __init__(self, job: Job, table: Table, settings: HlmSettings) -> None:
        self.job, self.table, self.settings = job, table, settings
        self.keep: bool = job.options.keep  # type: ignore[attr-defined]
        check_distances(table)
        if table.y is None:
            raise InputError(f"{table.path} has no classes: name their dataset with --labels.")
        if settings.validate and learnt_from_classes(table.path):
            job.progress.say(
                f"{table.path} was made by vdm from the classes of all rows: errors of cross-validation are too low."
            )
        self.names, self.y = numbered(table)
        known = self.y >= 0
        check_classes(self.y)
        if self.keep and table.w is not None:
            raise InputError(f"--keep knows no weights of rows, and {table.path} has some: leave out one of them.")
        if self.keep and not known.all():
            raise InputError(f"{table.path} has rows without a class: leave them out, or --keep.")
        if not known.all():
            job.progress.say(f"{plural(int((~known).sum()), 'row')} without a class are left out.")
        self.symmetrize: bool = job.options.symmetrize  # type: ignore[attr-defined]
        self.matrix = job.staging.matrix(table, self.symmetrize)
        needs = "Ward's method" if settings.clustering == "ward" else "--keep" if self.keep else ""
        tell_asymmetry(job, self.matrix, table.path, needs)

    def intention(self) -> str:
        """What a dry run says."""
        counts = ", ".join(label_of(count) for count in self.settings.components)
        return f"Would fit {len(self.names)} classes with {counts} components each."

    def run(self) -> None:
        """Begin or go on, fit, write."""
        job = self.job
        decided = {**asdict(self.settings), "classes": fingerprint_of(self.y), "symmetrize": self.symmetrize}
        run = job.start(decided, unit="class fits")
        fit = fit_hlm(self.matrix, self.y, self.settings, job.backend, run, self.table.w)
        for line in tell(fit, self.settings):
            job.progress.say(line)
        data: dict[str, Any] = {
            "@dataset": job.options.dataset,  # type: ignore[attr-defined]
            "y": [[*self.names, ""][k] for k in self.y],
        }
        data |= {"rows": self.table.rows} if self.table.rows is not None else {}
        error = np.nan if fit.errors is None else float(np.nanmean(fit.errors, axis=1).min())
        history: dict[str, list[Any]] = {
            "rows": [fit.model.rows],
            "errors": [error],
            "schemes": [0],
            "digests": [job.digest],
        }
        past = None
        if self.keep:
            every = np.arange(len(self.y))
            past = Past.of(fit.model, self.matrix.among(every, every), self.y)
        tree = tree_of(fit, self.names, self.settings, self.table.rows, history, past)
        job.write("hlm", tree, self.table, data)


def numbered(table: Table, before: Sequence[str] = ()) -> tuple[list[str], np.ndarray]:
    """Names of the classes, those known before first, and the class of each row; -1 where it is not known."""
    assert table.y is not None  # noqa: S101
    known, y = is_known(table.y), class_names(table.y)
    names = [*before, *sorted({str(name) for name in y[known]} - set(before))]
    numbers = {name: k for k, name in enumerate(names)}
    return names, np.array([numbers[str(name)] if ok else -1 for name, ok in zip(y, known, strict=True)])


def fingerprint_of(y: np.ndarray) -> Fingerprint:
    """The classes of all rows as a part of a run's identity."""
    return Fingerprint(digest_of(y), "the classes differ")


def digest_of(y: np.ndarray) -> str:
    """A short digest of the classes of all rows."""
    return hashlib.sha256(np.ascontiguousarray(y, dtype="<i8").tobytes()).hexdigest()[:16]


def whole_classes(model: HlmModel) -> bool:
    """True where every class has rows for all its components."""
    return bool((np.bincount(model.classes, minlength=len(model.prior)) >= model.count).all())


def label_of(count: int) -> str:
    """A candidate in words."""
    return "kernel" if count == KERNEL else str(count)


def tell(fit: HlmFit, settings: HlmSettings) -> list[str]:
    """What was found, in words."""
    model, lines = fit.model, []
    if fit.errors is not None:
        means = 100.0 * np.nanmean(fit.errors, axis=1)
        shown = ", ".join(
            f"{label_of(count)}: {mean:.1f}" for count, mean in zip(settings.components, means, strict=True)
        )
        lines.append(f"errors in {settings.folds}-fold cross-validation, %: {shown}; chosen {label_of(model.count)}")
    shapes = ", ".join(f"{s:.3g}" for s in np.unique(model.estimated)[:6])
    most = f"{model.count} components a class" + (" or fewer" if not whole_classes(model) else "")
    kind = "Kernel HLM" if model.count == KERNEL else most
    lines.append(f"{kind}, {len(model.centroids):,} in all; shape s {shapes} (dimension {2 * model.s.max():g} at most)")
    if (model.estimated >= LARGEST_SHAPE).any():
        lines.append(f"distances within a component are all alike: shape s was cut off at {LARGEST_SHAPE:g}")
    if model.sums is not None:
        left, zeros = int((~model.sums.usable).sum()), int(model.sums.zeros.sum())
        if left == len(model.centroids):
            lines.append("No component has rows enough to estimate from: scale and shape are guesses; take fewer.")
        elif left or zeros:
            lines.append(
                f"left out of the estimation: {plural(left, 'small component')}, {plural(zeros, 'row')} on a centroid"
            )
    return lines
