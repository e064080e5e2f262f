"""The guide: it is built without a warning, loads nothing from elsewhere, and leaves out no family and no command."""

from __future__ import annotations

import io
import re
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sphinx.application import Sphinx

from docs import docstrings, generate
from parallel_mix import cli, registry
from parallel_mix.registry import Family
from tests.conftest import ROOT

PACKAGE = ROOT / "parallel_mix"
CITATION = r"((?:[A-Z]\w+, )*[A-Z]\w+(?: & [A-Z]\w+| et al\.)?),? \(?((?:18|19|20)\d\d)\)?"


TOY = {
    "__init__.py": "",
    "command.py": (
        '"""Count the rows of a table."""\n'
        "from dataclasses import dataclass\n"
        "from parallel_mix.config import CommonOptions, argument, option, positive\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Options(CommonOptions):\n"
        "    input: str = argument('a table of a|b')\n"
        "    twice: int = option(1, 'count so often', read=positive, metavar='N')\n"
    ),
    "file.py": "LAYOUT = (('/counts/rows (k)', 'how many rows there are'),)\n",
    "words.py": "def describe(path):\n    'How many rows it has.'\n",
}


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    """A family that is registered from outside the package."""
    folder = tmp_path_factory.mktemp("families")
    (folder / "toy_family").mkdir()
    for name, text in TOY.items():
        (folder / "toy_family" / name).write_text(text)
    family = Family("counts", "count of rows", folder="toy_family", commands={"count": ("command", "count rows")})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setitem(registry.FAMILIES, family.kind, family)
        yield family


@pytest.fixture(scope="module")
def guide(toy: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as a browser gets them, made of a copy of the sources; a warning is an error."""
    folder, said = tmp_path_factory.mktemp("guide"), io.StringIO()
    sources, pages = folder / "docs", folder / "pages"
    shutil.copytree(ROOT / "docs", sources, ignore=shutil.ignore_patterns("_build", "_generated", "__pycache__"))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        for kind in (DeprecationWarning, PendingDeprecationWarning):  # of Sphinx and what extends it, to each other
            warnings.simplefilter("ignore", kind)
        patch.setattr(sys, "path", [*sys.path])
        app = Sphinx(sources, sources, pages, folder / "trees", "html", status=None, warning=said, warningiserror=True)
        app.build()
    assert app.statuscode == 0 and not said.getvalue(), said.getvalue()
    return pages


def test_no_page_loads_anything_from_another_host(guide: Path) -> None:
    pages = list(guide.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?([^\"' >]+)", page.read_text())
        assert loaded
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
    for sheet in guide.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet


def test_mathematics_is_drawn_by_the_browser(guide: Path) -> None:
    assert (guide / "symbols.html").read_text().count("<math") > 50


def test_every_family_has_a_page(guide: Path) -> None:
    for family in registry.FAMILIES.values():
        assert (guide / "_generated" / "families" / f"{family.kind}.html").exists()
        assert f'id="file-{family.kind}"' in (guide / "files.html").read_text()


def test_every_command_is_there_with_its_options(guide: Path) -> None:
    text = (guide / "commands.html").read_text()
    for name in cli.commands():
        assert f'id="command-{name.replace(" ", "-")}"' in text
    assert all(flag in text for flag in ("--bandwidths", "--checkpoint-every", "--row-names", "--config"))


def test_all_that_python_offers_is_there(guide: Path) -> None:
    pages = "".join(page.read_text() for page in (guide / "_generated" / "reference").glob("*.html"))
    for name in [*registry.estimators(), "pairwise", "crossval", "Signatures", "Protocol"]:
        assert f'id="parallel_mix.{name}"' in pages
    assert all(f"{name}Backend" in pages for name in ("Serial", "Mpi", "Dask"))


def test_a_family_that_is_registered_gets_its_pages(toy: Family, guide: Path) -> None:
    page = generate.page_of(toy)
    assert page.startswith("(family-counts)=\n# Count of rows\n")
    assert "parallel-mix count INPUT -o OUTPUT [options]" in page
    assert r"| `INPUT` | a table of a\|b |" in page
    assert "| `--twice` `N` | count so often (default: 1) |" in page
    assert "| `/counts/rows (k)` | how many rows there are |" in page
    assert "| `parallel-mix info FILE` | says what is in it | How many rows it has. |" in page
    assert "Not taken by [`plot`](#command-plot), [`export`](#command-export) or [`predict`](#command-predict)." in page
    for name in ("families.html", "files.html", "_generated/families/counts.html"):
        assert "Count of rows" in (guide / name).read_text()


def test_pages_of_families_that_are_gone_go(tmp_path: Path, toy: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    generate.write_all(tmp_path)
    assert (tmp_path / "families" / "counts.md").read_text() == generate.page_of(toy)
    monkeypatch.delitem(registry.FAMILIES, toy.kind)
    generate.write_all(tmp_path)
    assert (tmp_path / "families" / "hmac.md").exists()
    assert not (tmp_path / "families" / "counts.md").exists()


def test_every_citation_can_be_followed() -> None:
    known, cited = docstrings.citations(), set()
    for path in [*PACKAGE.rglob("*.py"), ROOT / "README.md"]:
        for authors, year in re.findall(CITATION, path.read_text()):
            assert f"{authors} {year}" in known, f"{path.name} cites {authors} {year}: docs/references.md lacks it"
            cited.add(authors)
    assert len(cited) >= 9


def test_files_that_the_guide_names_are_there() -> None:
    for name in ("symbols.md", "references.md"):
        for path in re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", (ROOT / "docs" / name).read_text()):
            assert (PACKAGE / path).exists(), f"{name} names {path}"


def test_letters_of_the_papers_are_in_the_table() -> None:
    table = (ROOT / "docs" / "symbols.md").read_text()
    for path in PACKAGE.rglob("*.py"):
        if "paper <-> code" in path.read_text():
            assert f"`{path.relative_to(PACKAGE)}`" in table
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| $")]
    assert len(rows) > 40
    for letter, _, names, places in rows:
        code = "".join((PACKAGE / place).read_text() for place in re.findall(r"`(.+?)`", places))
        for name in re.findall(r"`(.+?)`", names):
            for word in re.findall(r"[A-Za-z_]\w*", name):
                assert re.search(rf"\b{word}\b", code), f"{letter}: {places} has no {word}"


def test_the_glossary_has_a_sentence_for_each_word() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    entries = re.findall(r"^(\w[\w, ]*)\n((?:  .+\n)+)", text, flags=re.MULTILINE)
    words = [word for word, _ in entries]
    assert len(words) == len(set(words)) > 40
    assert {"task", "block", "tile", "stripe", "start", "wave", "stream", "worker", "family", "boundary row"} <= set(
        words
    )
    assert all(meaning.strip().endswith(".") for _, meaning in entries)


@pytest.mark.parametrize(
    ("plain", "rst"),
    [
        ("|x| is a*b of `labels_`, p_i", r"\|x\| is a\*b of `labels_`, p\_i"),
        ("As told (Teitz & Bart 1968).", "As told (:ref:`Teitz & Bart 1968 <teitz-bart-1968>`)."),
        ("Local SDA of Chen et al. (2009)", "Local SDA of :ref:`Chen et al. (2009) <chen-2009>`"),
        ("by Qiao & Li, too", "by :ref:`Qiao & Li <qiao-li-2015>`, too"),
        ("Ward's tree", "Ward's tree"),
    ],
)
def test_docstrings_are_plain_text(plain: str, rst: str) -> None:
    assert docstrings.as_rst([plain]) == [rst, ""]


def test_docstrings_have_sections_lists_and_formulas() -> None:
    text = "A sum:\n\n    a = b  + c_i\n\nWhat\n- one\n  more\n- two\nthen\n"
    text += "\nParameters\n----------\nC, D : float\n    A bound."
    made = "\n".join(docstrings.as_rst(text.splitlines()))
    assert "\n::\n\n        a = b  + c_i\n" in made
    assert "What\n\n- one\n  more\n- two\n\nthen\n" in made
    assert re.search(r"\.\. rubric:: Parameters\n+``C``, ``D`` — float\n    A bound\.", made)
