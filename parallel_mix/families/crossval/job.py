"""A job that compares classifiers by cross-validation, and what it writes."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError, ParallelMixError
from parallel_mix.evaluate.crossval import Comparison, compare, fold_number
from parallel_mix.evaluate.data import KINDS, RowsRecipe
from parallel_mix.evaluate.fold_tasks import CrossvalRecipe, predictions
from parallel_mix.evaluate.methods import check_kinds, known_methods, method_named, with_grid
from parallel_mix.evaluate.partitions import WHOLE, Partition, Protocol, check_protocol, partition_of
from parallel_mix.families.clusters.job import check_distances, tell_asymmetry
from parallel_mix.families.crossval.file import fold_name, tree_of
from parallel_mix.families.distances.job import identity_of_function
from parallel_mix.families.hlm.fit_job import digest_of, numbered
from parallel_mix.models.core.methods import Method
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.progress import plural
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.results import learnt_from_classes
from parallel_mix.store.stored_matrix import holds
from parallel_mix.store.tables import Selection, Table


def protocol_of(options: Any) -> Protocol:
    """The protocol that options ask for."""
    return Protocol(options.partitions, options.test, options.folds, options.stratified, options.seed)


def methods_of(options: Any) -> tuple[Method, ...]:
    """The classifiers, with the grids of a file."""
    methods = [method_named(name) for name in dict.fromkeys(options.classifiers)]
    grids = grids_in(options.grid) if options.grid else {}
    known = {key: method for method in methods for key in (method.name, method.title)}
    for name in grids:
        if name not in known:
            raise InputError(f"{options.grid} has a grid for {name!r}, which is none of the classifiers asked for.")
    for name, grid in grids.items():
        place = methods.index(known[name])
        methods[place] = with_grid(methods[place], grid)
    return tuple(methods)


def grids_in(path: Path) -> dict[str, dict[str, Any]]:
    """Grids by the names of classifiers: [knn] n_neighbors = [1, 3, 5]."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The grid {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The grid {path} is no TOML: {error}.") from error
    if odd := [name for name, grid in content.items() if not isinstance(grid, dict)]:
        raise InputError(f"{path}: {odd[0]} stands outside of a section: begin with [classifier].")
    return content


def kind_of_input(options: Any) -> str:
    """What the input is: as the option says, distances where it has some, else vectors."""
    if options.metric is not None:
        if options.kind not in (None, "distances"):
            raise InputError(f"--metric {options.metric} gives distances: leave out --kind {options.kind}.")
        return "distances"
    if options.kind is not None:
        return str(options.kind)
    return "distances" if holds(options.input, options.dataset or "distances") else "vectors"


def selection_of(options: Any, kind: str) -> Selection:
    """What is read of the input."""
    is_table = kind == "vectors" or options.metric is not None
    usual = "X" if is_table else {"distances": "distances", "similarities": "S"}[kind]
    there = [name for name in (usual, "X") if holds(options.input, name)]
    dataset = options.dataset or (there or [usual])[0]
    table = "categories" if options.metric else "numbers" if is_table else "matrix"
    chosen = (options.columns, options.drop) if is_table else (None, None)
    return Selection(dataset, None, options.labels, options.row_names, table, *chosen)


class CrossvalJob:
    """One comparison."""

    def __init__(self, job: Job, table: Table, kind: str, methods: tuple[Method, ...], protocol: Protocol) -> None:
        self.job, self.table, self.kind, self.methods, self.protocol = job, table, kind, methods, protocol
        options: Any = job.options
        if table.y is None:
            raise InputError(f"{table.path} has no classes: name their dataset or column with --labels.")
        self.learns = getattr(options, "metric", None) is not None
        self.is_table = kind == "vectors" or self.learns
        self.names, y = numbered(table)
        self.classes = digest_of(y)
        self.known = np.flatnonzero(y >= 0)
        if len(self.known) < len(y):
            job.progress.say(f"{plural(len(y) - len(self.known), 'row')} without a class are left out.")
        self.y = y[self.known]
        check_protocol(self.y, protocol)
        self.conversion = self._check_kinds(options.from_similarity)
        self._warn_of_classes()

    def _check_kinds(self, conversion: str | None) -> str:
        check_kinds(self.methods, self.kind)
        options: Any = self.job.options
        if self.kind == "distances" and not self.learns:
            check_distances(self.table)
            self._warn_of_leak()
        if self.kind == "similarities" and self.table.survey.diagonal == 0:
            raise InputError(
                f"All rows of {self.table.path} have the similarity 0 to themselves: these are distances (--kind)."
            )
        if self.is_table and options.symmetrize:
            raise InputError("--symmetrize is for a matrix, and the input is a table (--kind).")
        for name in ("columns", "drop"):
            if not self.is_table and getattr(options, name, None):
                raise InputError(f"--{name} is for a table, and the input holds {self.kind} (--kind).")
        needs = [m.name for m in self.methods if m.takes == "distances"]
        if self.kind == "similarities" and needs and conversion is None:
            raise InputError(
                f"{needs[0]} takes distances: say how they are made of similarities, --from-similarity bound (the "
                "largest less S) or inverse (1/S)."
            )
        if self.kind != "similarities" and conversion is not None:
            raise InputError(
                f"--from-similarity is for similarities, and {self.table.path} holds {self.kind} (--kind)."
            )
        return conversion or "inverse"

    def _warn_of_leak(self) -> None:
        """Distances that were learnt from classes know those of the test rows, too."""
        if learnt_from_classes(self.table.path):
            self.job.progress.say(
                f"{self.table.path} was made by vdm from the classes of all rows, test rows too: errors come out too "
                "low. Give the table itself with --metric vdm, which learns from training rows alone."
            )

    def _warn_of_classes(self) -> None:
        counts = np.bincount(self.y)
        if (counts < self.protocol.folds).any():
            fewest, small = int(counts.argmin()), int((counts < self.protocol.folds).sum())
            others = f" ({small} of {len(counts)} classes are so small)" if small > 1 else ""
            self.job.progress.say(
                f"class {self.names[fewest]!r} has {plural(int(counts[fewest]), 'row')}, fewer than there are folds "
                f"({self.protocol.folds}): some are without it{others}."
            )
        absent = [
            p for p in range(self.protocol.partitions)
            if len(np.unique(self.y[self._partition(p).fold >= 0])) < len(self.names)
        ]  # fmt: skip
        if absent:
            self.job.progress.say(
                f"in {plural(len(absent), 'partition')} a class has test rows alone: these are counted as wrong. "
                "(--stratified divides each class.)"
            )

    def _partition(self, number: int) -> Partition:
        return partition_of(self.y, self.protocol, number)

    def intention(self) -> str:
        """What a dry run says."""
        fits = sum(len(m.settings) * self.protocol.folds * (len(m.settings) > 1) + 1 for m in self.methods)
        return (
            f"Would compare {plural(len(self.methods), 'classifier')} on {self.protocol.partitions} partitions of "
            f"{len(self.y):,} rows of {len(self.names)} classes, {fits * self.protocol.partitions:,} fits in all."
        )

    def recipe(self) -> CrossvalRecipe:
        """What workers need."""
        options: Any = self.job.options
        if self.is_table:
            values: Any = self.table.X
        else:
            values = self.job.staging.matrix(self.table, options.symmetrize)
            tell_asymmetry(self.job, values, self.table.path)
        if len(self.known) < self.table.count:
            if self.is_table:
                values = values[self.known]
            else:
                values = HeldMatrix(np.ascontiguousarray(values.among(self.known, self.known)))
        return CrossvalRecipe(
            RowsRecipe(values, self.kind, self.y, tuple(self.names), self.conversion, self.learns),
            self.methods,
            self.protocol,
        )

    def run(self) -> None:
        """Begin or go on, compare, write."""
        job, recipe = self.job, self.recipe()
        if job.options.only_task is not None:
            self._only(recipe, job.options.only_task)
            return
        comparison = compare(recipe, job.backend, job.start(self.decided | self._fingerprints(), unit="folds"))
        self._write(comparison)
        job.progress.say(comparison.table(name=self.table.path.stem).rstrip())
        self._complain(comparison)

    @property
    def decided(self) -> dict[str, Any]:
        """What decides the answer, besides the data."""
        methods = [[m.name, m.where, dict(m.fixed), {k: list(v) for k, v in m.grid.items()}] for m in self.methods]
        known = known_methods()
        own = [
            {key: mark.value for key, mark in identity_of_function(m.where).items()}
            for m in self.methods
            if m.name not in known
        ]
        return {
            **asdict(self.protocol),
            "classifiers": json.dumps(methods),
            **({"files of classifiers": json.dumps(own)} if own else {}),
            "classes": self.classes,
            "kind": self.kind,
            **({"metric": "vdm"} if self.learns else {}),
            "conversion": self.conversion,
            "symmetrize": self.job.options.symmetrize,  # type: ignore[attr-defined]
        }

    def _fingerprints(self) -> dict[str, Fingerprint]:
        """What of this says nothing to a person."""
        sentences = {
            "classifiers": "the classifiers, or what they choose from, differ",
            "files of classifiers": "the file of a classifier has changed",
            "classes": "the classes differ",
        }
        decided = self.decided
        return {key: Fingerprint(decided[key], text) for key, text in sentences.items() if key in decided}

    @property
    def identity(self) -> str:
        """Data and all that decides the answer, in a word."""
        return hashlib.sha256(json.dumps([self.job.digest, self.decided]).encode()).hexdigest()[:16]

    def _write(self, comparison: Comparison) -> None:
        job = self.job
        about = {
            "@protocol": json.dumps(asdict(self.protocol)),
            "@identity": self.identity,
            "@kind": self.kind,
            "@conversion": self.conversion,
            "@metric": "vdm" if self.learns else "",
        }
        tree = tree_of(about, self.names, self.y, comparison)
        data: dict[str, Any] = {"known": self.known}
        data |= {"rows": [self.table.rows[k] for k in self.known]} if self.table.rows is not None else {}
        times = {
            "seconds": {f"{m:03d}": marks.seconds for m, marks in enumerate(comparison.marks)},
            "refits": {f"{m:03d}": marks.fits for m, marks in enumerate(comparison.marks)},
        }
        failed = sum(len(marks.failures) for marks in comparison.marks)
        how = f"finished, {plural(failed, 'fit')} failed" if failed else "finished"
        job.write("crossval", tree, self.table, data, run=times, how=how)

    def _complain(self, comparison: Comparison) -> None:
        """End with the failures, where there are some."""
        failed = [
            (m, *where, text) for m, marks in enumerate(comparison.marks) for where, text in marks.failures.items()
        ]
        if not failed:
            return
        m, p, fold, text = failed[0]
        raise ParallelMixError(
            f"{plural(len(failed), 'fit')} failed, all others are in {self.job.output}. The first: "
            f"{self.methods[m].name}, partition {p}, {fold_name(fold)}:\n{text.rstrip()}\nTo run it alone, here: the "
            f"same command with --only-task {fold_number(m, p, fold, self.protocol)}."
        )

    def _only(self, recipe: CrossvalRecipe, number: int) -> None:
        """One fold again, its exception as it comes."""
        folds = self.protocol.folds
        m, rest = divmod(number, self.protocol.partitions * (folds + 1))
        p, fold = divmod(rest, folds + 1)
        if not 0 <= m < len(self.methods):
            last = len(self.methods) * self.protocol.partitions * (folds + 1) - 1
            raise InputError(f"There is no task {number}: this run has tasks 0 to {last}.")
        exam = recipe.load()
        train, test = exam.partition(p).rows(WHOLE if fold == folds else fold)
        method, seed = self.methods[m], self.protocol.seed
        for _, outcome in predictions(exam.rows, method, method.settings, train, test, seed):
            if isinstance(outcome, BaseException):
                raise outcome
        self.job.progress.say(f"Task {number} ({method.name}, partition {p}) ran without an error.")


def check_kind(kind: str | None) -> None:
    """Refuse a kind of input that is none."""
    if kind not in (None, *KINDS):
        raise InputError(f"There is no kind {kind!r}: use {', '.join(KINDS)}.")
