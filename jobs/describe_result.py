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
    from parallel_mix.launch import descriptions
    from parallel_mix.store.results import is_result
    from parallel_mix.store.tables import Selection

    if is_result(options.file):
        lines = descriptions.of_result(options.file)
    else:
        lines = descriptions.of_table(options.file, Selection(options.dataset, None, options.labels, options.row_names))
    print("\n".join(lines))


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("info")
