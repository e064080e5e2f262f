"""What `info` says of a comparison of classifiers."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.evaluate.tables import table_of, told_apart, written
from parallel_mix.families.crossval.file import read_comparison
from parallel_mix.progress import plural


def describe(path: Path) -> list[str]:
    """A table of the errors, and what failed."""
    found = read_comparison(path)
    lines = [f"{path}: {plural(len(found.methods), 'classifier')} compared on {len(found.tests)} partitions of "
             f"{len(found.y):,} rows of {len(found.classes)} classes", ""]  # fmt: skip
    lines += written(table_of([(found.name, told_apart(found.names), found.errors)]), "text").splitlines()
    for method in found.methods:
        lines += [
            f"{method.name} failed in {where}: {text.strip().splitlines()[-1]}"
            for where, text in method.failures.items()
        ]
    return lines
