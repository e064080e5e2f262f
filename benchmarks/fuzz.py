"""What commands make of damaged files: bytes flipped, cut, doubled or zeroed, in inputs, results and checkpoints.

python benchmarks/fuzz.py COMMAND[,COMMAND...]|all COUNT SEED      COMMAND: info, table, plot, export, predict, hmac,
resume, ...; COUNT cases of each

Each case damages one file that a command reads, runs the command in a process of its own, and judges: exit 0 (and for a
result the answer of the undamaged file), or exit 2 with a sentence; within 10 seconds, and with nothing left behind.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from parallel_mix.cli import main as run_command
from parallel_mix.errors import Stopped
from parallel_mix.registry import FAMILIES, Family
from parallel_mix.runs.job import Job

DEADLINE = 10.0
COMPILING = 120.0
LARGE = 4_194_304
"""Bytes of a file that is copied to where it is used alone."""
UNDER_MPI = [str(Path(sys.executable).with_name("mpirun")), "--oversubscribe", "-n", "2"]
MUTATIONS = ("flip", "cut", "double", "zero", "noise", "number")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NUMBERS = (2**64 - 1, 2**63 - 1, 2**63, 2**32 - 1, 2**31, 2**16, 255, 0, 0x7FF0000000000000, 0x7FF8000000000000)
"""Of 64 bits; the last two are the doubles infinity and NaN."""
LOADED = ("matplotlib.pyplot", "pyarrow.parquet", "scipy.stats", "sklearn.svm", "parallel_mix.kernels.density.modal_em")
GOOD = ("same answer", "sentence", "another input")
INPUTS = {"rows": "rows.csv", "distances": "distances.h5"}
"""Of the families' examples."""
RESULTS = tuple(f"{kind}.h5" for kind in FAMILIES)
OLD = tuple(f"old-{name}" for name in RESULTS)
"""The same without checksums, as they were written before there were any."""


@dataclass(frozen=True)
class Case:
    """A command, the file in it that is damaged, and the outputs that tell its answer."""

    words: str  # {} stands for the damaged file, other names are files of the folder
    file: str
    answer: str = ""  # a file that is written; "" means what is printed
    result: bool = False  # the damaged file has checksums: another answer is wrong


def example_of(family: Family, output: str) -> str:
    """The command that makes a small result of a family."""
    return f"{family.example.format(**INPUTS, output=output)} --quiet"


def results_with(part: str) -> list[str]:
    """The results of families that have a part."""
    return [f"{kind}.h5" for kind, family in FAMILIES.items() if family.has(part)]


DENSITIES = ("field", "tree")
"""Of hmac, besides the exact one that so few rows have by default."""
BEGUN = {kind: f"{example_of(family, 'out.h5')} --checkpoint-every 0" for kind, family in FAMILIES.items()}
BEGUN |= {kind: f"{BEGUN['hmac']} --density {kind}" for kind in DENSITIES}
BEGUN |= {"slices": f"{BEGUN['hmac']} --approach 3"}
"""Runs that are stopped before they write their result, and gone on with from a checkpoint."""

PREDICTIONS = {
    f"{kind}.h5": family.prediction.format(**INPUTS, result="{}", output="out.csv")
    for kind, family in FAMILIES.items()
    if family.prediction
}
"""By result."""

CASES = {
    "info": [Case("info {}", name, result=True) for name in RESULTS]
    + [Case("info {} --labels y", name) for name in ("a.h5", "others.h5", "a.csv", "a.npz", "a.parquet")]
    + [Case("info {}", "a.npy")],
    "verify": [Case("info {} --verify", name, result=True) for name in RESULTS],
    "table": [Case("table {}", name, result=True) for name in results_with("tables")],
    "plot": [Case("plot {} -o out --format png", name, "out", result=True) for name in results_with("pages")],
    "export": [Case("export {} -o out.csv", name, "out.csv", result=True) for name in results_with("labels")],
    "predict": [Case(words, name, "out.csv", result=True) for name, words in PREDICTIONS.items()]
    + [Case("predict hmac.h5 {} -o out.csv", name, "out.csv") for name in ("a.h5", "b.csv")]
    + [Case("predict hlm.h5 {} -o out.csv", "distances.h5", "out.csv", result=True)]
    + [Case("predict {} b.csv -o out.csv", f"{kind}.h5", "out.csv", result=True) for kind in DENSITIES],
    "hmac": [
        Case("hmac {} -o out.h5 --levels 3 --labels y --quiet", name, "out.h5")
        for name in ("a.h5", "others.h5", "a.csv", "a.npz", "a.parquet")
    ]
    + [Case("hmac {} -o out.h5 --levels 3 --quiet", "a.npy", "out.h5")]
    + [Case(f"hmac {{}} -o out.h5 --levels 3 --quiet --density {kind}", "a.h5", "out.h5") for kind in DENSITIES]
    + [Case("hmac {} -o out.h5 --levels 3 --quiet --approach 3", name, "out.h5") for name in ("a.h5", "others.h5")],
    "distances": [
        Case("distances {} -o out.h5 --labels y --quiet", name, "out.h5") for name in ("a.h5", "a.npz", "a.csv")
    ]
    + [Case("distances {} -o out.h5 --metric mallows --quiet", "S.h5", "out.h5")]
    + [Case("distances {} -o out.h5 --from-similarity bound --quiet", "distances.h5", "out.h5", result=True)],
    "cluster": [
        Case("cluster {} -o out.h5 --clusters 3 --quiet", "distances.h5", "out.h5", result=True),
        Case("cluster {} -o out.h5 --clusters 3 --quiet", "square.npy", "out.h5"),
    ],
    "hlm fit": [Case("hlm fit {} --labels y -o out.h5 --components 2 --quiet", "distances.h5", "out.h5", result=True)],
    "hlm update": [
        Case("hlm update {} D2.h5 --labels y -o out.h5 --quiet", "hlm.h5", "out.h5", result=True),
        Case("hlm update hlm.h5 {} --labels y -o out.h5 --quiet", "D2.h5", "out.h5", result=True),
    ],
    "crossval": [
        Case(
            f"crossval {{}} --labels y -o out.h5 --classifiers knn --partitions 2 --quiet {more}", name, "out.h5", kept
        )
        for name, more, kept in (("distances.h5", "", True), ("a.csv", "--metric vdm", False))
    ],
    "convert": [
        Case("convert {} -o out.h5 --labels y", name, "out.h5") for name in ("a.csv", "a.npz", "others.h5", "a.parquet")
    ],
    "resume": [Case(words, f"out.h5.checkpoint of {name}", "out.h5", result=True) for name, words in BEGUN.items()]
    + [Case(BEGUN["hmac"], "out.h5.progress.json of hmac", "out.h5", result=True)],
    "status": [Case("status out.h5", "out.h5.progress.json of hmac")],
    "tiles": [
        Case("info {}", "T.h5", result=True),
        Case("info {} --verify", "T.h5", result=True),
        Case("cluster {} -o out.h5 --clusters 3 --restarts 2 --quiet", "T.h5", "out.h5", result=True),
    ],
    "mpi": [
        Case("mpirun cluster {} -o out.h5 --clusters 3 --quiet", "distances.h5", "out.h5", result=True),
        Case("mpirun cluster {} -o out.h5 --clusters 3 --restarts 2 --quiet", "T.h5", "out.h5", result=True),
        Case("mpirun hmac {} -o out.h5 --levels 3 --labels y --quiet", "others.h5", "out.h5"),
    ],
    "old": [Case("info {}", name) for name in OLD]
    + [Case("plot {} -o out --format png", f"old-{name}", "out") for name in results_with("pages")]
    + [Case("export {} -o out.csv", f"old-{name}", "out.csv") for name in results_with("labels")]
    + [Case("table {}", f"old-{name}") for name in results_with("tables")]
    + [Case(words, f"old-{name}", "out.csv") for name, words in PREDICTIONS.items()]
    + [Case("hlm update {} D2.h5 --labels y -o out.h5 --quiet", "old-hlm.h5", "out.h5")]
    + [Case("cluster {} -o out.h5 --clusters 3 --quiet", "old-distances.h5", "out.h5")],
}
PREPARE = (
    "convert a.csv -o a.h5 --labels y",
    *(example_of(family, f"{kind}.h5") for kind, family in FAMILIES.items()),
    *(f"hmac a.h5 -o {kind}.h5 --levels 3 --labels y --quiet --density {kind}" for kind in DENSITIES),
    FAMILIES["distances"].example.format(rows="a2.csv", output="D2.h5"),
    "distances tall.npy -o T.h5 --metric minkowski --p 3 --quiet",
)


def prepare(folder: Path) -> None:
    """One small file of each kind."""
    r = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = r.normal(size=(60, 3)) + 4.0 * y[:, None]
    lines = [",".join([*(f"{value:.6f}" for value in row), f"c{label}"]) for row, label in zip(X, y, strict=True)]
    (folder / "a.csv").write_text("\n".join(["one,two,three,y", *lines]) + "\n")
    (folder / "rows.csv").write_text("\n".join(["one,two,three,kind", *lines]) + "\n")
    more = [f"{line[:6]}7{line[6:]}" for line in lines]
    (folder / "a2.csv").write_text("\n".join(["one,two,three,kind", *more]) + "\n")
    (folder / "b.csv").write_text("\n".join(["one,two,three", *(line.rsplit(",", 1)[0] for line in lines[:9])]) + "\n")
    with h5py.File(folder / "others.h5", "w") as file:  # as another program writes it, in chunks and without checksums
        file.create_dataset("X", data=X, chunks=(16, 3), compression="gzip")
        file["y"] = y
    with h5py.File(folder / "S.h5", "w") as file:
        file["values"], file["weights"], file["offsets"] = X, np.tile([0.25, 0.75], 30), np.arange(0, 61, 2)
    np.save(folder / "a.npy", X)
    np.save(folder / "tall.npy", r.normal(size=(1300, 4)))  # its matrix, T.h5, has nine tiles
    np.save(folder / "square.npy", np.linalg.norm(X[:, None] - X[None], axis=2))
    np.savez(folder / "a.npz", X=X, y=y)
    with contextlib.suppress(ImportError):
        import pyarrow
        import pyarrow.parquet

        columns = dict(zip("uvw", X.T, strict=True)) | {"y": [f"c{label}" for label in y]}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "a.parquet")
    for words in PREPARE:
        code, text = run(words.split(), folder, deadline=COMPILING)
        if code:
            sys.exit(f"{words}: {text}")
    for name, old in zip(RESULTS, OLD, strict=True):
        shutil.copy(folder / name, folder / old)
        with h5py.File(folder / old, "r+") as file:
            del file.attrs["checksums"]
    for name, words in BEGUN.items():
        begun = folder / f"begun {name}"
        begun.mkdir()
        run(words.split(), folder, stopped=True, deadline=COMPILING)
        for path in (*folder.glob("out.h5*"), *folder.glob(".out.h5*")):
            path.rename(begun / path.name)


def stop_before_writing(job: Any) -> Any:
    """In place of `Job.complete_record`: as a signal would."""
    raise Stopped(signal.SIGTERM)


def run(words: list[str], folder: Path, stopped: bool = False, deadline: float = DEADLINE) -> tuple[int, str]:
    """Exit code of a command in a forked process, and what was printed; -9: it was ended at the deadline."""
    began, printed = time.monotonic(), folder / ".printed"
    child = os.fork()
    if not child:
        os.setsid()
        with printed.open("wb") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        os.chdir(folder)
        code = 1
        if words[0] == "mpirun":
            program = str(Path(sys.executable).with_name("parallel-mix"))
            os.execvpe(UNDER_MPI[0], [*UNDER_MPI, program, *words[1:]], os.environ | AS_ROOT)
        if stopped:
            Job.complete_record = stop_before_writing  # type: ignore[method-assign]
        try:
            run_command(words)
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:  # as Python itself would
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), printed.read_text(errors="replace")
        if time.monotonic() - began > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -9, printed.read_text(errors="replace")
        time.sleep(0.002)


def damaged(data: bytes, how: str, r: np.random.Generator) -> bytes:
    """The bytes of a file after one mutation."""
    n = len(data)
    a = int(r.integers(n))
    b = min(a + 1 + int(r.integers(max(n // 8, 2))), n)
    if how == "flip":
        changed = bytearray(data)
        for place in [a, *r.integers(n, size=int(r.integers(3)))]:
            changed[place] ^= 1 << int(r.integers(8))
        return bytes(changed)
    if how == "cut":
        return data[:a] if r.random() < 0.5 else data[:a] + data[b:]
    if how == "noise":
        return data[:a] + r.bytes(min(b - a, 64)) + data[a + min(b - a, 64) :]
    if how == "number":
        content = NUMBERS[int(r.integers(len(NUMBERS)))].to_bytes(8, "little")[: 2 ** int(r.integers(4))]
        return data[:a] + content + data[a + len(content) :]
    return data[:b] + data[a:] if how == "double" else data[:a] + bytes(b - a) + data[b:]


def answer_of(case: Case, text: str, folder: Path) -> object:
    """What a run said or wrote, without what differs from run to run."""
    if not case.answer:
        return [line for line in text.splitlines() if "seconds" not in line and "file" not in line.lower()]
    path = folder / case.answer
    if path.is_dir():
        return {page.name: page.read_bytes() for page in path.iterdir()}
    if path.suffix != ".h5":
        return path.read_bytes()
    values: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                values.update({name: repr(item[()]).encode() if item.dtype == object else item[()].tobytes()})
                if isinstance(item, h5py.Dataset) and not name.startswith("run")
                else None
            )
        )
    return values


def furnish(folder: Path, home: Path, case: Case) -> Path:
    """Put copies of all files into a folder; the one that is to be damaged."""
    file, _, begun = case.file.partition(" of ")
    for source in (home, home / f"begun {begun}") if begun else (home,):
        for path in source.iterdir():
            if path.is_file() and (path.stat().st_size < LARGE or path.name == file):
                shutil.copy(path, folder / path.name)
    return folder / file


def right_answer(case: Case, home: Path) -> object:
    """What comes of the undamaged file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        furnish(folder, home, case)
        code, text = run(case.words.format(case.file).split(), folder, deadline=COMPILING)
        if code:
            sys.exit(f"{case.words.format(case.file)}: {text}")
        return answer_of(case, text, folder)


def judged(case: Case, how: str, seed: list[int], home: Path, right: object) -> str:
    """What became of one case."""
    r = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = furnish(folder, home, case)
        file.write_bytes(damaged(file.read_bytes(), how, r))
        before = {path.name for path in folder.iterdir()} | {".printed", case.answer, f"{case.answer}.progress.json"}
        code, text = run(case.words.format(case.file).split(), folder)
        if code == -9:
            return "over 10 s"
        if code < 0:
            return f"crash by signal {-code}"
        if "mpirun" in case.words and code and "Traceback" not in text:
            code = 2  # mpirun's own codes say little
        if code not in (0, 2) or "Traceback" in text:
            return f"traceback or exit {code}: {text.strip().splitlines()[-1][:90] if text.strip() else ''}"
        if (
            left := {path.name for path in folder.iterdir()}
            - before
            - ({f"{case.answer}.checkpoint"} if code else set())
        ):
            return f"left behind: {sorted(left)}"
        if code == 2:
            return "sentence" if text.startswith("parallel-mix: ") or "\nparallel-mix: " in text else "no sentence"
        if answer_of(case, text, folder) == right:
            return "same answer"
        return "another answer" if case.result else "another input"


def main() -> None:
    """A table of what became of the cases, by command, file and mutation; and each that was not good."""
    commands, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    names = list(CASES) if commands == "all" else commands.split(",")
    bad: Counter[str] = Counter()
    print("| command | file | mutation | cases | same answer | sentence | another input | not good |")
    print("|---|---|---|---|---|---|---|---|")
    for module in LOADED:  # once, and not by each case
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    home = Path(tempfile.mkdtemp())
    try:
        prepare(home)
        for name in names:
            for number, case in enumerate(CASES[name]):
                if " of " not in case.file and not (home / case.file).exists():
                    continue  # pyarrow is not installed
                right = right_answer(case, home)
                each = -(-count // (len(CASES[name]) * len(MUTATIONS)))
                for how in MUTATIONS:
                    seen: Counter[str] = Counter()
                    for k in range(each):
                        at = [seed, number, MUTATIONS.index(how), k]
                        end = judged(case, how, at, home, right)
                        seen[end] += 1
                        if end not in GOOD:
                            bad[f"{name} {case.file} {how}: {end}"] += 1
                    row = [seen[key] for key in GOOD]
                    numbers = " | ".join(map(str, [each, *row, each - sum(row)]))
                    print(f"| {name} | {case.file} | {how} | {numbers} |", flush=True)
    finally:
        shutil.rmtree(home)
    for text, times in bad.most_common():
        print(f"{times} x {text}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
