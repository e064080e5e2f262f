"""What every registered family must do, written once: a family takes part by being registered, the toy family too.

Each has an `example` in the registry, a command that makes a small result.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from docs.generate import page_of
from parallel_mix import registry
from parallel_mix.cli import call_of, template_of
from parallel_mix.registry import FAMILIES, Family
from tests import toy
from tests.conftest import ROOT, assert_same_result, blobs, contents, environment, kill_with_children, launcher
from tests.processes import program, run_forked

del FAMILIES[toy.TOY.kind]  # it is known here alone
PROGRAM = [sys.executable, "-c", "import tests.toy; from parallel_mix.cli import main; main()"]
ENVIRONMENT = environment(PARALLEL_MIX_TESTS_TOY="1", PYTHONPATH=str(ROOT))
KINDS = [*FAMILIES, toy.TOY.kind]
EVERYWHERE = ("serial1", "serial2", "mpi2", "dask2")
PAIRS = (("serial", "mpi2"), ("mpi2", "dask2"), ("dask2", "serial2"))
"""Where a run is killed, and where it goes on: a pair for each family in turn."""
SLOW = "tests.slow_metric:distance"


@pytest.fixture(autouse=True, scope="module")
def toy_family() -> Iterator[None]:
    registry.register(toy.TOY)
    yield
    del FAMILIES[toy.TOY.kind]


@pytest.fixture(params=KINDS)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


def run(*words: object, backend: str = "serial", timeout: float = 120) -> subprocess.CompletedProcess[str]:
    before, after = launcher(backend)
    command = [*map(str, words), *after]
    if not before:
        return run_forked(command, ENVIRONMENT, timeout)
    words_of_process = [*before, *program(), *command]
    return subprocess.run(words_of_process, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of rows with classes, and the distances between them."""
    folder = tmp_path_factory.mktemp("inputs")
    X, kinds = blobs(90, 3, 3, 5), np.random.default_rng(0).integers(0, 3, 90)
    X += 2.0 * kinds[:, None]
    lines = ["a,b,c,kind", *(",".join([*map(repr, map(float, row)), f"k{k}"]) for row, k in zip(X, kinds, strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    done = run("distances", folder / "rows.csv", "-o", folder / "D.h5", "--labels", "kind", "--quiet")
    assert done.returncode == 0, done.stderr
    return {"rows": folder / "rows.csv", "distances": folder / "D.h5"}


def words_of(text: str, **paths: object) -> list[str]:
    return [word.format(**paths) for word in text.split()]


@pytest.fixture(scope="module")
def results(inputs: dict[str, Path]) -> dict[str, Path]:
    """The example of each family, made by one process."""
    folder = inputs["rows"].parent
    made = {}
    for kind in KINDS:
        made[kind] = folder / f"{kind}.h5"
        done = run(*words_of(FAMILIES[kind].example, **inputs, output=made[kind]), "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return made


def test_the_example_gives_the_same_bits_everywhere(
    family: Family, inputs: dict[str, Path], results: dict[str, Path], tmp_path: Path
) -> None:
    for backend in EVERYWHERE:
        out = tmp_path / f"{backend}.h5"
        done = run(*words_of(family.example, **inputs, output=out), backend=backend)
        assert done.returncode == 0, done.stderr
        assert_same_result(results[family.kind], out, ("run", "data"))


def test_killed_and_gone_on_with_it_gives_the_same_bits(
    family: Family, inputs: dict[str, Path], tmp_path: Path
) -> None:
    killed, goes_on = PAIRS[KINDS.index(family.kind) % len(PAIRS)]
    whole, out, log = tmp_path / "whole.h5", tmp_path / "run.h5", tmp_path / "log"
    words = words_of(f"{family.example} {family.longer} --checkpoint-every 0", **inputs, output=out, slow=SLOW)
    with log.open("w") as said:
        before, after = launcher(killed)
        command = [*before, *PROGRAM, *words, *after]
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=said, stderr=said, cwd=ROOT)
        until = time.monotonic() + 90
        while not some_work_is_kept(out.with_name("run.h5.checkpoint")):
            assert process.poll() is None, f"it ended before it could be killed: {log.read_text()}"
            assert time.monotonic() < until
            time.sleep(0.01)
        kill_with_children(process)
    assert not out.exists()
    resumed = run(*words, backend=goes_on)
    assert resumed.returncode == 0, resumed.stderr
    assert "Going on from" in resumed.stderr
    done = run(*[str(whole) if word == str(out) else word for word in words])
    assert done.returncode == 0, done.stderr
    assert_same_result(whole, out)
    with h5py.File(out) as file:
        assert file["run"].attrs["attempts"] == 2
        assert file["run"].attrs["reused"] > 0


def some_work_is_kept(checkpoint: Path) -> bool:
    try:
        with h5py.File(checkpoint) as file:
            return bool(file["done"][()] > 0)
    except (OSError, KeyError):  # not there yet, or another one takes its place
        return False


def test_info_says_what_it_is_and_how_it_was_made(family: Family, results: dict[str, Path]) -> None:
    done = run("info", results[family.kind])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{results[family.kind]}: ")
    assert f"by `parallel-mix {family.example.split()[0]} " in done.stdout
    assert run("info", results[family.kind], "--verify").returncode == 0


def test_pictures_are_drawn_and_are_the_same_each_time(
    family: Family, results: dict[str, Path], tmp_path: Path
) -> None:
    pages = []
    for name in ("one", "other"):
        done = run("plot", results[family.kind], "-o", tmp_path / name, "--format", "png")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(".png") >= 1
        pages.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert pages[0] == pages[1]
    assert all(page.startswith(b"\x89PNG") for page in pages[0].values())


def test_labels_are_exported_or_it_is_said_that_there_are_none(
    family: Family, results: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "labels.csv"
    done = run("export", results[family.kind], "-o", out)
    if family.has("labels"):
        assert done.returncode == 0, done.stderr
        assert len(out.read_text().splitlines()) == 91
    else:
        assert done.returncode == 2
        assert f"is a result of the kind '{family.kind}': labels are those of " in done.stderr
        assert not out.exists()


def test_new_rows_are_told_alike_everywhere_or_it_is_said_that_they_cannot_be(
    family: Family, inputs: dict[str, Path], results: dict[str, Path], tmp_path: Path
) -> None:
    texts = []
    for backend in ("serial", "mpi2"):
        out = tmp_path / f"{backend}.csv"
        text = family.prediction or "predict {result} {rows} -o {output} --labels kind"
        done = run(*words_of(text, **inputs, result=results[family.kind], output=out), backend=backend)
        if not family.prediction:
            assert "predict takes those of" in done.stderr
            assert not out.exists()
            return
        assert done.returncode == 0, done.stderr
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    assert len(texts[0].splitlines()) == 91


def test_the_layout_tells_of_all_that_is_in_a_file_and_of_nothing_else(
    family: Family, results: dict[str, Path]
) -> None:
    layout = " ".join(path for path, _ in family.part("file").LAYOUT)
    told = set(re.findall(r"@?\w+", layout))
    places = {name for name in contents(results[family.kind]) if not name.startswith(("data", "/@"))}
    for place in places:
        last = re.split(r"[/@]", place)[-1]
        assert ("@" + last if "@" in place else last) in told, f"{place} is not told of in the layout of {family.kind}"


def commands_of(family: Family) -> list[str]:
    return list(family.commands)


def test_every_command_has_a_template_that_it_understands(family: Family, tmp_path: Path) -> None:
    for command in commands_of(family):
        text = template_of(command)
        (tmp_path / "job.sbatch").write_text(text)
        assert subprocess.run(["bash", "-n", str(tmp_path / "job.sbatch")], check=False).returncode == 0
        assert text.count("\nexec parallel-mix launch ") == 1
        kept = ROOT / "slurm" / f"{command.replace(' ', '_')}.sbatch"
        if family is not toy.TOY:
            assert kept.read_text() == text, f"`parallel-mix submit --template '{command}'` makes it again"


def test_every_command_says_its_options_and_knows_its_example(family: Family, inputs: dict[str, Path]) -> None:
    for command in commands_of(family):
        done = run(*command.split(), "--help")
        assert done.returncode == 0, done.stderr
        assert "--checkpoint-every" in done.stdout
    call = call_of(words_of(family.example, **inputs, output=Path("out.h5")))
    assert call.options.output == Path("out.h5")


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(
    family: Family, inputs: dict[str, Path], tmp_path: Path
) -> None:
    done = run(*words_of(family.example, **inputs, output=tmp_path / "out.h5"), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "Would " in done.stderr
    assert not list(tmp_path.iterdir())


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [empty, cut, flipped])
def test_a_damaged_result_is_a_sentence(
    family: Family, results: dict[str, Path], tmp_path: Path, damage: object
) -> None:
    path = tmp_path / "run.h5"
    path.write_bytes(results[family.kind].read_bytes())
    damage(path)  # type: ignore[operator]
    for words in (["info", path, "--verify"], ["plot", path, "-o", tmp_path / "figures"]):
        done = run(*words)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith("parallel-mix: ")
        assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


BAD_INPUTS = {
    "missing": (None, "does not exist"),
    "empty": ("", "is empty"),
    "text among numbers": ("a,b,y\n1,2,0\n3,x7,1\n", "is 'x7', which is no number"),
    "NaN": ("a,b,y\n1,2,0\n3,nan,1\n", "NaN or infinite"),
    "ragged": ("a,b,y\n1,2,0\n3,4,1,9\n", "4 values, 3 were expected"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_a_bad_input_is_a_sentence_and_nothing_is_written(family: Family, tmp_path: Path, case: str) -> None:
    text, sentence = BAD_INPUTS[case]
    bad = tmp_path / "bad.csv"
    if text is not None:
        bad.write_text(text)
    words = words_of(family.example, rows=bad, distances=bad, output=tmp_path / "out.h5")
    words = [word for word in words if word not in ("--labels", "kind", "y")]
    done = run(*words)
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("parallel-mix: "), done.stderr
    assert sentence in last
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"bad.csv"}


def test_the_guide_has_a_page(family: Family) -> None:
    page = page_of(family)
    assert family.title.lower() in page.lower()
    for command in commands_of(family):
        assert f"parallel-mix {command}" in page
    for place, what in family.part("file").LAYOUT:
        assert what.split("`")[0].split(";")[0][:30] in page, place


def test_a_family_is_a_folder_and_one_registration() -> None:
    """The toy family: formatted by ruff, five files at most, under 150 lines that are not empty."""
    files = sorted((ROOT / "tests" / "toy").glob("*.py"))
    assert len(files) <= 5
    assert sum(bool(line.strip()) for path in files for line in path.read_text().splitlines()) < 150
    for path in (ROOT / "parallel_mix").rglob("*.py"):
        assert "toy" not in path.read_text().lower().split()
