"""A job that lets a classifier over distances grow."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.families.clusters.job import check_distances
from parallel_mix.families.hlm.file import read_model, tree_of
from parallel_mix.families.hlm.fit_job import fingerprint_of, numbered, tell
from parallel_mix.families.hlm.predictions import names_across, places_of, say_ignored
from parallel_mix.models.core.sources import HeldMatrix
from parallel_mix.models.hlm.fit import HlmFit, components_of_batch
from parallel_mix.models.hlm.incremental import Past, joined_models, regrouped_model
from parallel_mix.models.hlm.model import HlmModel, HlmSettings
from parallel_mix.progress import plural
from parallel_mix.runs.job import Job
from parallel_mix.store.checkpoints import Fingerprint
from parallel_mix.store.results import read_names
from parallel_mix.store.tables import Table


class HlmUpdate:
    """One batch."""

    def __init__(self, job: Job, path: Path, table: Table) -> None:
        self.job, self.path, self.table = job, path, table
        self.options = cast(Any, job.options)
        stored = read_model(path)
        self.model: HlmModel = stored.model
        if self.model.sums is None:
            raise InputError(f"{path} is Kernel HLM, whose components are all rows: fit it anew with the new ones.")
        if table.y is None:
            raise InputError(f"{table.path} has no classes: name their dataset with --labels.")
        check_distances(table, all_may_be_zero=True, new=table.matrix.shape[1] != table.count)
        self.names, self.y = numbered(table, stored.names)
        if (self.y < 0).any():
            raise InputError(
                f"{plural(int((self.y < 0).sum()), 'new row')} of {table.path} have no class: leave them out."
            )
        self.kept = stored.settings
        kept = self.kept | {"components": tuple(self.kept["components"])}
        self.settings = replace(HlmSettings(**kept), seed=self.options.seed, validate=False)
        self.count = self.options.components or self.model.count
        self.old_rows = read_names(path)[0]
        self.history = stored.history
        self._refuse_known()
        self.past = stored.kept
        if self.options.scheme == 2 and self.past is None:
            raise InputError(f"{path} keeps no rows, which scheme 2 needs: fit it with --keep (scheme 1 drops them).")
        if self.options.scheme == 2 and self.past is not None and not isinstance(self.past["distances"], dict):
            raise InputError(f"{path} keeps its rows as an earlier version did: fit it anew with --keep.")
        if self.old_rows is not None and table.rows is None:
            raise InputError(
                f"The rows of {path} have names, those of {table.path} have none: give them (--row-names)."
            )
        if fresh := self.names[len(stored.names) :]:
            job.progress.say(f"new {'class' if len(fresh) == 1 else 'classes'}: {', '.join(fresh)}")
        self.to_past, self.among = self._blocks()
        if self.options.scheme == 2:
            assert self.to_past is not None  # noqa: S101
            self.all = stored.past.extended(self.to_past, self.among, self.y)

    def _refuse_known(self) -> None:
        """A batch counts once, though a run may be given twice."""
        digests = self.history["digests"]
        if self.job.digest in digests:
            when = digests.index(self.job.digest)
            was = f"its batch {when}" if when else "what it was fitted on"
            raise InputError(f"{self.table.path} is in {self.path} already, as {was}: give new rows.")
        twice = set(self.old_rows or []) & set(self.table.rows or [])
        if twice:
            raise InputError(
                f"Row {min(twice)!r} of {self.table.path} ({len(twice)} of {self.table.count}) is in {self.path} "
                "already: give new rows."
            )

    def known_by(self) -> str:
        """What decides the update, of the model: its history, settings and scales."""
        known = json.dumps([self.history["digests"], self.kept, self.model.b.tolist(), self.model.prior.tolist()])
        return hashlib.sha256(known.encode()).hexdigest()[:16]

    def error_before(self) -> float:
        """The part of the new rows that the model put into a wrong class before it saw them; NaN if not to be known."""
        columns = names_across(self.table)
        if self.to_past is not None:
            to_centroids = self.to_past[:, self.model.centroids]
        elif columns is not None and self.old_rows is not None:
            place = places_of(columns, self.table.path)
            wanted = [self.old_rows[k] for k in self.model.centroids]
            if any(name not in place for name in wanted):
                return float("nan")
            to_centroids = np.asarray(self.table.matrix[:])[:, [place[name] for name in wanted]]
        else:
            return float("nan")
        return float(np.mean(self.model.posteriors(to_centroids).argmax(axis=1) != self.y))

    def _blocks(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Distances of new rows to those the model kept (scheme 2) and to each other, by the names of the columns."""
        D, n = np.asarray(self.table.matrix[:]), self.table.count
        kept = 0 if self.past is None else len(self.past["y"])
        new_names = self.table.rows
        columns = names_across(self.table)
        wants_past = self.options.scheme == 2 and kept
        if columns is not None and new_names is not None:
            place = places_of(columns, self.table.path)
            wanted = ([*(self.old_rows or [])] if wants_past else []) + list(new_names)
            missing = [name for name in wanted if name not in place]
            if missing:
                raise InputError(
                    f"{self.table.path} has no distances to {missing[0]!r} ({len(missing)} of {len(wanted)} needed): "
                    f"give those of new rows to {'the rows the model kept and to ' if wants_past else ''}each other."
                )
            say_ignored(self.job, self.table, [*(self.old_rows or []), *new_names])
            D = D[:, [place[name] for name in wanted]]
        past = kept if wants_past else 0
        if D.shape[1] != past + n:
            raise InputError(
                f"{self.table.path} has {n:,} x {D.shape[1]:,} distances; needed are those of {n:,} new rows to "
                + (f"the {past:,} rows the model kept, then to each other." if past else "each other.")
            )
        return (D[:, :past] if past else None), D[:, past:]

    def intention(self) -> str:
        """What a dry run says."""
        return f"Would add {self.table.count:,} rows to {self.path} by scheme {self.options.scheme}."

    def run(self) -> None:
        """Begin or go on, update, write."""
        job, options = self.job, self.options
        decided = {"scheme": options.scheme, "components": self.count, "samples": options.samples, "seed": options.seed}
        run = job.start(
            {
                **decided,
                "reassign": options.reassign,
                "model": Fingerprint(self.known_by(), "the model differs"),
                "classes": fingerprint_of(self.y),
            },
            unit="class fits",
        )
        settings = replace(self.settings, components=(self.count,))
        past: Past | None = None
        rows = self.old_rows
        if options.scheme == 1:
            among = HeldMatrix(np.ascontiguousarray(self.among))
            batch = components_of_batch(among, self.y, len(self.names), settings, job.backend, run)
            model = joined_models(self.model, batch, settings)
            if self.past is not None:
                job.progress.say(
                    "scheme 1 keeps no rows: those the model had kept are dropped, and with them scheme 2."
                )
            rows = [*rows, *self.table.rows] if rows is not None and self.table.rows is not None else None
        else:
            model, past, which = regrouped_model(
                self.all, self.model, self.count, options.samples, settings, job.backend, run, options.reassign
            )
            if rows is not None and self.table.rows is not None:
                named = [*rows, *self.table.rows]
                rows = [named[k] for k in which]
            else:
                rows = None
        error = self.error_before()
        if not np.isnan(error):
            job.progress.say(f"before it saw them the model put {error:.1%} of the new rows into a wrong class")
        for line in tell(HlmFit(model), settings):
            job.progress.say(line)
        news = {"rows": model.rows, "errors": error, "schemes": options.scheme, "digests": job.digest}
        history = {name: [*self.history[name], value] for name, value in news.items()}
        tree = tree_of(HlmFit(model), self.names, settings, rows, history, past)
        job.write("hlm", tree, self.table, {"rows": rows} if rows is not None else {})
