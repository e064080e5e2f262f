"""The registry of families: what each is called, and where its parts are.

It has names only; a part is imported when it is asked for.

A family is a folder with some of these modules:

    command.py      its command: what `parallel_mix.cli.Call` asks of one
    file.py         its groups in HDF5, written and read here alone; `LAYOUT` says for the guide what they are
    words.py        describe(path): what `info` says, line by line
    pages.py        draw(path, folder, formats[, choices]): what `plot` draws; returns the files written
    tables.py       errors_of(path): what `table` prints of a comparison
    labels.py       labels_of(path, level): the columns that `export` writes, by name
    predictions.py  predict(options, backend): what `predict` makes of new rows; `NEEDS` is the module with the model

`register` adds one; nothing else in the package has a list of families.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Command:
    """One command of the command line: the module of its options and its work, and what it does, in a line."""

    name: str
    module: str
    summary: str


@dataclass(frozen=True)
class Family:
    """One kind of results: the attribute `kind` of its files, and what is made of them."""

    kind: str
    title: str
    """What a result is, as in "FILE is a ..."."""
    folder: str = ""
    """The package with its parts; by default the one of this name in `parallel_mix.families`."""
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name the module in the folder, and what the command does, in a line."""
    group: str = ""
    """The group (or dataset) of its files that holds the result; by default the one that is called after the kind."""
    made_by: str = ""
    """The command that makes such results, where it is another family's, or not the first of its own."""
    estimators: Mapping[str, str] = field(default_factory=dict)
    """Classes that `import parallel_mix` offers, and their modules."""
    classifiers: str = ""
    """The module whose `METHODS` cross-validation can compare."""
    levels: bool = False
    """Whether `plot` takes --level and --columns."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """The modules of parts that do not stand in one of their own name."""
    example: str = ""
    """A command that makes a small result, with {rows}, {distances} or {new_distances} for an input and {output} for
    the result: the guide shows it, and the tests that all families share run it."""
    longer: str = ""
    """Options with which the example takes long enough to be killed; {slow} is a distance that takes its time."""
    prediction: str = ""
    """A command that makes something of new rows, with {result} for a result."""

    @property
    def place(self) -> str:
        """The group (or dataset) of its files that holds the result."""
        return self.group or self.kind

    @property
    def package(self) -> str:
        """The package with its parts."""
        return self.folder or f"parallel_mix.families.{self.kind}"

    @property
    def command(self) -> str:
        """The command that makes its results."""
        return self.made_by or next(iter(self.commands))

    def has(self, part: str) -> bool:
        """Whether its folder has a module of this name."""
        return find_spec_of(self.module_of(part)) is not None

    def part(self, name: str) -> Any:
        """One of its modules."""
        return import_module(self.module_of(name))

    def module_of(self, part: str) -> str:
        """The full name of the module with a part."""
        return f"{self.package}.{self.modules.get(part, part)}"


def register(family: Family) -> None:
    """Make a family known: its commands, and what `info`, `plot`, `export` and `predict` make of its files."""
    if find_spec_of(family.package) is None:
        raise ValueError(f"The family {family.kind!r} has no package {family.package}.")
    if not family.commands and not family.made_by:
        raise ValueError(f"The family {family.kind!r} has no command, and does not say which one makes its results.")
    if long := [name for name in family.commands if not 1 <= len(name.split()) <= 2]:
        raise ValueError(f"A command has one word or two, not {long[0]!r}.")
    others = [other for other in FAMILIES.values() if other.kind != family.kind]
    if twice := [name for other in others for name in other.commands if name in family.commands]:
        raise ValueError(f"The command {twice[0]!r} is another family's.")
    FAMILIES[family.kind] = family


def find_spec_of(name: str) -> Any:
    """Where a module is; None where it, or a package that it is in, is not there."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:
        return None


def commands() -> dict[str, Command]:
    """All commands of families by name, in the order of registration."""
    return {
        name: Command(name, f"{family.package}.{module}", summary)
        for family in FAMILIES.values()
        for name, (module, summary) in family.commands.items()
    }


def estimators() -> dict[str, str]:
    """The modules of the classes that families offer in Python, by the names of these."""
    return {name: module for family in FAMILIES.values() for name, module in family.estimators.items()}


FAMILIES: dict[str, Family] = {
    family.kind: family
    for family in (
        Family(
            "hmac",
            "clustering by mode association (hmac)",
            commands={"hmac": ("command", "cluster by hierarchical mode association")},
            estimators={"HMAC": "parallel_mix.models.hmac.estimator"},
            levels=True,
            example="hmac {rows} -o {output} --labels kind --levels 5",
            longer="--levels 40 --flat",
            prediction="predict {result} {rows} -o {output} --labels kind",
        ),
        Family(
            "distances",
            "matrix of distances",
            commands={"distances": ("command", "compute distances between all pairs of rows, to a file")},
            example="distances {rows} -o {output} --labels kind --metric cityblock",
            longer="--metric {slow} --symmetric",
        ),
        Family(
            "neighbours",
            "table of nearest neighbours",
            made_by="distances --knn",
            example="distances {rows} -o {output} --labels kind --knn 3",
            longer="--metric {slow} --symmetric",
        ),
        Family(
            "clusters",
            "clustering by distances alone",
            group="cluster",
            commands={"cluster": ("command", "cluster by distances alone")},
            estimators=dict.fromkeys(
                ("GeneralizedKMeans", "VertexSubstitution", "WardDistance"), "parallel_mix.models.clusters.estimators"
            ),
            example="cluster {distances} -o {output} --clusters 2,4",
            longer="--restarts 10000",
        ),
        Family(
            "hlm",
            "classifier over distances (HLM)",
            commands={
                "hlm fit": ("fit_command", "fit a classifier over distances"),
                "hlm update": ("update_command", "let a classifier over distances grow"),
            },
            estimators=dict.fromkeys(("HLMClassifier", "KernelHLMClassifier"), "parallel_mix.models.hlm.estimators"),
            classifiers="parallel_mix.models.hlm.methods",
            example="hlm fit {distances} -o {output} --labels y --select 1..3 --folds 4",
            longer="--restarts 100000",
            prediction="predict {result} {distances} -o {output} --labels y",
        ),
        Family(
            "crossval",
            "comparison of classifiers",
            commands={"crossval": ("command", "compare classifiers by cross-validation")},
            estimators={
                **dict.fromkeys(
                    (
                        "AffinityKNNClassifier",
                        "KNNClassifier",
                        "KRIKNNClassifier",
                        "KRRKNNClassifier",
                        "VectorKNNClassifier",
                    ),
                    "parallel_mix.models.similarity.neighbour_classifiers",
                ),
                **dict.fromkeys(
                    ("FeatureSVC", "LocalSVC", "PotentialSVC", "SimilaritySVC"), "parallel_mix.models.similarity.svm"
                ),
                "LocalSDAClassifier": "parallel_mix.models.similarity.local_sda",
            },
            classifiers="parallel_mix.models.similarity.methods",
            example="crossval {distances} -o {output} --labels y --classifiers knn,hlm-kernel --partitions 3 --folds 3",
            longer="--partitions 200",
        ),
    )
}
