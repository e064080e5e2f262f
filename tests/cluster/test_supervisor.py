"""A launch watched from beside: what it comes to, signals, hangs, requeues."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import BIN, environment

PROGRAM = """
import sys
from pathlib import Path
from parallel_mix.cluster import supervisor
supervisor.GRACE = 1.0
supervisor.STOP_PATIENCE = 2.0
sys.exit(supervisor.Supervisor(sys.argv[2:], Path(sys.argv[1]), 2).run())
"""
SAY = """state=$1 out=$2; say() { printf '{"state": "%s", "launch": 5}' "$state" > "$out.progress.json"; }; """
STOPS = SAY + "trap 'say; exit 0' USR1; touch $out.up; while :; do sleep 0.05; done"
DEAF = SAY + "trap '' USR1; touch $out.up; while :; do sleep 0.05; done"


def supervise(folder: Path, script: str, *words: str, **more: str) -> subprocess.Popen[str]:
    """A supervisor of a shell script that plays launcher and run."""
    command = [sys.executable, "-c", PROGRAM, str(folder / "out.h5"), "/bin/bash", "-c", script, "_", *words]
    env = environment(**{**more, "PATH": f"{folder}:{BIN}:{os.environ['PATH']}"})
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)


def wait_up(folder: Path) -> None:
    until = time.monotonic() + 20
    while not (folder / "out.h5.up").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [("done", 1, 0), ("stopped", 1, 75), ("failed", 1, 1), ("failed", 0, 1), ("failed", 2, 2)],
)
def test_the_state_says_how_it_ended(state: str, code: int, expected: int, tmp_path: Path) -> None:
    process = supervise(tmp_path, SAY + f"say; exit {code}", state, str(tmp_path / "out.h5"))
    process.communicate(timeout=30)
    assert process.returncode == expected


def test_an_old_state_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "out.h5.progress.json").write_text('{"state": "done", "launch": 5}')
    process = supervise(tmp_path, "exit 3")
    process.communicate(timeout=30)
    assert process.returncode == 3


def test_a_launcher_that_hangs_after_the_end_is_ended(tmp_path: Path) -> None:
    process = supervise(tmp_path, SAY + "say; trap '' TERM; sleep 300", "done", str(tmp_path / "out.h5"))
    said = process.communicate(timeout=40)[1]
    assert process.returncode == 0
    assert "does not end by itself" in said


@pytest.mark.parametrize("signum", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_is_passed_on_and_the_job_requeued_at_its_time(signum: signal.Signals, tmp_path: Path) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    scontrol.chmod(0o755)
    process = supervise(tmp_path, STOPS, "stopped", str(tmp_path / "out.h5"), SLURM_JOB_ID="77")
    wait_up(tmp_path)
    process.send_signal(signum)
    process.communicate(timeout=30)
    assert process.returncode == 75
    asked = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
    assert asked == ("requeue 77\n" if signum == signal.SIGUSR1 else "")


def test_requeues_end(tmp_path: Path) -> None:
    more = {"SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "2"}
    process = supervise(tmp_path, STOPS, "stopped", str(tmp_path / "out.h5"), **more)
    wait_up(tmp_path)
    process.send_signal(signal.SIGUSR1)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 75
    assert "not requeued after 2 requeues" in said


def test_a_run_that_does_not_stop_is_ended(tmp_path: Path) -> None:
    process = supervise(tmp_path, DEAF, "", str(tmp_path / "out.h5"))
    wait_up(tmp_path)
    process.send_signal(signal.SIGUSR1)
    said = process.communicate(timeout=40)[1]
    assert process.returncode == 75, "its checkpoint is there to go on from"
    assert "does not end by itself" in said
