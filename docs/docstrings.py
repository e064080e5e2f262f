"""The docstrings of this project as reStructuredText.

They are plain text: paragraphs, `code` in backquotes, lists with dashes, formulas in lines that are indented or have
columns, and sections in NumPy's form (Parameters, Attributes). What means something in reStructuredText alone (stars,
bars, underscores) is kept from doing so, and a citation becomes a link into the list of references.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

REFERENCES = Path(__file__).with_name("references.md")


@cache
def citations() -> dict[str, str]:
    """The anchors in the list of references, by how a work is cited: "Teitz & Bart 1968"."""
    text = REFERENCES.read_text(encoding="utf-8")
    return {name: anchor for anchor, name in re.findall(r"^\(([\w-]+)\)=\n\*\*(.+?)\*\*", text, flags=re.MULTILINE)}


@cache
def _authors() -> dict[str, dict[str, str]]:
    """The anchors of each group of authors' works by year, "" where a work has none."""
    works: dict[str, dict[str, str]] = {}
    for name, anchor in citations().items():
        authors, year = re.fullmatch(r"(.+?) ?(\d{4})?", name).groups(default="")  # type: ignore[union-attr]
        works.setdefault(authors, {})[year] = anchor
    return works


def as_rst(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText, line by line."""
    result: list[str] = []
    k = 0
    while k < len(lines):
        line, after = lines[k], lines[k + 1] if k + 1 < len(lines) else ""
        if line and set(after) == {"-"} and len(after) >= len(line):
            entries = [line for line in lines[k + 2 : _end_of_section(lines, k + 2)] if line.strip()]
            result += ["", f".. rubric:: {line}", "", *_definitions(entries)]
            k = _end_of_section(lines, k + 2)
        elif is_set_out(line):
            formula = _run(lines, k)
            result += ["", "::", "", *(f"    {line}" for line in formula), ""]
            k += len(formula)
        else:
            of_list = ("- ", "  ")
            turns = k > 0 and line.startswith(of_list) != lines[k - 1].startswith(of_list)  # a list begins or ends
            result += ["", _line(line)] if turns else [_line(line)]
            k += 1
    return [*result, ""]


def is_set_out(line: str) -> bool:
    """True for a line whose blanks mean something: indented, or with columns."""
    return line.startswith("    ") or re.search(r"\S {3,}\S", line) is not None


def _run(lines: list[str], start: int) -> list[str]:
    """The lines that are set out from one on, blank ones between them included."""
    stop = next((k for k in range(start, len(lines)) if lines[k].strip() and not is_set_out(lines[k])), len(lines))
    while not lines[stop - 1].strip():
        stop -= 1
    return lines[start:stop]


def _end_of_section(lines: list[str], start: int) -> int:
    """Where the next section begins, or the docstring ends."""
    titles = (k for k in range(start, len(lines) - 1) if lines[k] and set(lines[k + 1]) == {"-"})
    return next(titles, len(lines))


def _definitions(entries: list[str]) -> list[str]:
    """The entries `name : what it is`, with indented lines on them, as a list of definitions."""
    result: list[str] = []
    for line in entries:
        if line.startswith(" "):
            result.append(f"    {_line(line.strip())}")
            continue
        names, _, kind = line.partition(" : ")
        shown = ", ".join(f"``{name.strip()}``" for name in names.split(","))
        result += ["", f"{shown} — {_line(kind)}" if kind else shown, ""]
    return [line for k, line in enumerate(result) if line or not _is_indented(result, k + 1)]


def _is_indented(lines: list[str], k: int) -> bool:
    return k < len(lines) and lines[k].startswith(" ")


def _line(text: str) -> str:
    """A line of text in which only backquotes mean something."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _linked(re.sub(r"([*|_\\])", r"\\\1", part)) for part in parts)


def _linked(text: str) -> str:
    """Plain text with its citations as links: authors with a year, or without one where they have one work here."""
    longest_first = sorted(_authors(), key=len, reverse=True)

    def link(match: re.Match[str]) -> str:
        works, year = _authors()[match["authors"]], match["year"] or match["in_brackets"]
        anchor = works.get(year) if year else next(iter(works.values()))
        return f":ref:`{match[0]} <{anchor}>`" if anchor else match[0]

    names = "|".join(map(re.escape, longest_first))
    return re.sub(rf"\b(?P<authors>{names})(?![\w'])(?: (?P<year>\d{{4}})| \((?P<in_brackets>\d{{4}})\))?", link, text)


def convert(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring by what Sphinx reads."""
    lines[:] = as_rst(list(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen for docstrings."""
    app.connect("autodoc-process-docstring", convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
