"""Results of `parallel-mix hlm fit` and `hlm update`: a classifier, its history, and what it keeps to grow."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.kernels.mixtures.hlm_mixture import FIELDS, ClusterSums
from parallel_mix.models.hlm.fit import HlmFit
from parallel_mix.models.hlm.incremental import Past
from parallel_mix.models.hlm.model import HlmModel, HlmSettings
from parallel_mix.store.results import Tree, read_result

LAYOUT = (
    ("/hlm@components, @settings, @rows", "components of each class (0: Kernel HLM); what decided them; rows it was "
     "fitted on"),
    ("/hlm/classes, prior, totals, spare (K)", "names and shares of the classes; their rows (weights); the mean "
     "squared distance within each, for components of too few rows"),
    ("/hlm/components/centroids, names, classes, weights (m)", "row, its name, number of the class, share in it"),
    ("/hlm/components/b, s, estimated_s (m)", "scale, shape (half a whole number) and shape before rounding"),
    ("/hlm/components/sizes, counts, means, spreads, points, zeros, counted (m)", "what they were estimated from: "
     "mass and number of rows, squared distances that count, their mean, minus the sum of log(u / mean), rows on the "
     "centroid"),
    ("/hlm/selection/candidates (c), errors (c, folds), posteriors (n, K)", "of the cross-validation; posteriors of "
     "rows held out, by the number chosen"),
    ("/hlm/history/rows, errors, schemes, digests", "the fit (scheme 0) and each batch: rows known after it, error in "
     "it before it was seen, digest of its data"),
    ("/hlm/past/distances/K, y, component, mass", "with `--keep`: distances within class K, the rows' classes and "
     "components; how many rows each stands for (more than one where others were dropped)"),
    ("/data/y, rows; @path, @dataset, @digest", "classes and names of the rows, and where the distances are"),
)  # fmt: skip


@dataclass(frozen=True)
class StoredModel:
    """A classifier as it was written."""

    model: HlmModel
    names: list[str]
    """Of the classes."""
    settings: dict[str, Any]
    component_names: list[str] | None
    """The names of the rows that are centroids, where rows have names."""
    history: dict[str, list[Any]]
    selection: Tree | None
    kept: Tree | None
    """What it keeps to grow by scheme 2."""

    @property
    def past(self) -> Past:
        """The rows that it keeps."""
        assert self.kept is not None  # noqa: S101
        blocks = self.kept["distances"]
        distances = tuple(blocks[str(number)] for number in range(len(blocks)))
        return Past(distances, *(self.kept[name] for name in ("y", "component", "mass")))


def read_model(path: Path) -> StoredModel:
    """The classifier in a file."""
    tree = read_result(path, "hlm")
    parts = tree["components"]
    history = {name: list(map(as_text, values)) for name, values in tree.get("history", {}).items()}
    return StoredModel(
        model_of_tree(tree),
        [str(name, "utf-8") for name in tree["classes"]],
        json.loads(tree["@settings"]),
        [str(name, "utf-8") for name in parts["names"]] if "names" in parts else None,
        history,
        tree.get("selection"),
        tree.get("past"),
    )


def as_text(value: Any) -> Any:
    """A text of HDF5 as one of Python; other values as they are."""
    return str(value, "utf-8") if isinstance(value, bytes) else value


def model_of_tree(tree: Tree) -> HlmModel:
    """The model from its group."""
    parts = tree["components"]
    centroids, classes = parts["centroids"], parts["classes"]
    if "points" in parts:  # models of before did not keep what follows from these
        parts = {"counted": parts["points"] - 1.0 - parts["zeros"]} | parts
    table = np.array([parts[name] for name in FIELDS], dtype=np.float64) if FIELDS[0] in parts else None
    sums = None if table is None else ClusterSums(classes, table)
    known = int(tree["@components"]), centroids, classes, sums, tree["totals"], tree["spare"], int(tree["@rows"])
    return HlmModel(*known, tree["prior"], parts["weights"], parts["b"], parts["s"], parts["estimated_s"])


def tree_of(
    fit: HlmFit,
    names: list[str],
    settings: HlmSettings,
    rows: list[str] | None,
    history: dict[str, list[Any]],
    past: Past | None,
) -> Tree:
    """The groups of a result; `rows` are the names of those it was fitted on, `names` those of the classes."""
    model = fit.model
    components: Tree = {
        "centroids": model.centroids,
        "classes": model.classes,
        "weights": model.weights,
        "b": model.b,
        "s": model.s,
        "estimated_s": model.estimated,
    }
    if rows is not None:
        components["names"] = [rows[k] for k in model.centroids]
    if model.sums is not None:
        components |= {name: getattr(model.sums, name) for name in FIELDS}
    tree: Tree = {
        "@settings": json.dumps(asdict(settings)),
        "@components": model.count,
        "@rows": model.rows,
        "classes": names,
        "prior": model.prior,
        "totals": model.totals,
        "spare": model.spare,
        "components": components,
    }
    if fit.errors is not None:
        tree["selection"] = {
            "candidates": list(settings.components),
            "errors": fit.errors,
            "posteriors": fit.held_out,
        }
    tree["history"] = history
    if past is not None:
        blocks = {str(number): D for number, D in enumerate(past.D)}
        tree["past"] = {"distances": blocks, "y": past.y, "component": past.component, "mass": past.mass}
    return {"hlm": tree}
