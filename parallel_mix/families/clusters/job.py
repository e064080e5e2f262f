"""A job that clusters by distances: what it asks of the matrix, and what it writes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.backends.threads import available_cores
from parallel_mix.backends.usage import available_memory
from parallel_mix.errors import InputError
from parallel_mix.families.clusters.file import tree_of
from parallel_mix.families.distances.file import names
from parallel_mix.models.clusters.clustering import check_counts, cluster_distances
from parallel_mix.models.core.sources import MatrixSource
from parallel_mix.models.distances.checks import asymmetry_of, can_be_squared
from parallel_mix.models.distances.pairwise import class_names, is_known
from parallel_mix.progress import plural
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Table

ON_DIAGONAL = 1e-6
"""Of the largest distance: what rounding may leave of a thing's distance to itself."""


class ClustersJob:
    """Clusterings of one matrix."""

    def __init__(self, job: Job, table: Table, options: Any) -> None:
        self.job, self.table, self.options = job, table, options
        check_distances(table)
        self.classes: list[str] | None = None
        self.groups: list[np.ndarray] | None = None
        if options.by_class is not None:
            if table.y is None:
                raise InputError(f"{table.path} has no classes {options.by_class!r}: name their dataset.")
            if not is_known(table.y).all():
                row = int(np.flatnonzero(~is_known(table.y))[0])
                raise InputError(f"The class of row {row + 1} of {table.path} is not known: leave such rows out.")
            y = class_names(table.y)
            self.classes = sorted({str(name) for name in y})
            self.groups = [np.flatnonzero(y == name) for name in self.classes]
        else:
            check_counts(options.clusters, table.count)
        self.shard = self.in_shards()
        self.matrix = job.staging.matrix(table, options.symmetrize)
        tell_asymmetry(job, self.matrix, table.path, "Ward's method" if options.method == "ward" else "")

    def in_shards(self) -> bool:
        """True where no worker should hold the whole matrix."""
        options, backend = self.options, self.job.backend
        possible = options.method == "vsh" and self.groups is None and min(options.clusters) > 1
        if options.shard and not possible:
            raise InputError("--shard is for vsh of all rows, into two clusters or more.")
        at_once = 1 if backend.shares_memory else min(backend.size, available_cores())
        needed, there = 8 * self.table.count**2 * at_once, available_memory()
        if needed > there and self._held_once():
            needed //= at_once
        too_large = self.groups is None and needed > there
        if too_large and not possible:
            raise InputError(
                f"The matrix takes some {needed / 2**30:.1f} GiB in {plural(at_once, 'worker')} of a host, which has "
                f"{there / 2**30:.1f}: use fewer workers, or vsh into two clusters or more, which spreads its rows."
            )
        return possible and (options.shard or too_large)

    def _held_once(self) -> bool:
        """True where the workers of a host share one copy.

        None needs the transpose or the mean of both; Dask's are told from each other, and ended, by what each maps.
        """
        matrix, options = self.table.matrix, self.options
        other = options.symmetrize or options.method == "ward" or self.job.backend.limits_memory
        return not other and isinstance(matrix, StoredMatrix) and matrix.is_mapped and asymmetry_of(matrix) == 0

    def intention(self) -> str:
        """What a dry run says."""
        counts = ", ".join(map(str, self.options.clusters))
        each = "" if self.classes is None else f" in each of {len(self.classes)} classes"
        return f"Would cluster {self.table.count:,} rows by {self.options.method} into {counts} clusters{each}."

    def run(self) -> None:
        """Begin or go on, cluster, write."""
        options, job = self.options, self.job
        decided = {name: getattr(options, name) for name in ("method", "clusters", "by_class", "symmetrize", "seed")}
        known = digest_of_groups(self.groups) if self.groups is not None else None
        decided |= {"classes": known} if known is not None else {}
        decided |= {"restarts": options.restarts} if options.method == "vsh" else {}
        marked = {} if known is None else {"classes": Fingerprint(known, "the classes differ")}
        clusterings = cluster_distances(
            self.matrix,
            options.method,
            options.clusters,
            groups=self.groups,
            w=self.table.w,
            restarts=options.restarts,
            seed=options.seed,
            backend=job.backend,
            run=job.start(decided | marked, unit="starts"),
            largest=self.table.survey.highest if self.shard else None,
        )
        for clustering in clusterings.values():
            job.progress.say(f"{plural(len(clustering.medoids), 'cluster')}: total distance {clustering.loss:.9g}.")
        kept = {"@dataset": options.dataset, **names(self.table)}
        job.write("clusters", tree_of(clusterings, decided, self.classes), self.table, kept)


def digest_of_groups(groups: list[np.ndarray]) -> str:
    """Groups in a word."""
    return hashlib.sha256(b"|".join(np.ascontiguousarray(rows, dtype="<i8").tobytes() for rows in groups)).hexdigest()[
        :16
    ]


def tell_asymmetry(job: Job, matrix: MatrixSource, path: Path, needs_symmetry: str = "") -> None:
    """Say how far there and back are apart; refuse it where something needs them to be alike."""
    if (apart := asymmetry_of(matrix)) > 0:
        text = f"{path} is not symmetric (apart by up to {apart:.2g} of the largest distance)"
        if needs_symmetry:
            raise InputError(f"{text}, as {needs_symmetry} needs it: --symmetrize takes the mean.")
        job.progress.say(f"{text}: a row's distances are those in its row. --symmetrize takes the mean.")


def check_distances(table: Table, all_may_be_zero: bool = False, new: bool = False) -> None:
    """Refuse what is no distance."""
    if table.survey.lowest < 0:
        i, j = table.survey.lowest_at
        raise InputError(
            f"The distance of rows {i + 1} and {j + 1} of {table.path} is {table.survey.lowest:g}: distances are not "
            "negative. (Similarities become distances by `parallel-mix distances --from-similarity`.)"
        )
    n, m = table.matrix.shape
    if n == m and not new and table.survey.diagonal > ON_DIAGONAL * table.survey.highest:
        raise InputError(
            f"The distance of row {table.survey.diagonal_at + 1} of {table.path} to itself is "
            f"{table.survey.diagonal:g}: it must be 0. (Similarities become distances by `parallel-mix distances "
            "--from-similarity`.)"
        )
    if table.survey.highest == 0 and not all_may_be_zero:
        raise InputError(f"All distances of {table.path} are 0: there is nothing to tell rows apart.")
    if n == m and not new and not can_be_squared(table.survey.highest):
        raise InputError(
            f"The largest distance of {table.path} is {table.survey.highest:g}: squares of such are no numbers any "
            "more. Take another unit."
        )
