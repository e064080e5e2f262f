"""Say how far runs are: state, time left, attempts, last words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from parallel_mix.config import argument, option


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `parallel-mix status`."""

    outputs: list[Path] | None = argument(
        "outputs of runs, or folders (default: this one)", nargs="*", default=None, is_input=False
    )
    json: bool = option(False, "print JSON for scripts")


def run(options: Options) -> None:
    """Read, print."""
    from parallel_mix.cluster.run_status import find, gather, line
    from parallel_mix.errors import InputError

    for path in options.outputs or []:
        if not path.exists() and not any(status.exists() for status in find([path])):
            raise InputError(f"There is no run that writes {path}, nor a folder of that name.")
    runs = gather(find(options.outputs or [Path()]))
    if options.json:
        print(json.dumps(runs, indent=1))
    elif runs:
        print("\n".join(line(run) for run in runs))
    else:
        print("No runs here.")


if __name__ == "__main__":
    from parallel_mix.cli import main_of

    main_of("status")
