"""What a command makes of a model, a folder a family; this is the registry of the kinds of results.

A family's folder has some of these modules, which are imported when they are asked for:

    command.py      from options to a result
    file.py         its groups in HDF5
    words.py        describe(path): what `info` says, line by line
    pages.py        draw(path, folder, formats[, choices]): what `plot` draws; the files written
    labels.py       labels_of(path, level): the columns that `export` writes, by name
    predictions.py  predict(options, backend): what `predict` makes of new rows
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from parallel_mix.errors import InputError


@dataclass(frozen=True)
class Family:
    """One kind of results: the attribute `kind` of its files, and the command that makes them."""

    kind: str
    command: str
    parts: frozenset[str]
    levels: bool = False
    """Whether `plot` takes --level and --columns."""

    def part(self, name: str) -> Any:
        """One of its modules."""
        return import_module(f"parallel_mix.families.{self.kind}.{name}")


def _family(kind: str, command: str, parts: str, levels: bool = False) -> Family:
    return Family(kind, command, frozenset(parts.split()), levels)


FAMILIES = {
    family.kind: family
    for family in (
        _family("hmac", "hmac", "words pages labels predictions", levels=True),
        _family("distances", "distances", "words pages"),
        _family("neighbours", "distances --knn", "words pages"),
        _family("clusters", "cluster", "words pages labels"),
        _family("hlm", "hlm fit", "words pages predictions"),
        _family("crossval", "crossval", "words pages"),
    )
}


def commands_with(part: str) -> str:
    """The commands whose results have a part: `one`, `two` or `three`."""
    names = [f"`{family.command}`" for family in FAMILIES.values() if part in family.parts]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def family_of(path: Path, part: str, otherwise: str) -> Family:
    """Return the family of a result, which must have a part; where it has none the user is told so.

    `otherwise` ends the sentence "FILE is a result of the kind KIND".
    """
    from parallel_mix.store.results import kind_of

    kind = kind_of(path)
    family = FAMILIES.get(kind)
    if family is None or part not in family.parts:
        raise InputError(f"{path} is a result of the kind {kind!r}{otherwise}")
    return family
