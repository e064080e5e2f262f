"""The pages that are made of the program: commands, families, file formats, and what Python offers.

All of it is read from the registry of families, the options of the commands, and docstrings; no page holds a list of
its own. Each function returns text in MyST Markdown; `write_all` puts the pages into a folder for Sphinx to read.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import parallel_mix
from parallel_mix import cli, kernels, registry
from parallel_mix.backends.base import Backend
from parallel_mix.config import CommonOptions, TableOptions, add_options
from parallel_mix.registry import Command, Family

SHARED = {"run": CommonOptions, "table": TableOptions}
"""Options that many commands have; each kind is listed once, under the anchor `options-of-a-...`."""

PARTS = {
    "words": ("describe", "parallel-mix info FILE", "says what is in it"),
    "pages": ("draw", "parallel-mix plot FILE -o FOLDER", "draws its pictures"),
    "labels": ("labels_of", "parallel-mix export FILE -o LABELS.csv", "writes its labels as text"),
    "predictions": ("predict", "parallel-mix predict FILE NEW -o OUT.csv", "applies it to new rows"),
}
"""Modules of a family's folder: the function in each, the command that calls it, and what that does."""


def pages() -> dict[str, str]:
    """All pages by their names, without the ending `.md`."""
    known = registry.FAMILIES.values()
    return {
        "commands": commands_page(cli.commands()),
        "files": "\n".join(file_section(family) for family in known),
        **{f"families/{family.kind}": page_of(family) for family in known},
        **{f"reference/{family.kind}": reference_of(family) for family in known if family.estimators},
        "reference/functions": functions_page(),
        "reference/backends": backends_page(),
        "reference/kernels": kernels_page(),
    }


def write_all(folder: Path) -> None:
    """Write all pages; those that have not changed are left, and those of families that are gone are removed."""
    texts = {folder / f"{name}.md": text for name, text in pages().items()}
    for path in set(folder.rglob("*.md")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def page_of(family: Family) -> str:
    """The page of a family: how its results are made, what is in their file, and what can be done with them."""
    text = f"(family-{family.kind})=\n# {_title(family)}\n\n"
    text += f"{_made(family)}\n\n## How it is made\n\n"
    for name, (module, summary) in family.commands.items():
        text += f"### {name}\n\n{_command_text(Command(name, f'{family.package}.{module}', summary))}\n"
    if not family.commands:
        text += f"By {_command_link(family.command)}, which has the options.\n\n"
    text += f"## Its file\n\n{_layout_text(family)}\n## What can be done with it\n\n{_parts_text(family)}\n"
    return text + _python_text(family)


def file_section(family: Family) -> str:
    """What is in the files of a family, for the page of all file formats."""
    link = f"[its page](#family-{family.kind})"
    return f"(file-{family.kind})=\n## {_title(family)}\n\n{_made(family)} More on {link}.\n\n{_layout_text(family)}"


def layout_of(family: Family) -> tuple[tuple[str, str], ...]:
    """Groups, datasets and attributes of a family's files, with what they hold; none where it has no `LAYOUT`."""
    layout: Sequence[tuple[str, str]] = getattr(family.part("file"), "LAYOUT", ()) if family.has("file") else ()
    return tuple((path, text) for path, text in layout)


def commands_page(commands: dict[str, Command]) -> str:
    """Every command with its options; those that many have come last, once."""
    text = "| command | what it does |\n|---|---|\n"
    text += "".join(f"| {_command_link(name)} | {plain(command.summary)} |\n" for name, command in commands.items())
    for name, command in commands.items():
        text += f"\n(command-{_slug(name)})=\n## {name}\n\n{_command_text(command)}"
    for kind, options in SHARED.items():
        text += f"\n(options-of-a-{kind})=\n## Options of a {kind}\n\n{plain(options.__doc__ or '')}\n\n"
        text += option_table(options, set())
    return text


def reference_of(family: Family) -> str:
    """The classes that a family offers in Python."""
    text = f"# {_title(family)}\n\nWhat these make as a command: [](#family-{family.kind}).\n\n"
    classes = {name: getattr(import_module(module), name) for name, module in sorted(family.estimators.items())}
    return text + "\n".join(_documented(f"parallel_mix.{name}", thing) for name, thing in classes.items())


def functions_page() -> str:
    """What `import parallel_mix` offers that is no family's."""
    offered: list[str] = vars(parallel_mix)["__all__"]
    names = [name for name in offered if name not in registry.estimators() and not name.startswith("_")]
    text = "# Functions, and what they take\n\nAll of these are imported from `parallel_mix`.\n\n"
    return text + "\n".join(_documented(f"parallel_mix.{name}", getattr(parallel_mix, name)) for name in names)


def backends_page() -> str:
    """The backends that `--backend` names, as classes."""
    text = "# Backends\n\nWhat `backend=` takes. Each is a context manager and ends its workers when it is left.\n\n"
    text += _documented("parallel_mix.backends.base.Backend", Backend)
    option = next(item for item in fields(CommonOptions) if item.name == "backend")
    for name in option.metadata["choices"]:
        module = import_module(f"parallel_mix.backends.{name}")
        for thing in vars(module).values():
            if inspect.isclass(thing) and issubclass(thing, Backend) and thing.__module__ == module.__name__:
                text += "\n" + _documented(f"{module.__name__}.{thing.__name__}", thing, members=False)
    return text


def kernels_page() -> str:
    """What each file of kernels computes, as it says itself: formulas, citations, letters."""
    text = "# Kernels\n\nThe arithmetic: arrays in, arrays out. Their letters are listed in [](/symbols.md).\n"
    for module in walk_packages(kernels.__path__, f"{kernels.__name__}."):
        name = module.name.removeprefix(f"{kernels.__name__}.")
        marks = "###" if "." in name else "##"
        title = f"{marks} {name}" if module.ispkg else f"{marks} {name.replace('.', '/')}.py"
        text += f"\n{title}\n\n```{{eval-rst}}\n.. automodule:: {module.name}\n```\n"
    return text


def option_table(options: type[Any], without: set[str]) -> str:
    """The options of a class as a table, those of some names left out, as `--help` has them."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser, options)
    actions = [action for action in parser._actions if action.dest not in without]
    rows = [f"| {_spelling(action)} | {plain((action.help or '') % vars(action))} |" for action in actions]
    return "\n".join(["| option | what |", "|---|---|", *rows, ""])


def plain(text: str) -> str:
    """Text in which Markdown sees nothing but code in backquotes, fit for a cell of a table."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    escaped = [part if part.startswith("`") else re.sub(r"([\\*_<>\[\]$#{}])", r"\\\1", part) for part in parts]
    return "".join(escaped).replace("|", r"\|")


def _command_text(command: Command) -> str:
    """How a command is called, what it does, and its own options, with links to those it shares with others."""
    module = import_module(command.module)
    options: type[Any] = module.Options
    own = {item.name: item for item in fields(options)}
    shared = {kind: {f.name for f in fields(of) if own.get(f.name) is f} for kind, of in SHARED.items()}
    links = [f"[options of a {kind}](#options-of-a-{kind})" for kind, names in shared.items() if names]
    positional = [f"[{f.name}]" if f.metadata.get("nargs") == "?" else f.name for f in own.values() if _is_place(f)]
    output = own.get("output")
    required = ["-o", "OUTPUT"] if output and output.metadata.get("required") else []
    usage = " ".join(["parallel-mix", command.name, *(name.upper() for name in positional), *required, "[options]"])
    without = set().union(*shared.values()) | ({"config"} if links else set())
    text = f"```text\n{usage}\n```\n\n{plain(module.__doc__ or command.summary)}\n\n{option_table(options, without)}\n"
    return text + (f"It also has the {' and the '.join(links)}.\n" if links else "")


def _is_place(item: Any) -> bool:
    """True for an argument that has its place and no flag."""
    return bool(item.metadata.get("positional"))


def _spelling(action: argparse.Action) -> str:
    """An option as it is typed."""
    if not action.option_strings:
        return f"`{action.dest.upper()}`"
    value = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.metavar or action.dest.upper()
    flags = ", ".join(f"`{flag}`" for flag in action.option_strings)
    return flags if action.nargs == 0 else f"{flags} `{value}`"


def _layout_text(family: Family) -> str:
    """The layout of a family's file as a table."""
    shared = "Besides there is [what every result has](#every-result).\n"
    rows = "".join(f"| `{path}` | {plain(text)} |\n" for path, text in layout_of(family))
    if not rows:
        return f"`h5ls -rv FILE` lists what is in it. {shared}"
    return f"| in the file | what |\n|---|---|\n{rows}\n{shared}"


def _parts_text(family: Family) -> str:
    """Which of the commands that take results of any kind take this one, and what comes of it."""
    present = {name: part for name, part in PARTS.items() if family.has(name)}
    rows = [
        f"| `{command}` | {does} | {plain(_doc(family.module_of(name), function))} |"
        for name, (function, command, does) in present.items()
    ]
    text = "\n".join(["| command | does | what comes of it |", "|---|---|---|", *rows, ""]) if rows else ""
    absent = [_command_link(command.split()[1]) for name, (_, command, _) in PARTS.items() if name not in present]
    return text + (f"\nNot taken by {_listed(absent)}.\n" if absent else "")


def _python_text(family: Family) -> str:
    """The classes of a family, and the classifiers that cross-validation can compare."""
    text = ""
    if family.estimators:
        text += "## In Python\n\n| class | what it is |\n|---|---|\n"
        for name, module in sorted(family.estimators.items()):
            summary = (inspect.getdoc(getattr(import_module(module), name)) or "").partition("\n\n")[0]
            text += f"| {{py:class}}`parallel_mix.{name}` | {plain(summary)} |\n"
    if family.classifiers:
        text += "\n## What `crossval` can compare of it\n\n| name | class | chosen by the folds from |\n|---|---|---|\n"
        for method in import_module(family.classifiers).METHODS:
            grid = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in method.grid.items())
            text += f"| `{method.name}` | `{method.where.partition(':')[2]}` | {plain(grid)} |\n"
    return text


def _doc(module: str, function: str) -> str:
    """The docstring of a function, read without an import: pictures need matplotlib."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None  # noqa: S101 - `has` has found it
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    defined = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return next((ast.get_docstring(node) or "" for node in defined), ast.get_docstring(tree) or "")


def _documented(name: str, thing: Any, members: bool = True) -> str:
    """A class or function with its docstring, and a class with its methods."""
    lines = [f".. {'autoclass' if inspect.isclass(thing) else 'autofunction'}:: {name}"]
    if members and inspect.isclass(thing) and (names := members_of(thing)):
        lines.append(f"   :members: {', '.join(names)}")
    return "\n".join([f"## {name.rpartition('.')[2]}", "", "```{eval-rst}", *lines, "```", ""])


def members_of(thing: type[Any]) -> list[str]:
    """Public methods and properties of a class and those it inherits, but not from scikit-learn or Python itself."""
    foreign = {"builtins", "abc", "typing", "sklearn"}
    ours = [kind for kind in reversed(thing.__mro__) if kind.__module__.partition(".")[0] not in foreign]
    named = (name for kind in ours for name, value in vars(kind).items() if _is_documented(name, value))
    return list(dict.fromkeys(named))


def _is_documented(name: str, value: Any) -> bool:
    """True for a method or property with a public name and a docstring."""
    is_member = inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod))
    return not name.startswith("_") and is_member and bool(inspect.getdoc(value))


def _title(family: Family) -> str:
    """The title of a family, as a heading begins."""
    return plain(family.title[:1].upper() + family.title[1:])


def _made(family: Family) -> str:
    """A sentence: of what kind a family's results are, and which command makes them."""
    return (
        f"{_title(family)}: a file whose attribute `kind` is `{family.kind}`, made by {_command_link(family.command)}."
    )


def _command_link(words: str) -> str:
    """A link to a command, given with or without options."""
    name = words.partition(" --")[0]
    return f"[`{words}`](#command-{_slug(name)})"


def _slug(name: str) -> str:
    """A name as anchors have it."""
    return name.replace(" ", "-")


def _listed(names: Iterable[str]) -> str:
    """One, two or three names in a sentence."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
