"""The contract suite and the communicator's own tests, inside a real communicator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT, blobs, environment, mpirun


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_contract_holds_on_ranks(ranks: int) -> None:
    pytest_words = [
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "--with-mpi",
        "--timeout=60",
        "--timeout-method=thread",
    ]
    words = [sys.executable, "-m", "mpi4py", "-m", "pytest", *pytest_words, "tests/backends"]
    done = subprocess.run(
        [*mpirun(ranks), *words], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


MUTE = "from mpi4py import MPI; import time; time.sleep(300)"


@pytest.mark.parametrize(
    ("mute", "text"),
    [(1, "Rank 1 did not answer for 1 s"), (0, "rank 0 has not been heard of for 10 s")],
)
def test_a_rank_that_never_says_a_word_holds_up_nobody(mute: int, text: str, table: Path, tmp_path: Path) -> None:
    """From the first comparison on: rank 0 ends the run, and the others do not wait for it for ever."""
    program = [sys.executable, "-m", "parallel_mix", "hmac", str(table), "-o", str(tmp_path / "o.h5")]
    parts = [program, program]
    parts[mute] = [sys.executable, "-c", MUTE]
    words = [*mpirun(1), *parts[0], ":", *mpirun(1)[2:], *parts[1]]
    done = subprocess.run(
        words, env=environment(PARALLEL_MIX_SILENCE="0.5"), capture_output=True, text=True, timeout=90
    )
    assert done.returncode != 0
    assert text in done.stderr
    assert not (tmp_path / "o.h5").exists()


def test_a_job_that_was_suspended_goes_on(tmp_path: Path) -> None:
    """All ranks stopped for longer than any silence is borne, as by a preempting scheduler, and continued."""
    np.save(tmp_path / "t.npy", blobs(6000, 8, 9))
    words = ["hmac", str(tmp_path / "t.npy"), "-o", str(tmp_path / "o.h5"), "--levels", "6", "--checkpoint-every", "0"]
    program = [*mpirun(2), sys.executable, "-m", "parallel_mix", *words]
    run = subprocess.Popen(program, env=environment(PARALLEL_MIX_SILENCE="0.5"), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (tmp_path / "o.h5.checkpoint").exists():
        assert run.poll() is None, run.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.02)
    pids = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True, check=True).stdout.split()
    ranks = [int(pid) for pid in pids]
    assert len(ranks) == 2
    for pid in ranks:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(12)
    for pid in ranks:
        os.kill(pid, signal.SIGCONT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 0, said
    assert (tmp_path / "o.h5").exists()
