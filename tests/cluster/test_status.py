"""What `status` says of runs in every state."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from parallel_mix.cli import commands
from parallel_mix.cluster import run_status
from parallel_mix.cluster.run_status import find, gather, line
from parallel_mix.cluster.submission import stages, warn_of_local_folders
from parallel_mix.store.checkpoints import note_queued, read_status, status_path
from tests.conftest import parallel_mix


def say(folder: Path, **facts: object) -> Path:
    path = status_path(folder / "run.h5")
    path.write_text(json.dumps({"attempt": 2, "done": 50, "total": 200, "seconds_left": 90.0, **facts}))
    return path


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    say(tmp_path, state="running", message="level 3/20")
    (run,) = gather(find([tmp_path]))
    assert line(run).endswith("run.h5: running, 25%, 1:30 left, attempt 2, level 3/20")


def test_a_run_that_is_silent(tmp_path: Path) -> None:
    path = say(tmp_path, state="running", message="level 3/20")
    os.utime(path, (time.time() - 500, time.time() - 500))
    (run,) = gather([path])
    assert run["state"] == "silent"
    assert "no sign of life for 8:20; last: level 3/20" in line(run)


@pytest.mark.parametrize(
    ("state", "queue", "expected"),
    [
        ("running", "TIMEOUT", "killed"),
        ("queued", "CANCELLED", "cancelled"),
        ("stopped", "CANCELLED", "stopped"),
        ("running", "RUNNING", "running"),
        ("queued", "FAILED", "failed"),
        ("queued", "PENDING", "queued"),
    ],
)
def test_the_queue_knows_what_a_killed_run_cannot_say(
    state: str, queue: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = say(tmp_path, state=state, message="x", job="7")
    monkeypatch.setattr(run_status.slurm, "queue", lambda jobs: {"7": (queue, "None")})
    (run,) = gather([path])
    assert run["state"] == expected
    assert f"job 7 {queue}" in line(run)


def test_a_process_that_is_no_more_on_this_host(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    path = say(tmp_path, state="running", host=socket.gethostname(), process=gone.pid)
    (run,) = gather([path])
    assert run["state"] == "killed"
    assert f"its process {gone.pid} is no more; it had kept no checkpoint yet: the same command begins" in line(run)
    Path(f"{run['run']}.checkpoint").touch()
    assert f"its process {gone.pid} is no more; the same command goes on" in line(gather([path])[0])
    (run,) = gather([say(tmp_path, state="running", host=socket.gethostname(), process=os.getpid())])
    assert run["state"] == "running"


def test_the_command(tmp_path: Path, table: Path) -> None:
    assert parallel_mix("hmac", table, "-o", tmp_path / "out.h5").returncode == 0
    done = parallel_mix("status", tmp_path / "out.h5")
    assert re.search(r"out\.h5: done, in 0:\d\d, attempt 1", done.stdout)
    none = parallel_mix("status", tmp_path / "none.h5")
    assert none.returncode == 2
    assert "There is no run that writes" in none.stderr
    assert json.loads(parallel_mix("status", tmp_path, "--json").stdout)[0]["state"] == "done"


def test_a_queued_run_keeps_its_attempts_and_spares_a_running_one(tmp_path: Path) -> None:
    path = say(tmp_path, state="stopped", launch=3)
    note_queued(tmp_path / "run.h5", "9")
    assert {k: read_status(path)[k] for k in ("state", "attempt", "launch", "job")} == {
        "state": "queued",
        "attempt": 2,
        "launch": 3,
        "job": "9",
    }
    say(tmp_path, state="running")
    note_queued(tmp_path / "run.h5", "10")
    assert read_status(path)["state"] == "running"


def test_a_damaged_status_is_no_status(tmp_path: Path) -> None:
    status_path(tmp_path / "run.h5").write_text("{")
    assert "no run has begun" in line(gather(find([tmp_path]))[0])


def test_stages() -> None:
    commands = stages(["convert", "a", "--then", "hmac", "b"], lambda command: command == "hmac")
    assert [(s.words, s.keeps) for s in commands] == [(("convert", "a"), False), (("hmac", "b"), True)]


@pytest.mark.parametrize("command", sorted(commands()))
def test_help(command: str) -> None:
    done = parallel_mix(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--then", "hmac"], ["hmac", "--then"], ["submit", "x"]])
def test_stages_that_are_none(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"missing|not for a job"):
        stages(words, lambda command: True)


def test_folders_of_one_machine_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    warn_of_local_folders([Path("/dev/shm/x.h5"), Path("/home/x.h5")])
    assert capsys.readouterr().err.count("other nodes do not see it") == 1


def test_a_nodes_clock_may_be_wrong_by_an_hour(tmp_path: Path) -> None:
    path = say(tmp_path, state="running", message="level 3/20", heartbeat=time.time() - 3600)
    (run,) = gather([path])
    assert run["state"] == "running"
