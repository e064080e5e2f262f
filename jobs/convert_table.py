"""Turn a table into HDF5, which every worker can open for itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import TableOptions, argument, option


@dataclass(frozen=True, kw_only=True)
class Options(TableOptions):
    """Options of `parallel-mix convert`."""

    input: Path = argument("table: csv, npy, npz, parquet or HDF5")
    output: Path = option(None, "the HDF5 file to write", read=Path, metavar="FILE", short="-o", required=True)
    weights: str | None = option(None, "dataset or column of row weights", metavar="NAME")
    force: bool = option(False, "overwrite an existing file")


def run(options: Options) -> None:
    """Read, check, write."""
    from parallel_mix.runs.job import check_output
    from parallel_mix.store.columns import used
    from parallel_mix.store.hdf5_tables import write_table
    from parallel_mix.store.tables import HDF5_ENDINGS, read_table

    check_output(options.output, options.force, HDF5_ENDINGS, options.input)
    table = read_table(options.input, options.selection(), least_rows=1)
    write_table(options.output, table)
    print("\n".join((*table.notes, used(table.columns, table.X.shape[1]))))
    print(f"{options.output}: {table.X.shape[0]:,} rows, {table.X.shape[1]} columns.")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("convert")
