"""The registry: what it refuses, and that its names lead somewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import parallel_mix
from parallel_mix import registry
from parallel_mix.cli import GENERAL, commands
from parallel_mix.registry import FAMILIES, Family
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (Family("none", "nothing", commands={"none": ("command", "do nothing")}), "has no package"),
        (Family("hmac2", "a second", folder="tests.toy"), "has no command"),
        (Family("long", "a long one", folder="tests.toy", commands={"a b c": ("command", "x")}), "one word or two"),
        (Family("other", "another", folder="tests.toy", commands={"hmac": ("command", "x")}), "is another family's"),
    ],
)
def test_what_cannot_be_a_family_is_refused(family: Family, sentence: str) -> None:
    before = dict(FAMILIES)
    with pytest.raises(ValueError, match=sentence):
        registry.register(family)
    assert before == FAMILIES


@pytest.mark.parametrize("kind", FAMILIES)
def test_our_own_families_would_be_registered(kind: str) -> None:
    registry.register(FAMILIES[kind])
    assert {"file", "words", "pages"} <= {part for part in ("file", "words", "pages") if FAMILIES[kind].has(part)}


def test_every_name_leads_somewhere() -> None:
    for name in parallel_mix.__all__:
        assert getattr(parallel_mix, name) is not None
    for command in commands().values():
        assert hasattr(import_module(command.module), "Options")
    assert not set(GENERAL) & set(registry.commands())


def test_type_checkers_are_told_of_all_that_is_offered() -> None:
    stub = Path(ROOT / "parallel_mix" / "__init__.pyi").read_text()
    assert {line.split()[-1] for line in stub.splitlines() if line.startswith("from ")} == set(parallel_mix.__all__) - {
        "__version__"
    }
