"""Say what is in a result, or in a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import TableOptions, argument, option


@dataclass(frozen=True, kw_only=True)
class Options(TableOptions):
    """Options of `parallel-mix info`."""

    file: Path = argument("a result or a table")
    verify: bool = option(False, "only compare all of a result, large matrices too, with its checksums")


def run(options: Options) -> None:
    """Find out what it is, print."""
    from parallel_mix.families import words
    from parallel_mix.store.results import is_result, making_sense_of

    if options.verify:
        lines = [words.verified(options.file)]
    elif is_result(options.file):
        with making_sense_of(options.file):
            lines = words.of_result(options.file)
    else:
        lines = words.of_table(options.file, options.selection())
    print("\n".join(lines))


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("info")
