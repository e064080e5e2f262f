"""`submit` and `launch` where there is no SLURM: what is checked and printed before anything is queued."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import BIN, assert_same_result, environment, parallel_mix


def submit(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "parallel-mix"), "submit", *words]
    site = folder / "site.toml"
    more = {"PARALLEL_MIX_SITE": str(site), **more} if site.exists() else more
    env = environment(**{"XDG_CONFIG_HOME": str(folder / "none"), **more})
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_a_dry_run_prints_every_script(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    words = [
        "--dry-run",
        "--nodes",
        "2",
        "--",
        "convert",
        "a.csv",
        "-o",
        "a.h5",
        "--then",
        "hmac",
        "a.h5",
        "-o",
        "b.h5",
    ]
    done = submit(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("#!/usr/bin/env bash") == 2
    assert "launch --max-requeue 3 -- hmac a.h5 -o b.h5" in done.stdout
    assert done.stdout.count("--nodes=2") == 1, "convert runs on one core"
    assert "convert asks for 1 process.\n" in done.stderr
    assert "hmac asks for 2 ranks on 2 nodes, each with 1 compute thread.\n" in done.stderr


def test_a_dry_run_refuses_a_missing_input_of_the_first_command(tmp_path: Path) -> None:
    words = ["--dry-run", "--", "convert", "none.csv", "-o", "a.h5", "--then", "hmac", "a.h5", "-o", "b.h5"]
    done = submit(tmp_path, *words)
    assert done.returncode == 2
    assert done.stderr == "parallel-mix: none.csv is not there, and no command before makes it.\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "1 rank, each with 1 compute thread; use --ntasks for more."),
        (["--ntasks", "6"], "6 ranks, each with 1 compute thread."),
        (["--nodes", "3", "--ntasks-per-node", "4", "--cpus-per-task", "2"],
         "12 ranks on 3 nodes, each with 2 compute threads."),
    ],
)  # fmt: skip
def test_a_dry_run_says_how_many_ranks_it_asks_for(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a.csv").touch()
    done = submit(tmp_path, "--dry-run", *words, "--", "hmac", "a.csv", "-o", "b.h5")
    assert done.stderr == f"parallel-mix: hmac asks for {said}\n"


def test_dask_workers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    done = submit(tmp_path, "--dry-run", "--dask-workers", "2..16", "--", "hmac", "a.csv", "-o", "b.h5")
    assert "-- hmac a.csv -o b.h5 --slurm-workers 2..16" in done.stdout
    assert "--ntasks=1" in done.stdout


def test_a_sites_file_gives_the_defaults_and_flags_go_before_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    (tmp_path / "site.toml").write_text('partition = "p"\naccount = "a"\nsetup = """module load x\nulimit -c 0"""\n')
    done = submit(tmp_path, "--dry-run", "--account", "b", "--", "hmac", "x.csv", "-o", "y.h5")
    assert "--partition=p\n" in done.stdout
    assert "--account=b\n" in done.stdout
    assert "\nmodule load x\nulimit -c 0\n" in done.stdout


def test_a_chain_given_again_leaves_out_what_is_done(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    for name in ("sbatch", "squeue"):
        stand_in = tmp_path / name
        stand_in.write_text(f"#!/bin/sh\ncat >> {asked}; echo 7\n" if name == "sbatch" else "#!/bin/sh\n")
        stand_in.chmod(0o755)
    for name in ("a.csv", "a.h5"):
        (tmp_path / name).write_text("1,2\n")
    words = ["--", "convert", "a.csv", "-o", "a.h5", "--then", "hmac", "a.h5", "-o", "b.h5"]
    done = submit(tmp_path, *words, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7  hmac\n"
    assert "a.h5 is there already" in done.stderr
    assert "convert" not in asked.read_text()


BAD = {
    "no SLURM here": (["--", "hmac", "x.csv", "-o", "y.h5"], "There is no SLURM here"),
    "no command": ([], "There is no command to submit: give one after"),
    "unknown command": (["--", "hmca", "x"], "There is no command 'hmca'"),
    "a mistake in the command": (["--", "hmac", "x.csv"], "--output is missing"),
    "a wrong option in a later command": (
        ["--", "convert", "a.csv", "-o", "b.h5", "--then", "hmac", "b.h5", "-o", "c.h5", "--level", "3"],
        "Unrecognized arguments",
    ),
    "nothing after --then": (["--", "hmac", "x.csv", "-o", "y.h5", "--then"], "missing before or after --then"),
    "submit in submit": (["--", "submit", "--", "hmac"], "not for a job's inside"),
    "a name with a line break": (["--job-name", "a\n#SBATCH -x", "--", "info", "x"], "letters, digits"),
    "an array into one file": (["--array", "0-3", "--", "hmac", "%a.csv", "-o", "y.h5"], "put %a"),
    "an array into one file, looked at": (
        ["--dry-run", "--array", "0-3", "--", "hmac", "%a.csv", "-o", "y.h5"],
        "put %a",
    ),
    "workers the wrong way round": (["--dask-workers", "9..2", "--", "info", "x"], "the least comes first"),
    "a result that exists": (["--", "hmac", "x.csv", "-o", "there.h5"], "exists already"),
    "a folder that does not exist": (["--", "hmac", "x.csv", "-o", "no/y.h5"], "is no folder"),
    "an input that nothing makes": (
        ["--", "convert", "x.csv", "-o", "y.h5", "--then", "hmac", "z.h5", "-o", "w.h5"],
        "no command before makes it",
    ),
    "no -- before the command": (["hmac", "x.csv", "-o", "y.h5"], "come after `--`"),
    "options that contradict each other": (
        ["--dry-run", "--", "hmac", "x.csv", "-o", "y.h5", "--bandwidths", "1,2", "--levels", "3"],
        "leave out --levels",
    ),
    "workers without Dask": (["--dry-run", "--", "hmac", "x.csv", "-o", "y.h5", "--workers", "2"], "is for Dask"),
    "zero nodes": (["--nodes", "0", "--", "info", "x"], "1 or more"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_submissions(case: str, tmp_path: Path) -> None:
    words, text = BAD[case]
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    (tmp_path / "there.h5").touch()
    done = submit(tmp_path, *words, PATH="/nowhere")
    assert done.returncode == 2, done.stdout
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there.h5", "x.csv"]


def test_an_unknown_key_in_the_sites_file_lists_the_valid_ones(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text("partitoin = 'p'\n")
    done = submit(tmp_path, "--dry-run", "--", "info", "x")
    assert done.returncode == 2
    assert "unknown option 'partitoin'" in done.stderr
    assert "partition" in done.stderr.split("Valid ones:")[1]


@pytest.mark.parametrize("line", ["setup = 3", "account = true", "partition = {a = 1}"])
def test_a_sites_value_of_the_wrong_kind(line: str, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(line + "\n")
    done = submit(tmp_path, "--dry-run", "--", "info", "x")
    assert done.returncode == 2, done.stdout
    assert "a text is needed, in quotes" in done.stderr


def test_what_was_begun_afresh_goes_on_after_a_requeue(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.h5"
    words = ["launch", "--launcher", "none", "--", "hmac", table, "-o", out, "--levels", "3", "--fresh"]
    assert parallel_mix(*words).returncode == 0
    (tmp_path / "o.h5.checkpoint").write_bytes(b"no checkpoint")  # with --fresh nobody looks at it
    assert parallel_mix(*words, "--force").returncode == 0
    (tmp_path / "o.h5.checkpoint").write_bytes(b"no checkpoint")
    again = parallel_mix(*words, "--force", SLURM_RESTART_COUNT="1")
    assert again.returncode == 2
    assert "no HDF5 file: use --fresh to begin anew" in again.stderr


def test_launch_works_without_slurm(table: Path, tmp_path: Path) -> None:
    parallel_mix("hmac", table, "-o", tmp_path / "serial.h5")
    path = f"{BIN}:/usr/bin:/bin"
    words = ["launch", "--launcher", "mpirun", "--", "hmac", table, "-o", tmp_path / "o.h5"]
    done = parallel_mix(*words, PATH=path)
    assert done.returncode == 0, done.stderr
    assert_same_result(tmp_path / "serial.h5", tmp_path / "o.h5")


def test_an_unknown_launcher_lists_the_known_ones(table: Path) -> None:
    done = parallel_mix("launch", "--launcher", "aprun", "--", "hmac", table, "-o", "o.h5")
    assert done.returncode == 2
    assert "srun --mpi=pmix" in done.stderr


def test_an_index_takes_the_place_of_its_mark(tmp_path: Path, table: Path) -> None:
    table.rename(tmp_path / "t7.csv")
    words = ["launch", "--launcher", "none", "--", "hmac", str(tmp_path / "t%a.csv"), "-o", str(tmp_path / "o%a.h5")]
    assert parallel_mix(*words, SLURM_ARRAY_TASK_ID="7").returncode == 0
    assert (tmp_path / "o7.h5").exists()
