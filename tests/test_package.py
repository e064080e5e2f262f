"""The wheel, the README's commands, and how fast the program starts to speak."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from parallel_mix import __version__
from tests.conftest import BIN, MPI_ENVIRONMENT, ROOT, environment, parallel_mix


def built_wheel(folder: Path) -> Path:
    """The wheel of what git knows of the project."""
    source = folder / "source"
    names = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    words = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


CORE_ALONE = {
    "pictures": (["plot", "run.h5", "-o", "figures"], "Pictures need matplotlib"),
    "parquet": (["hmac", "t.parquet", "-o", "o.h5"], "Reading parquet needs pyarrow"),
    "texts": (["distances", "t.txt", "-o", "o.h5", "--metric", "edit"], "Edit distances need rapidfuzz"),
    "field": (["hmac", "t.csv", "-o", "o.h5", "--density", "field"], "--density field needs finufft"),
    "Dask": (["hmac", "t.csv", "-o", "o.h5", "--backend", "dask"], "--backend dask needs dask and distributed"),
    "MPI": (["hmac", "t.csv", "-o", "o.h5", "--backend", "mpi"], "--backend mpi needs mpi4py"),
}


@pytest.fixture(scope="module")
def core_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and what the core requires, and nothing else."""
    folder = tmp_path_factory.mktemp("core")
    wheel = built_wheel(folder)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    wanted, known = ["parallel-mix"], set()
    while wanted:
        package = distribution(wanted.pop())
        known.add(package.name)
        wanted += [
            name
            for line in package.requires or []
            if "extra ==" not in line and (name := re.split(r"[^A-Za-z0-9_.-]", line)[0]) not in known
        ]
        for top in {path.parts[0] for path in package.files or [] if path.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists() and not top.startswith(("parallel_mix", "__editable__")):
                (site / top).symlink_to(Path(str(package.locate_file(top))).resolve())
    return python


def test_the_wheel_holds_jobs_and_templates_and_runs(core_alone: Path, tmp_path: Path) -> None:
    site = next(core_alone.parents[1].glob("lib/python*/site-packages"))
    assert (site / "parallel_mix" / "slurm" / "hmac.sbatch").exists()
    assert (site / "parallel_mix" / "jobs" / "parallel_hmac.py").exists()
    words = [core_alone, "-m", "parallel_mix", "distances", ROOT / "examples" / "new_ships.csv", "-o", "out.h5"]
    done = subprocess.run([*words, "--row-names", "design"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("case", CORE_ALONE)
def test_what_an_installation_lacks_is_a_sentence_with_its_install_line(
    case: str, core_alone: Path, tmp_path: Path
) -> None:
    words, sentence = CORE_ALONE[case]
    np.savetxt(tmp_path / "t.csv", np.random.default_rng(0).normal(size=(20, 2)), delimiter=",")
    (tmp_path / "t.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "t.parquet").write_bytes(b"PAR1PAR1")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(core_alone), "-m", "parallel_mix", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    if case == "pictures":
        done = run("distances", "t.csv", "-o", "run.h5", "--quiet")
        assert done.returncode == 0, done.stderr
        assert run("info", "run.h5").returncode == 0
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"parallel-mix: {sentence}")
    assert "not installed here: pip install " in done.stderr
    assert len(done.stderr.splitlines()) == 1
    line = done.stderr.rstrip(".\n").partition("pip install ")[2]
    assert shlex.split(line)[0].split(">=")[0].replace("-", "_") in sentence.replace("-", "_") + "cryptography"


def readme_commands() -> list[str]:
    """The README's commands that need nothing but what the repository brings."""
    commands = []
    for block in re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL):
        for line in block.splitlines():
            command = line.split("   #")[0].strip()
            ours = re.search(r"\b(run|D|C|Cy|NewD|R|RX)\.h5", command)
            if ours and not any(word in command for word in ("sbatch", "tcp:", " submit ")):
                commands.append(command)
    return commands


def test_the_readmes_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "jobs", tmp_path / "jobs")
    commands = readme_commands()
    assert len(commands) >= 8
    more = {**MPI_ENVIRONMENT, "PATH": f"{BIN}:/usr/bin:/bin"}
    monkeypatch.chdir(tmp_path)
    for command in commands:
        first, *words = command.split()
        if first == "parallel-mix":
            done = parallel_mix(*words)
        else:
            done = subprocess.run([first, *words], env=environment(**more), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert (tmp_path / "figures" / "tree.png").exists()
    assert (tmp_path / "new.csv").read_text().splitlines()[0] == "row,label"


def test_the_readmes_python_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["D"].shape == (300, 300)  # type: ignore[attr-defined]
    assert names["model"].labels_.max() == 2  # type: ignore[attr-defined]


def test_help_and_version_need_no_numpy() -> None:
    code = "import sys\nfrom parallel_mix.cli import _dispatch\n"
    code += "try: _dispatch(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "assert 'numpy' not in sys.modules, 'numpy was loaded'"
    for words in (["--help"], ["--version"], ["hmac", "--help"], ["plot", "--help"]):
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    assert parallel_mix("--version").stdout.strip() == f"parallel-mix {__version__}"
    assert parallel_mix().returncode == 0


def test_the_command_line_does_not_load_scikit_learn(table: Path, tmp_path: Path) -> None:
    code = "import sys; from parallel_mix.cli import _dispatch; _dispatch(sys.argv[1:])"
    code += "; assert 'sklearn' not in sys.modules"
    words = ["hmac", str(table), "-o", str(tmp_path / "o.h5"), "--quiet"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["nothing"], ["hmac"], ["hmac", "a", "b"], ["hmac", "x.csv"]])
def test_a_wrong_command_is_a_sentence(words: list[str]) -> None:
    done = parallel_mix(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("parallel-mix: ")
    assert "Traceback" not in done.stderr
