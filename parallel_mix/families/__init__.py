"""What a command makes of a model, a folder a family. `parallel_mix.registry` has the list of them."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.errors import InputError
from parallel_mix.registry import FAMILIES, Family


def commands_with(part: str) -> str:
    """The commands whose results have a part: `one`, `two` or `three`."""
    names = [f"`{family.command}`" for family in FAMILIES.values() if family.has(part)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def kinds_with_levels() -> str:
    """The kinds of results that have levels."""
    return ", ".join(family.kind for family in FAMILIES.values() if family.levels)


def family_of(path: Path, part: str, otherwise: str) -> Family:
    """Return the family of a result, which must have a part; where it has none the user is told so.

    `otherwise` ends the sentence "FILE is a result of the kind KIND".
    """
    from parallel_mix.store.results import kind_of

    kind = kind_of(path)
    family = FAMILIES.get(kind)
    if family is None or not family.has(part):
        raise InputError(f"{path} is a result of the kind {kind!r}{otherwise}")
    return family
