"""Distances between all pairs, in memory; and which metric a name means."""

from __future__ import annotations

import contextlib
import difflib
from typing import Any

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.backends.serial import SerialBackend
from parallel_mix.errors import InputError
from parallel_mix.extras import need
from parallel_mix.kernels.density.kernel_sums import Array
from parallel_mix.kernels.metrics import signatures, text_distances, vector_distances
from parallel_mix.kernels.metrics.category_distances import ClassProbabilities
from parallel_mix.kernels.metrics.signatures import Signatures
from parallel_mix.kernels.metrics.similarities import from_similarity
from parallel_mix.models.distances.callable_metric import CallableMetric, Function, imported
from parallel_mix.models.distances.tile_layout import Layout
from parallel_mix.models.distances.tiles import Held, Metric, PairsRecipe, compute_tiles

KINDS = {
    **dict.fromkeys(vector_distances.METRICS, "numbers"),
    **dict.fromkeys(signatures.METRICS, "signatures"),
    "vdm": "categories",
    **dict.fromkeys(text_distances.METRICS, "texts"),
}
"""What each metric compares."""
NOT_KNOWN = ("", "nan", "none", "na", "n/a", "?")
"""The texts, in small letters, that stand for a class that is not known."""
SIMILARITY = "from similarity: "
"""The beginning of the name of a metric that converts a matrix of similarities."""


class Assigned:
    """An array, or what is assigned to like one (a dataset of an open HDF5 file, say), that tiles are put into."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def put(self, row: int, column: int, values: np.ndarray, layout: Layout) -> None:
        """Put a tile where its first entry is at (row, column)."""
        m, k = values.shape
        self.values[row : row + m, column : column + k] = values

    def sync(self) -> None:
        """Do nothing: values in memory need not be written to disk."""


def pairwise(
    X: Any,
    Y: Any = None,
    metric: str | Function = "euclidean",
    *,
    p: float | None = None,
    sigma: float | None = None,
    y: Any = None,
    symmetric: bool = False,
    backend: Backend | None = None,
    out: Any = None,
) -> Any:
    """Distances (n, m) of the n rows of X to the m of Y (to each other without Y), on all cores by default.

    Rows are numbers; for mallows and irm X and Y are `Signatures`, for edit lists of texts, for vdm rows of categories,
    y the known classes of Y (of X without Y), from which it learns. A metric may be a function of two rows, too;
    `symmetric` promises that it is so. With `out` (an array, a memory map, a dataset of an open HDF5 file) the
    distances are put there.
    """
    if backend is not None and not isinstance(backend, Backend):
        raise InputError(f"backend must be one that runs, such as DaskBackend(workers=4), not {backend!r}.")
    if not (callable(metric) or isinstance(metric, str)):
        raise InputError(f"metric must be a name or a function of two rows, not {metric!r}.")
    for name, given, only in (
        ("p", p is not None, metric == "minkowski"),
        ("sigma", sigma is not None, metric == "gaussian"),
        ("y", y is not None, metric == "vdm"),
    ):
        if given and not only:
            raise InputError(f"{name}= does nothing for the metric {metric!r}: leave it out.")
    old, new = things_of(X if Y is None else Y, None if Y is None else X, metric, y)
    shape = len(old if new is None else new), len(old)
    if out is None:
        out = np.empty(shape)
    elif not hasattr(out, "shape") or not hasattr(out, "dtype"):
        raise InputError(f"out must be an array or an HDF5 dataset of shape {shape}, not {type(out).__name__}.")
    elif not is_writable(out):
        raise InputError("out cannot be written to: it is read-only.")
    elif tuple(out.shape) != shape or out.dtype not in (np.float32, np.float64):
        what = f"shape {tuple(out.shape)} and type {out.dtype}"
        raise InputError(f"out has {what}, the distances have {shape} and are float64 or float32.")
    chosen = metric_for(metric, old, new, 2.0 if p is None else p, 1.0 if sigma is None else sigma, symmetric)
    home = Assigned(out)
    with SerialBackend(forked=not chosen.frees_lock) if backend is None else contextlib.nullcontext(backend) as used:
        within = isinstance(used, SerialBackend) and not used.forked
        recipe = PairsRecipe(Held(old), None if new is None else Held(new), chosen, home if within else None)
        compute_tiles(recipe, used, home=home)
    return out


def is_writable(out: Any) -> bool:
    """False for an array, or a dataset of an HDF5 file, that is there to be read only."""
    flags, file = getattr(out, "flags", None), getattr(out, "file", None)
    return bool(getattr(flags, "writeable", True)) and getattr(file, "mode", "") != "r"


def input_kind(metric: str | Function) -> str:
    """The kind of things that a metric compares: numbers, categories, signatures, texts; matrix if it converts one."""
    if metric in (SIMILARITY + "bound", SIMILARITY + "inverse"):
        return "matrix"
    if callable(metric) or ":" in metric:
        return "numbers"
    if metric not in KINDS:
        near = difflib.get_close_matches(str(metric).lower(), KINDS, 1)
        guess = f" Perhaps {near[0]}?" if near else ""
        raise InputError(
            f"There is no metric {metric!r}: use one of {', '.join(KINDS)}, or module:function of your own.{guess}"
        )
    if KINDS[metric] == "texts":
        need("text", "Edit distances")
    return KINDS[metric]


def things_of(X: Any, Y: Any, metric: str | Function, y: Any = None) -> tuple[Any, Any]:
    """The (old) things X and the new ones Y, or None, in the form in which the metric compares them, checked."""
    kind = input_kind(metric)
    if kind == "matrix":
        raise InputError("Similarities are converted by the command: parallel-mix distances --from-similarity.")
    if kind == "signatures":
        odd = [type(things).__name__ for things in (X, Y) if not isinstance(things, Signatures | None)]
        if odd:
            raise InputError(f"{metric} compares Signatures(values, weights, offsets), not {odd[0]}.")
        X, Y = (S and signatures_of(S.values, S.weights, S.offsets, name) for S, name in ((X, "X"), (Y, "Y")))
        return X, Y
    if kind == "texts":
        return _texts(X, "X"), None if Y is None else _texts(Y, "Y")
    if kind == "categories":
        return by_class(_categories(X), y, None if Y is None else _categories(Y))
    return _numbers(X, "X"), None if Y is None else _numbers(Y, "Y")


def signatures_of(values: Any, weights: Any, offsets: Any, what: str) -> Signatures:
    """Checked signatures of these points and weights; `what` names them in a refusal."""
    return signatures.checked_signatures(values, weights, offsets, what)


def by_class(X: np.ndarray, y: Any, Y: np.ndarray | None) -> tuple[Array, Array | None]:
    """Rows of categories as vdm compares them: by the probabilities of the classes, learnt from the (old) rows X."""
    if y is None:
        raise InputError("vdm needs the known classes of the (old) rows: name them with --labels, in Python with y=.")
    check_alike(X, Y)
    if len(y) != len(X):
        raise InputError(f"There are {len(y)} classes for {len(X)} rows: one for each is needed.")
    known = is_known(y)
    if not known.any():
        raise InputError("No row has a known class: vdm learns from those that have one.")
    learnt = ClassProbabilities(X[known], np.asarray(y).astype(str)[known])
    return learnt.rows(X), None if Y is None else learnt.rows(Y)


def is_known(y: Any) -> np.ndarray:
    """Which rows have a known class: one that is not empty, NaN, None or a question mark."""
    return np.array([str(value).strip().lower() not in NOT_KNOWN for value in y], dtype=bool)


def class_names(y: Any) -> np.ndarray:
    """The classes as texts, whole numbers without a decimal point; "" where a class is not known."""
    values = np.asarray(y)
    if values.dtype.kind == "f":
        known = np.isfinite(values)
        whole = (values[known] == np.round(values[known])).all()
        texts = [str(int(value)) if whole else str(value) for value in values[known]]
        names = np.full(len(values), "", dtype=object)
        names[known] = texts
        return names.astype(str)
    return np.where(is_known(values), values.astype(str), "")


def check_alike(X: Any, Y: Any, what: str = "columns") -> None:
    """Refuse new things Y that do not have as many columns (or coordinates) as the old ones X."""
    if Y is not None and Y.shape[1] != X.shape[1]:
        raise InputError(f"Old and new have {X.shape[1]} and {Y.shape[1]} {what}: give the same.")


def metric_for(
    metric: str | Function, X: Any, Y: Any = None, p: float = 2.0, sigma: float = 1.0, symmetric: bool = False
) -> Metric:
    """The metric of this name (or function) for the old things X and the new ones Y.

    For a metric that converts a matrix, X is the survey of this matrix.
    """
    kind = input_kind(metric)
    if callable(metric):
        name = getattr(metric, "__name__", "the function")
        return CallableMetric(name, symmetric, metric)
    if kind == "signatures":
        check_alike(X.values, None if Y is None else Y.values, "coordinates")
        return signatures.SignatureMetric(metric)
    if kind == "texts":
        return text_distances.EditMetric(metric)
    if kind == "matrix":
        return from_similarity(metric.removeprefix(SIMILARITY), X, symmetric)
    check_alike(X, Y)
    if ":" in metric:
        imported(metric)
        return CallableMetric(metric, symmetric)
    name = "sqeuclidean" if kind == "categories" else metric
    vector_distances.check_directions(name, X, "" if Y is None else "the second table")
    if Y is not None:
        vector_distances.check_directions(name, Y, "the first table")
    return vector_distances.vector_metric(name, X if Y is None else np.concatenate([X, Y]), p, sigma)


def _numbers(X: Any, name: str) -> Array:
    try:
        X = np.asarray(X)
        X = np.asarray(X, dtype=np.float64) if X.dtype.kind in "biufO" else X
    except (TypeError, ValueError):
        X = np.asarray(None)
    if X.dtype.kind != "f":
        raise InputError(f"{name} holds other things than numbers (sparse matrices are none, either).")
    if X.ndim != 2 or not X.size:
        raise InputError(f"{name} has shape {X.shape}: rows and columns are needed.")
    if not np.isfinite(X).all():
        raise InputError(f"{name} has values that are NaN or infinite.")
    return np.ascontiguousarray(X)


def _categories(X: Any) -> np.ndarray:
    X = np.asarray(X)
    return X if X.dtype.kind in "biufUT" else np.asarray(X, dtype=str)


def _texts(X: Any, name: str) -> list[str]:
    texts = list(X)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} must be a list of texts.")
    return texts
