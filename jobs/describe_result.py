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
    """Read, print."""
    from parallel_mix.launch.efficiency import Efficiency
    from parallel_mix.models.hmac_result import HmacResult
    from parallel_mix.progress import plural
    from parallel_mix.store.results import is_result, read_classes, read_record, read_result
    from parallel_mix.store.tables import Selection, read_table

    if is_result(options.file):
        result = HmacResult.from_tree(read_result(options.file, "hmac"))
        print("\n".join([f"{options.file}: clustering by mode association (hmac)", *result.summary()]))
        known = read_classes(options.file) or []
        if len(set(known)) > 1:
            from sklearn.metrics import adjusted_rand_score

            scores = [adjusted_rand_score(known, level.labels) for level in result.levels]
            shown = result.default_level
            best = max(range(len(scores)), key=lambda level: (scores[level], level == shown))
            print(
                f"agreement with the {len(set(known))} known classes (adjusted Rand index): "
                f"{scores[shown]:.3f} at level {shown}; best {scores[best]:.3f} at level {best}"
            )
        record = read_record(options.file)
        print(
            f"\nmade {record['started']} on {record['host']} by `{record['command_line']}`\n"
            f"backend {record['backend']}, {record['workers']} at a time, {record['seconds']:.1f} s, "
            f"attempt {record['attempts']}, {record['reused']:g} ascents reused, seed {record['seed']}"
        )
        if "efficiency" in record:
            efficiency = Efficiency.from_record(record["efficiency"])
            print("\n".join([efficiency.summary(), *efficiency.table()]))
        return
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
