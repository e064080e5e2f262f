"""What is in a file, in words."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.errors import InputError
from parallel_mix.families import family_of
from parallel_mix.progress import plural
from parallel_mix.runs.efficiency import Efficiency
from parallel_mix.store.damage import MEND, reading
from parallel_mix.store.guard import checksums_in, look_first
from parallel_mix.store.results import read_record
from parallel_mix.store.tables import Selection, read_table

MOST_COLUMNS = 40


def of_result(path: Path) -> list[str]:
    """What was found, and how it was made."""
    family = family_of(path, "words", ", of which nothing is known: it may be one of a later parallel-mix.")
    return [*family.part("words").describe(path), "", *_of_run(path), *_of_checksums(path)]


def verified(path: Path) -> str:
    """Compare a whole file with its checksums, large matrices too, and return the sentence that it is what was written.

    A file that is not, or that has no checksums, is refused.
    """
    look_first(path, MEND)
    if (sums := checksums_in(path)) is None:
        raise InputError(f"{path} has no checksums: nothing tells whether it is what was written.")
    with reading(path):
        sums.compare_all()
    return f"{path}: all {sums.length:,} bytes are those that were written"


def _of_checksums(path: Path) -> list[str]:
    """Return a line that says so where a file has no checksums."""
    return [] if checksums_in(path) else ["no checksums: a number that was changed on the way would not be told"]


def _of_run(path: Path) -> list[str]:
    record = read_record(path)
    lines = [
        f"made {record['started']} on {record['host']} by `{record['command_line']}`",
        f"backend {record['backend']}, {record['workers']} at a time, {record['seconds']:.1f} s, attempt "
        f"{record['attempts']}, {record['reused']:g} {record.get('unit', 'ascents')} reused, seed {record['seed']}",
    ]
    if "efficiency" not in record:
        return lines
    efficiency = Efficiency.from_record(record["efficiency"])
    return [*lines, efficiency.summary(), *efficiency.table()]


def of_table(path: Path, selection: Selection) -> list[str]:
    """Rows, columns, and their range."""
    table = read_table(path, selection)
    n, d = table.X.shape
    lines = [f"{path}: a table of {n:,} rows and {plural(d, 'column')}"]
    lines += table.notes
    lines += [f"  with {name}" for name in ("w", "y", "rows") if getattr(table, name) is not None]
    lines.append(f"  {'column':<16} {'lowest':>12} {'mean':>12} {'highest':>12} {'sd':>12}")
    for k, column in enumerate(table.X.T[:MOST_COLUMNS]):
        name = table.columns[k] if table.columns else str(k + 1)
        sd = column.std(ddof=1)
        lines.append(f"  {name[:16]:<16} {column.min():12.5g} {column.mean():12.5g} {column.max():12.5g} {sd:12.5g}")
    return lines + ([f"  ... and {d - MOST_COLUMNS} more"] if d > MOST_COLUMNS else [])
