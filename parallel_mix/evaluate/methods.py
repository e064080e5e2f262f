"""Classifiers by name, each with the settings that cross-validation chooses from."""

from __future__ import annotations

import difflib
import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.evaluate.data import ANYTHING, EITHER
from parallel_mix.models.classifiers import MOST_STEPS

Setting = dict[str, Any]
NEIGHBOURS = (*range(1, 17), 32, 64, 128)
LOCAL_NEIGHBOURS = (2, 4, 8, 16, 32, 64, 128)
RIDGES = tuple(10.0**k for k in range(1, -4, -1))  # of equal errors the first: the larger ridge
WIDE_RIDGES = (1e3, 1e2, *RIDGES)
"""Of interpolation, whose weights go on changing: on protein the folds take 100."""
PENALTIES = tuple(10.0**k for k in range(-3, 6))
WIDTHS = tuple(10.0**k for k in range(-5, 2))
PRICES = tuple(round(0.1 * k, 1) for k in range(10, 0, -1))
SHARES = (1e-6, 1e-3, 0.01, 0.1, 0.5, 0.9)
COMPONENTS = (*range(1, 11), 12, 14, 16)


@dataclass(frozen=True)
class Method:
    """A classifier: where it is, its fixed parameters, its grid, what it takes and what papers call it."""

    name: str
    where: str  # module:class
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    takes: str = "similarities"  # distances, vectors, EITHER, or ANYTHING
    title: str = ""
    prototype: Any = None  # an estimator, instead of where it is

    @property
    def settings(self) -> list[Setting]:
        """All combinations of the grid, the last parameter changing fastest; one empty setting without a grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def make(self) -> Any:
        """A new estimator with its fixed parameters."""
        if self.prototype is not None:
            from sklearn.base import clone

            return clone(self.prototype)
        return imported_class(self.where)(**self.fixed)


def _ours(room: str, name: str, title: str, kind: str, takes: str = "similarities", **parts: Any) -> Method:
    grid = {key: parts.pop(key) for key in list(parts) if isinstance(parts[key], tuple)}
    return Method(name, f"parallel_mix.models.{room}:{kind}", parts, grid, takes, title)


def _neighbours(name: str, title: str, kind: str, takes: str = "similarities", **parts: Any) -> Method:
    return _ours("neighbour_classifiers", name, title, kind, takes, n_neighbors=NEIGHBOURS, **parts)


def _machine(name: str, title: str, kind: str, **parts: Any) -> Method:
    return _ours("similarity_svm", name, title, kind, **parts)


def _sda(name: str, title: str, **parts: Any) -> Method:
    return _ours("local_sda", name, title, "LocalSDAClassifier", n_neighbors=LOCAL_NEIGHBOURS, **parts)


def _vectors(name: str, title: str, kernel: str, **grid: Any) -> Method:
    fixed = {"kernel": kernel, "max_iter": MOST_STEPS}
    return Method(name, "sklearn.svm:SVC", fixed, grid, "vectors", title)


METHODS = {
    method.name: method
    for method in (
        _neighbours("knn", "k-NN", "KNNClassifier", takes=EITHER),
        _neighbours("affinity-knn", "affinity k-NN", "AffinityKNNClassifier"),
        _neighbours("kri-knn", "KRI k-NN (clip)", "KRIKNNClassifier", ridge=WIDE_RIDGES),
        _neighbours("krr-knn", "KRR k-NN (pinv)", "KRRKNNClassifier", ridge=RIDGES),
        *(
            _machine(
                f"svm-knn-{change}",
                f"SVM-KNN ({title})",
                "LocalSVC",
                n_neighbors=NEIGHBOURS,
                C=PENALTIES,
                change=change,
            )
            for change, title in (("clip", "clip"), ("flip", "flip"), ("shift", "shift"), ("features", "features"))
        ),
        *(
            _machine(
                f"svm-{change}", f"SVM-similarities as kernel ({change})", "SimilaritySVC", C=PENALTIES, change=change
            )
            for change in ("clip", "flip", "shift")
        ),
        _machine(
            "svm-features-linear", "SVM-similarities as features (linear)", "FeatureSVC", C=PENALTIES, kernel="linear"
        ),
        _machine(
            "svm-features-rbf", "SVM-similarities as features (rbf)", "FeatureSVC",
            gamma=WIDTHS, C=PENALTIES, kernel="rbf",
        ),
        _machine("psvm", "P-SVM", "PotentialSVC", C=PENALTIES, eps=PRICES),
        *(
            _ours(
                "distance_estimators", f"hlm-{name}", f"HLM ({name})", "HLMClassifier", "distances",
                n_components=COMPONENTS, clustering=clustering,
            )
            for name, clustering in (("vsh", "vsh"), ("gknn", "gkmeans"), ("agg", "ward"))
        ),
        _ours("distance_estimators", "hlm-kernel", "Kernel HLM", "KernelHLMClassifier", "distances"),
        _ours(
            "distance_estimators", "hlm-kernel-vsh", "HLM (kernel-vsh)", "HLMClassifier", "distances",
            n_components=(*COMPONENTS, 0), clustering="vsh",
        ),
        _sda("sda", "Local SDA"),
        _sda("sda-marginal", "regularized local SDA (marginal)", estimate="marginal", zeta=SHARES),
        _sda("sda-joint", "regularized local SDA (joint)", estimate="joint", zeta=SHARES),
        _sda("sda-bayesian", "Bayesian local SDA", estimate="bayesian"),
        _sda("sda-pairwise", "pairwise local SDA", pairwise=True),
        _sda("sda-pairwise-bayesian", "pairwise Bayesian local SDA", pairwise=True, estimate="bayesian"),
        _vectors("svm-linear", "SVM (linear)", kernel="linear", C=PENALTIES),
        _vectors("svm-rbf", "SVM (rbf)", kernel="rbf", gamma=WIDTHS, C=PENALTIES),
        _neighbours("knn-vectors", "k-NN (vectors)", "VectorKNNClassifier", takes="vectors"),
    )
}  # fmt: skip


def imported_class(where: str) -> Any:
    """The class that `module:class` names; the folder one works in is looked in, too."""
    module, _, name = where.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (Exception, SystemExit) as error:
        raise InputError(f"The classifier {where} cannot be imported: {type(error).__name__}: {error}.") from error
    if not callable(found):
        raise InputError(f"The classifier {where} cannot be imported: {module} has no class {name!r}.")
    return found


def method_named(name: str) -> Method:
    """A classifier of ours, or module:class of one's own."""
    if name in METHODS:
        return METHODS[name]
    if ":" in name:
        method = Method(name, name, takes=ANYTHING, title=name.partition(":")[2])
        made = _instance(method)
        method = replace(method, takes=getattr(made, "input", getattr(made, "takes", ANYTHING)))
        missing = [what for what in ("fit", "predict", "get_params", "set_params") if not hasattr(made, what)]
        if missing:
            raise InputError(f"{name} is no scikit-learn classifier: it has no {missing[0]}().")
        return method
    near = difflib.get_close_matches(name, METHODS, 1)
    guess = f" Perhaps {near[0]}?" if near else ""
    raise InputError(f"There is no classifier {name!r}: use some of {', '.join(METHODS)}, or module:Class.{guess}")


def with_grid(method: Method, grid: Mapping[str, Any]) -> Method:
    """The same with another grid; single values are fixed parameters."""
    valid = _instance(method).get_params()
    for key in grid:
        if key not in valid:
            raise InputError(f"{method.name} has no parameter {key!r} (in the grid). Valid ones: {', '.join(valid)}.")
    several = {key: tuple(values) for key, values in grid.items() if isinstance(values, list | tuple)}
    empty = [key for key, values in several.items() if not values]
    if empty:
        raise InputError(f"The grid of {method.name} has no value for {empty[0]!r}.")
    alone = {key: value for key, value in grid.items() if key not in several}
    kept = {key: several.get(key, values) for key, values in method.grid.items() if key not in alone}
    fixed = {key: value for key, value in method.fixed.items() if key not in grid}
    found = replace(method, grid=kept | several, fixed=fixed | alone)
    for setting in found.settings:
        made = found.make().set_params(**found.fixed, **setting)
        try:
            if hasattr(made, "check_parameters"):
                made.check_parameters()
        except ValueError as error:
            raise InputError(f"The grid of {method.name}: {error}") from error
    return found


def check_kinds(methods: Sequence[Method], kind: str) -> None:
    """Refuse classifiers that rows of this kind are nothing for."""
    for method in methods:
        if method.takes != ANYTHING and (method.takes == "vectors") != (kind == "vectors"):
            hint = " Distances of vectors are made by `parallel-mix distances`." if kind == "vectors" else ""
            raise InputError(
                f"{method.name} takes {method.takes}, and the input holds {kind} (--kind says what it is).{hint}"
            )


def _instance(method: Method) -> Any:
    try:
        return method.make()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{method.where} cannot be made: {type(error).__name__}: {error}.") from error
