"""Write the labels of a result as csv, row names kept."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option

PARALLEL = False


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix export`."""

    result: Path = argument("result of `parallel-mix hmac`")
    output: Path = option(None, "the csv file to write", read=Path, metavar="FILE", short="-o", required=True)
    level: str | None = option(None, "a level, or `all`; default: the one its labels show", metavar="N")
    force: bool = option(False, "overwrite an existing file")


def run(options: Options) -> None:
    """Read, write."""
    from parallel_mix.errors import InputError
    from parallel_mix.launch.job import check_output
    from parallel_mix.models.hmac_result import HmacResult
    from parallel_mix.store.atomic import write_text
    from parallel_mix.store.labels import labels_as_csv
    from parallel_mix.store.results import read_names, read_result
    from parallel_mix.store.tables import TEXT_ENDINGS

    result = HmacResult.from_tree(read_result(options.result, "hmac"))
    check_output(options.output, options.force, TEXT_ENDINGS, options.result)
    if options.level == "all":
        columns = {f"level_{k}": level.labels for k, level in enumerate(result.levels)}
    else:
        try:
            asked = None if options.level is None else int(options.level)
        except ValueError:
            raise InputError(f"--level must be a number or `all`, not {options.level!r}.") from None
        columns = {"label": result.levels[result.level_number(asked)].labels}
    write_text(options.output, labels_as_csv(read_names(options.result)[0], columns))
    sys.stderr.write(f"{options.output} written.\n")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("export")
