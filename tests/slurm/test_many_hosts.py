"""Plain mpirun over four hosts, and what happens when one of them is cut off."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import AS_ROOT, BIN, assert_same_result, blobs, parallel_mix
from tests.slow import slow_distances
from tests.slurm.hosts import Hosts

NAMES = ["h1", "h2", "h3", "h4"]


@pytest.fixture
def hosts(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Four hosts that an mpirun on this machine reaches by a stand-in for ssh."""
    if reason := Hosts.why_not():
        pytest.skip(reason)
    made = Hosts(tmp_path, "h", len(NAMES), "10.89.0", [tmp_path_factory.getbasetemp()])
    try:
        made.up()
        for i in range(1, len(NAMES) + 1):
            made.start(i, ["sleep", "infinity"], tmp_path / f"h{i}.out")
        agent = tmp_path / "agent"
        agent.write_text(
            "#!/bin/bash\nwhile [[ ${1:-} == -* ]]; do shift; done\nhost=$1; shift\n"
            f'exec nsenter -t "$(cat {tmp_path}/$host.pid)" --net --uts --mount -- /bin/sh -c "cd {tmp_path}; $*"\n'
        )
        agent.chmod(0o755)
        for name, process in zip(NAMES, made.started, strict=True):
            (tmp_path / f"{name}.pid").write_text(str(process.pid))
        until = time.monotonic() + 10
        while any(made.hostname(process.pid) != name for name, process in zip(NAMES, made.started, strict=True)):
            assert time.monotonic() < until
            time.sleep(0.02)
        yield made
    finally:
        made.down()


def command(folder: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """mpirun on h1 with two ranks on each host."""
    agent = folder / "agent"
    mpirun = [str(agent), "h1", str(BIN / "mpirun"), "--prtemca", "plm_ssh_agent", str(agent)]
    mpirun += ["--host", ",".join(f"{name}:2" for name in NAMES), str(BIN / "parallel-mix")]
    # Open MPI 5.0.11 shares the machine's topology by a file that on such hosts is sometimes not there, and crashes.
    alone = {"PRTE_MCA_rtc_hwloc_vmhole": "none", "PMIX_MCA_pmix_hwloc_hole_kind": "none"}
    return [*mpirun, *words], {**os.environ, **AS_ROOT, **alone}


def test_four_hosts_give_the_same_bits(hosts: Hosts, tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", blobs(1500, 4))
    parallel_mix("hmac", tmp_path / "t.npy", "-o", tmp_path / "serial.h5")
    words, env = command(tmp_path, "hmac", "t.npy", "-o", "out.h5")
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "mpi, 8 at a time" in done.stderr
    assert "on h1: fewer ranks" not in done.stderr, "two ranks a host"
    assert_same_result(tmp_path / "serial.h5", tmp_path / "out.h5")


def test_a_host_that_is_cut_off_ends_the_run_and_is_named(hosts: Hosts, tmp_path: Path) -> None:
    slow = slow_distances(tmp_path, 240.0)  # 30 s of eight ranks
    words, env = command(tmp_path, *slow, "-o", "out.h5")
    with (tmp_path / "out.txt").open("wb") as out:
        process = subprocess.Popen(words, env={**env, "PARALLEL_MIX_SILENCE": "8"}, stdout=out, stderr=out)
    until = time.monotonic() + 60
    while not (tmp_path / "out.h5.checkpoint").exists():
        assert time.monotonic() < until, (tmp_path / "out.txt").read_text()
        time.sleep(0.05)
    time.sleep(1.0)
    hosts.cut(3)
    try:
        process.wait(timeout=90)
    finally:
        process.kill()
    said = (tmp_path / "out.txt").read_text()
    assert "on h3 has not been heard of" in said, said
    assert process.returncode != 0
    state = json.loads((tmp_path / "out.h5.progress.json").read_text())
    assert state["state"] == "failed"
    assert "h3" in state["message"]
    (tmp_path / "slowly").unlink()
    with contextlib.chdir(tmp_path):
        again = parallel_mix(*slow, "-o", "out.h5")
        assert again.returncode == 0, again.stderr
        assert "Going on from" in again.stderr
        assert parallel_mix(*slow, "-o", "whole.h5").returncode == 0
    assert_same_result(tmp_path / "whole.h5", tmp_path / "out.h5")
