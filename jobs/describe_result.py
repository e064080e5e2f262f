"""Say what is in a result, or in a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option

PARALLEL = False


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix info`."""

    file: Path = argument("a result or a table")
    dataset: str = option("X", "name of the data in a table in HDF5 or npz", metavar="NAME")
    labels: str | None = option(None, "dataset or column of known classes, of a table", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names, of a table", metavar="NAME")


def run(options: Options) -> None:
    """Find out what it is, print."""
    from parallel_mix.store.results import is_result, kind_of

    if not is_result(options.file):
        tell_of_table(options)
        return
    {"hmac": tell_of_hmac, "distances": tell_of_distances}[kind_of(options.file)](options.file)
    tell_of_run(options.file)


def tell_of_hmac(path: Path) -> None:
    """Levels, clusters, agreement with known classes."""
    from parallel_mix.models.hmac_result import HmacResult
    from parallel_mix.store.results import read_classes, read_result

    result = HmacResult.from_tree(read_result(path, "hmac"))
    print("\n".join([f"{path}: clustering by mode association (hmac)", *result.summary()]))
    if len(set(known := read_classes(path) or [])) > 1:
        print(result.agreement(known))


def tell_of_distances(path: Path) -> None:
    """Range, symmetry, how metric and how Euclidean."""
    from parallel_mix.models.distance_checks import examine
    from parallel_mix.store.matrix_files import MatrixReader

    matrix = MatrixReader(path)
    print("\n".join([f"{path}: distances ({matrix.metric})", *examine(matrix).lines()]))


def tell_of_run(path: Path) -> None:
    """Who made it, where, how well."""
    from parallel_mix.launch.efficiency import Efficiency
    from parallel_mix.store.results import read_record

    record = read_record(path)
    print(
        f"\nmade {record['started']} on {record['host']} by `{record['command_line']}`\n"
        f"backend {record['backend']}, {record['workers']} at a time, {record['seconds']:.1f} s, attempt "
        f"{record['attempts']}, {record['reused']:g} {record.get('unit', 'ascents')} reused, seed {record['seed']}"
    )
    if "efficiency" in record:
        efficiency = Efficiency.from_record(record["efficiency"])
        print("\n".join([efficiency.summary(), *efficiency.table()]))


def tell_of_table(options: Options) -> None:
    """Its columns."""
    from parallel_mix.progress import plural
    from parallel_mix.store.tables import Selection, read_table

    table = read_table(options.file, Selection(options.dataset, None, options.labels, options.row_names))
    n, d = table.X.shape
    print(f"{options.file}: a table of {n:,} rows and {plural(d, 'column')}")
    for name in ("w", "y", "rows"):
        if getattr(table, name) is not None:
            print(f"  with {name}")
    print(f"  {'column':<16} {'lowest':>12} {'mean':>12} {'highest':>12} {'sd':>12}")
    for k, column in enumerate(table.X.T[:40]):
        name = table.columns[k] if table.columns else str(k)
        sd = column.std(ddof=1)
        print(f"  {name[:16]:<16} {column.min():12.5g} {column.mean():12.5g} {column.max():12.5g} {sd:12.5g}")
    if d > 40:
        print(f"  ... and {d - 40} more")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("info")
