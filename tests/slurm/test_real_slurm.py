"""The same result under srun and sbatch, on a real SLURM."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import BIN, ROOT, assert_same_result, blobs, parallel_mix


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.save(tmp_path / "t.npy", blobs(2000, 5))
    assert parallel_mix("hmac", tmp_path / "t.npy", "-o", tmp_path / "serial.h5").returncode == 0
    return tmp_path / "t.npy"


def test_srun_gives_the_same_bits(slurm: dict[str, str], table: Path, tmp_path: Path) -> None:
    kinds = subprocess.run(["srun", "--mpi=list"], env=slurm, capture_output=True, text=True, timeout=30)
    if "pmix" not in kinds.stdout + kinds.stderr:
        pytest.skip("this SLURM has no PMIx (libpmix2)")
    words = [
        "srun",
        "-N1",
        "-n2",
        "--mpi=pmix",
        str(BIN / "parallel-mix"),
        "hmac",
        str(table),
        "-o",
        str(tmp_path / "srun.h5"),
    ]
    done = subprocess.run(words, env=slurm, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "mpi, 2 at a time" in done.stderr
    assert_same_result(tmp_path / "serial.h5", tmp_path / "srun.h5")


def test_the_template_runs_stops_at_its_signal_and_goes_on(slurm: dict[str, str], tmp_path: Path) -> None:
    np.save(tmp_path / "long.npy", blobs(12_000, 8, 9))
    options = ["--levels", "6", "--range", "0.1,1.0", "--checkpoint-every", "0"]
    assert parallel_mix("hmac", tmp_path / "long.npy", "-o", tmp_path / "whole.h5", *options).returncode == 0
    environment = {**slurm, "PATH": f"{BIN}:{slurm['PATH']}"}
    template = str(ROOT / "slurm" / "hmac.sbatch")
    words = ["sbatch", "--parsable", "--ntasks=2", "--mem-per-cpu=0", "--time=5", f"--chdir={tmp_path}"]
    words += [template, str(tmp_path / "long.npy"), str(tmp_path / "out.h5"), *options]

    def submit() -> str:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip()

    def state() -> str:
        path = tmp_path / "out.h5.progress.json"
        return str(json.loads(path.read_text())["state"]) if path.exists() else ""

    def wait(condition: object, seconds: float = 90) -> None:
        until = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            log = "".join(p.read_text() for p in tmp_path.glob("*.log"))
            assert time.monotonic() < until, log
            time.sleep(0.05)

    job = submit()
    wait((tmp_path / "out.h5.checkpoint").exists)
    subprocess.run(["scancel", "-s", "USR1", job], env=slurm, check=True, timeout=30)  # what --signal does in time
    wait(lambda: state() == "stopped")
    wait(
        lambda: (
            job not in subprocess.run(["squeue", "-h", "-o", "%A"], env=slurm, capture_output=True, text=True).stdout
        )
    )
    assert not (tmp_path / "out.h5").exists()
    submit()
    wait(lambda: state() == "done")
    assert_same_result(tmp_path / "whole.h5", tmp_path / "out.h5")
