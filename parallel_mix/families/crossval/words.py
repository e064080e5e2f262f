"""What `info` says of a comparison of classifiers."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.evaluate.tables import table_of, told_apart, written
from parallel_mix.families.crossval.file import read_comparison
from parallel_mix.progress import plural


def describe(path: Path) -> list[str]:
    """A table of the errors, and what failed."""
    comparison = read_comparison(path)
    classifiers = plural(len(comparison.methods), "classifier")
    lines = [f"{path}: {classifiers} compared on {len(comparison.tests)} partitions of "
             f"{len(comparison.y):,} rows of {len(comparison.classes)} classes", ""]  # fmt: skip
    table = table_of([(comparison.name, told_apart(comparison.names), comparison.errors)])
    lines += written(table, "text").splitlines()
    for method in comparison.methods:
        lines += [
            f"{method.name} failed in {where}: {text.strip().splitlines()[-1]}"
            for where, text in method.failures.items()
        ]
    return lines
