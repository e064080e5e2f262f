"""Processes that do not belong together are refused in a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from parallel_mix.config import CommonOptions
from parallel_mix.errors import InputError
from parallel_mix.runs.rank_checks import Facts, _compare
from tests.conftest import environment, mpirun, parallel_mix

FACTS = Facts("a", "1.0", (("x.h5", 100),), frozenset({0, 1}), 1, True, "/tmp", 2**30)
OPTIONS = CommonOptions(output=Path("out.h5"))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"version": "1.1"}, "Rank 1 on b runs parallel-mix 1.1"),
        ({"inputs": (("x.h5", 99),)}, "x.h5 has 99 bytes on b"),
        ({"inputs": (("x.h5", None),)}, "x.h5 is not there on b"),
        ({"scratch_free": 2**20}, "/tmp on b has 1.0 MiB left"),
        ({"sees_output": False}, "is not the same folder on b as on a"),
    ],
)
def test_ranks_that_differ(other: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        _compare([FACTS, replace(FACTS, host="b", **other)], OPTIONS)  # type: ignore[arg-type]


def test_ranks_that_agree(capsys: pytest.CaptureFixture[str]) -> None:
    _compare([FACTS, replace(FACTS, host="b")], OPTIONS)
    assert capsys.readouterr().err == ""


def test_too_many_threads_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    _compare([FACTS, replace(FACTS, threads=2)], OPTIONS)
    assert "3 compute threads share 2 cores on a" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["hmac", "predict"])
def test_copies_that_srun_started_without_mpi(command: str, tmp_path: Path) -> None:
    words = [command, *(["model.h5"] if command == "predict" else []), "x.csv", "-o", tmp_path / "out.csv"]
    done = parallel_mix(*words, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
    assert done.returncode == 2
    assert "srun started 4 copies of this program that do not know of each other" in done.stderr
    silent = parallel_mix(*words, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="1")
    assert (silent.returncode, silent.stderr) == (2, "")


def test_a_launcher_of_another_mpi(table: Path, tmp_path: Path) -> None:
    """Two processes that each believe to be alone, as under the mpiexec of another MPI."""
    done = parallel_mix("hmac", table, "-o", tmp_path / "o.h5", PMI_SIZE="2", PMI_RANK="0")
    assert done.returncode == 2
    assert "2 processes were started, but MPI sees 1" in done.stderr


def test_under_mpirun_the_launchers_own_count_counts(table: Path, tmp_path: Path) -> None:
    import subprocess

    from tests.conftest import BIN

    words = [*mpirun(2), str(BIN / "parallel-mix"), "hmac", str(table), "-o", str(tmp_path / "o.h5")]
    env = environment(SLURM_STEP_NUM_TASKS="1", SLURM_PROCID="0")  # mpirun's own step has one task a node
    assert subprocess.run(words, env=env, capture_output=True, timeout=60).returncode == 0
