"""Options of a job: one frozen dataclass, filled from flags or from a TOML file.

Each field carries its own help and reading rule as metadata (`option`), so parser, TOML and documentation come from
one place.
"""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from parallel_mix.errors import InputError

if TYPE_CHECKING:
    from parallel_mix.store.tables import Selection

T = TypeVar("T")


def option(default: Any, text: str, *, read: Any = None, metavar: str | None = None, **more: Any) -> Any:
    """A field of an options class. `read` turns the text of a flag into the value."""
    return field(default=default, metadata={"help": text, "read": read, "metavar": metavar, **more})


def argument(
    text: str, *, nargs: str | None = None, read: Any = Path, default: Any = MISSING, is_input: bool = True
) -> Any:
    """A positional argument: the path of an input file, unless it is read otherwise or said to be none."""
    metadata = {"help": text, "read": read, "positional": True, "nargs": nargs, "input": is_input and read is Path}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


def input_files(options: Any) -> list[Path]:
    """The input files that options name: the fields that say so of themselves."""
    paths: list[Path] = []
    for item in fields(options):
        value = getattr(options, item.name) if item.metadata.get("input") else None
        paths += value if isinstance(value, list) else [] if value is None else [value]
    return paths


def numbers(text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError("numbers separated by commas are needed") from None


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in text.split(","))


def number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number is needed") from None


def integer(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number is needed") from None


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    value = int(text) if text.strip().lstrip("+-").isdigit() else 0
    if value < 1:
        raise ValueError("must be a whole number of 1 or more")
    return value


def positives(text: str) -> tuple[int, ...]:
    """Whole numbers above 0, and ranges of them (2..6), with commas between."""
    numbers: list[int] = []
    for part in text.split(","):
        low, high = span(part)
        numbers += range(low, high + 1)
    return tuple(dict.fromkeys(numbers))


def count(text: str) -> int:
    """A whole number of 0 or more."""
    if not text.strip().isdigit():
        raise ValueError("must be a whole number of 0 or more")
    return int(text)


def span(text: str) -> tuple[int, int]:
    """A least and a greatest whole number: 2..16, or 4 for exactly four."""
    first, dots, last = text.partition("..")
    low, high = positive(first), positive(last if dots else first)
    if low > high:
        raise ValueError("the least comes first, as in 2..16")
    return low, high


def seconds(text: str) -> float:
    """A number of seconds, 0 or more."""
    value = float(text)
    if not value >= 0:
        raise ValueError("must be 0 or more")
    return value


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """What every job understands."""

    output: Path = option(None, "the result file to write", read=Path, metavar="FILE", short="-o", required=True)
    backend: str | None = option(
        None,
        "where to run; default: mpi under mpirun or srun, else serial",
        choices=("serial", "mpi", "dask"),
    )
    threads: int | None = option(
        None,
        "compute threads of each process; default: all cores serially, else 1",
        read=positive,
        metavar="N",
    )
    workers: int | None = option(None, "workers of the local Dask cluster", read=positive, metavar="N")
    scheduler: str | None = option(None, "address of a running Dask scheduler", metavar="URL")
    scheduler_file: str | None = option(None, "JSON file of a running Dask scheduler", metavar="FILE")
    slurm_workers: tuple[int, int] | None = option(
        None, "Dask workers as SLURM jobs, as many as there is work for", read=span, metavar="MIN..MAX"
    )
    seed: int = option(0, "seed of whatever is random", read=count, metavar="N")
    force: bool = option(False, "overwrite an existing result")
    fresh: bool = option(False, "ignore a checkpoint and begin anew")
    only_task: int | None = option(None, "run one task of a failed run again, alone, here", read=integer, metavar="N")
    dry_run: bool = option(False, "check the input and say what would be done")
    checkpoint_every: float = option(2.0, "least seconds between two checkpoints", read=seconds, metavar="SECONDS")
    quiet: bool = option(False, "no progress, no closing words")
    log_file: Path | None = option(None, "write progress there too", read=Path, metavar="FILE")

    def __post_init__(self) -> None:
        if self.output is not None and not self.output.name:
            raise InputError(f"The output {self.output} is a folder: give the name of a file in it.")
        if self.workers and (self.scheduler or self.scheduler_file):
            raise InputError("--workers is for a Dask cluster of our own: a running one has its workers.")
        for flag in ("workers", "scheduler", "scheduler_file"):
            if getattr(self, flag) is not None and self.backend != "dask":
                raise InputError(f"--{flag.replace('_', '-')} is for Dask: add --backend dask.")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which parts of a table are meant."""

    dataset: str = option("X", "name of the data in HDF5 or npz, or of the column of texts", metavar="NAME")
    labels: str | None = option(None, "dataset or column of known classes (kept, not used as data)", metavar="NAME")
    row_names: str | None = option(None, "dataset or column of row names", metavar="NAME")
    columns: tuple[str, ...] | None = option(
        None, "only these columns of numbers, by name, counted from 1, or from..to", read=names, metavar="A,B,C..E"
    )
    drop: tuple[str, ...] | None = option(None, "all columns but these", read=names, metavar="A,B,C..E")

    def selection(self, kind: str = "numbers") -> Selection:
        """These options in the form that readers of tables take; `kind` is that of the things in the file."""
        from parallel_mix.store.tables import Selection

        weights = getattr(self, "weights", None)
        return Selection(self.dataset, weights, self.labels, self.row_names, kind, self.columns, self.drop)


def add_options(parser: argparse.ArgumentParser, kind: type[Any]) -> None:
    """Give a parser the flags of an options class. Absent flags leave no trace, so that a TOML file can fill in."""
    for item in fields(kind):
        data = dict(item.metadata)
        if data.get("positional"):
            extra: dict[str, Any] = {"nargs": data["nargs"]} if data.get("nargs") else {}
            if item.default is not MISSING:
                extra["default"] = item.default
            parser.add_argument(item.name, type=data["read"], help=data["help"].replace("%", "%%"), **extra)
            continue
        flags = [flag for flag in (data.get("short"), _flag(item)) if flag]
        common: dict[str, Any] = {"dest": item.name, "default": argparse.SUPPRESS, "help": _help(item)}
        if isinstance(item.default, bool):
            if data.get("negative"):
                parser.add_argument(data["negative"], action="store_false", **common)
            else:
                parser.add_argument(*flags, action="store_true", **common)
        else:
            choices = data.get("choices")
            parser.add_argument(*flags, type=_checked(item), choices=choices, metavar=data["metavar"], **common)
    parser.add_argument("--config", type=Path, metavar="FILE.toml", help="options from a TOML file; flags go before it")


def gather(kind: type[T], flags: dict[str, Any]) -> T:
    """Options from flags over TOML over defaults."""
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    named = {name: item for name, item in known.items() if not item.metadata.get("positional")}
    config = flags.pop("config", None)
    from_file = _from_toml(config, named) if config else {}
    for name, item in named.items():  # a flag goes before what it stands instead of, too
        for other in item.metadata.get("instead_of", ()):
            if name in flags:
                from_file.pop(other, None)
            elif other in flags:
                from_file.pop(name, None)
    values = {**from_file, **flags}
    for name, item in known.items():
        if item.metadata.get("required") and values.get(name) is None:
            raise InputError(f"{_flag(item)} is missing: give {item.metadata['help']}.")
    return kind(**values)


def _from_toml(path: Path, known: dict[str, Field[Any]]) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The options file {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The options file {path} is no TOML: {error}.") from error
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        opposite = next((n for n, item in known.items() if item.metadata.get("negative") == f"--{key}"), None)
        if opposite and isinstance(value, bool):  # flat = true, as the flag is called
            values[opposite] = not value
            continue
        if name not in known:
            valid = ", ".join(sorted(n.replace("_", "-") for n in known))
            raise InputError(f"{path} has an unknown option {key!r}. Valid ones: {valid}.")
        values[name] = _read_toml_value(path, known[name], value)
    return values


def _read_toml_value(path: Path, item: Field[Any], value: Any) -> Any:
    choices, read = item.metadata.get("choices"), item.metadata.get("read")
    if isinstance(item.default, bool):
        if isinstance(value, bool):
            return value
        raise InputError(f"{path}: {item.name} must be true or false, not {value!r}.")
    if isinstance(value, bool | dict) or (read is None and not isinstance(value, str)):
        raise InputError(f"{path}: {item.name} = {value!r} does not do: a text is needed, in quotes.")
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    try:
        result = read(text) if read else text
    except ValueError as error:
        raise InputError(f"{path}: {item.name} = {value!r} does not do: {error}.") from error
    if choices and result not in choices:
        raise InputError(f"{path}: {item.name} must be one of {', '.join(map(str, choices))}, not {value!r}.")
    return result


def _flag(item: Field[Any]) -> str:
    return "--" + item.name.replace("_", "-")


def _help(item: Field[Any]) -> str:
    text: str = item.metadata["help"].replace("%", "%%")
    shown = item.default is not None and not isinstance(item.default, bool) and "default" not in text
    value = ",".join(map(str, item.default)) if isinstance(item.default, tuple) else item.default
    return f"{text} (default: {value})" if shown else text


def _checked(item: Field[Any]) -> Any:
    read = item.metadata.get("read") or str

    def checked(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} does not do: {error}") from error

    return checked
