"""Batch scripts: sound bash, one launch line, nothing of the user's run through a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from parallel_mix.cli import call_of
from parallel_mix.cluster.batch_script import Resources, Stage, batch_script, seconds_before_end
from parallel_mix.cluster.supervisor import choose_launcher
from parallel_mix.errors import InputError
from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "slurm").glob("*.sbatch"))
HOSTILE = "a b; touch \"$HERE/hacked\" $(touch $HERE/hacked) `touch $HERE/hacked`\n'; touch $HERE/hacked; '.h5"
GOLDEN = """#!/usr/bin/env bash
#SBATCH --account=physics
#SBATCH --cpus-per-task=2
#SBATCH --job-name=hmac
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=32
#SBATCH --output=%x-%j.log
#SBATCH --partition=p
#SBATCH --time=2:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --requeue
module load openmpi
set -euo pipefail
cd -- '/data/my ships'
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Stops at its signal with a checkpoint; goes on by requeue, or by the same submission again.
exec parallel-mix launch --max-requeue 3 -- hmac ships.h5 -o run.h5 --threads 2
"""


def sound(path: Path) -> None:
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "--exclude=SC2016", str(path)], check=True)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_is_sound(path: Path) -> None:
    sound(path)
    text = path.read_text()
    assert "set -euo pipefail" in text
    assert text.count("\nexec parallel-mix launch ") == 1


def words_given(script: Path, folder: Path, *words: str) -> list[str]:
    """What parallel-mix would be given, from a stand-in that writes its words down."""
    stand_in = folder / "parallel-mix"
    stand_in.write_text('#!/usr/bin/env bash\nprintf "%s\\0" "$@" > "$HERE/words"\n')
    stand_in.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "HERE": str(folder)}
    subprocess.run(["bash", str(script), *words], env=environment, check=True)
    return (folder / "words").read_text().split("\0")[:-1]


KEEPS = ["--max-requeue", "3"]
THREE = ["--clusters", "3"]


@pytest.mark.parametrize(
    ("name", "given", "started"),
    [
        ("hmac", [HOSTILE, "o.h5", "--levels", "3"], [*KEEPS, "--", "hmac", HOSTILE, "-o", "o.h5", "--levels", "3"]),
        ("predict", ["r.h5", HOSTILE, "o.csv"], [*KEEPS, "--", "predict", "r.h5", HOSTILE, "-o", "o.csv"]),
        ("distances", [HOSTILE, "D.h5"], [*KEEPS, "--", "distances", HOSTILE, "-o", "D.h5"]),
        ("cluster", [HOSTILE, "C.h5", "--clusters", "3"], [*KEEPS, "--", "cluster", HOSTILE, "-o", "C.h5", *THREE]),
        ("hlm_update", ["m.h5", HOSTILE], [*KEEPS, "--", "hlm", "update", "m.h5", HOSTILE]),
        (
            "crossval",
            [HOSTILE, "R.h5", "--classifiers", "knn"],
            [*KEEPS, "--", "crossval", HOSTILE, "-o", "R.h5", "--classifiers", "knn"],
        ),
        ("hlm_fit", [HOSTILE, "m.h5"], [*KEEPS, "--", "hlm", "fit", HOSTILE, "-o", "m.h5"]),
        ("convert", [HOSTILE, "o.h5", "--force"], ["--", "convert", HOSTILE, "-o", "o.h5", "--force"]),
    ],
)
def test_hostile_names_stay_names_in_a_template(
    name: str, given: list[str], started: list[str], tmp_path: Path
) -> None:
    words = words_given(ROOT / "slurm" / f"{name}.sbatch", tmp_path, *given)
    assert words == ["launch", *started]
    call_of(call_of(words).options.words)  # both understand what they are given
    assert not (tmp_path / "hacked").exists()


def test_hostile_names_stay_names_in_a_submission(tmp_path: Path) -> None:
    folder = tmp_path / "x 'y' $(touch hacked)"
    folder.mkdir()
    stage = Stage(("hmac", HOSTILE, "-o", "$HOME`x`"), True, True)
    (tmp_path / "job.sh").write_text(batch_script(stage, Resources(), ("parallel-mix",), str(folder)))
    sound(tmp_path / "job.sh")
    assert words_given(tmp_path / "job.sh", tmp_path)[-4:] == list(stage.words)
    assert not list(tmp_path.rglob("hacked"))


def test_the_text_of_a_submission() -> None:
    resources = Resources(
        nodes=4,
        ntasks_per_node=32,
        time="2:00:00",
        partition="p",
        account="physics",
        cpus_per_task=2,
        setup="module load openmpi",
    )
    stage = Stage(("hmac", "ships.h5", "-o", "run.h5"), True, True)
    text = batch_script(stage, resources, ("parallel-mix",), "/data/my ships")
    assert text == GOLDEN


def test_a_serial_stage_asks_for_one_task() -> None:
    text = batch_script(Stage(("plot", "run.h5"), False, False), Resources(nodes=4, ntasks=9), ("parallel-mix",), "/")
    assert "--ntasks=1" in text
    assert "--nodes" not in text
    assert "launch -- plot" in text


def test_values_cannot_leave_their_line() -> None:
    with pytest.raises(InputError, match="letters, digits"):
        batch_script(Stage(("hmac",), True, True), Resources(job_name="x\n#SBATCH --uid=0"), ("p",), "/")


@pytest.mark.parametrize(
    ("library", "kinds", "chosen"),
    [
        ("Open MPI v5.0.11", ["none", "pmix", "pmix_v4", "pmi2"], "srun --mpi=pmix"),
        ("Open MPI v5.0.11", ["none", "pmi2"], "mpirun"),
        ("Open MPI v5.0.11", [], "mpirun"),
        ("MPICH Version: 5.0.2", ["pmix", "pmi2"], "srun --mpi=pmi2"),
        ("Intel(R) MPI Library 2021.10", ["pmix_v3"], "mpirun"),
    ],
)
def test_the_launch_line_suits_the_site(library: str, kinds: list[str], chosen: str) -> None:
    assert choose_launcher(library, kinds) == chosen


def test_no_mpi_is_a_sentence() -> None:
    with pytest.raises(InputError, match="no MPI library"):
        choose_launcher("", ["pmix"])


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        (None, 120),
        ("2:00:00", 120),
        ("1", 15),
        ("4:00", 60),
        ("2-0", 120),
        ("1-12:00", 120),
        ("0-0:01", 15),
        ("0:40", 10),
    ],
)
def test_the_signal_of_a_short_job_comes_late(limit: str | None, seconds: int) -> None:
    assert seconds_before_end(limit) == seconds


def test_what_keeps_no_checkpoint_is_not_signalled() -> None:
    text = batch_script(Stage(("convert", "a", "-o", "b"), False, False), Resources(), ("parallel-mix",), "/")
    assert "--signal" not in text
    assert "--no-requeue" in text
