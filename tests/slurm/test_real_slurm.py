"""On a real SLURM of three hosts: every way in, every way a job ends, the same bits."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import BIN, ROOT, assert_same_result, blobs, parallel_mix
from tests.slow import slow_distances
from tests.slurm.cluster import Cluster

LONG = ["--levels", "6", "--range", "0.1,1.0", "--checkpoint-every", "0", "--density", "exact"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    np.save(tmp_path / "t.npy", blobs(2000, 5))
    assert parallel_mix("hmac", tmp_path / "t.npy", "-o", tmp_path / "serial.h5").returncode == 0
    return tmp_path / "t.npy"


@pytest.fixture(scope="session")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table that takes some ten seconds, and its result."""
    folder = tmp_path_factory.mktemp("long")
    np.save(folder / "long.npy", blobs(14_000, 8, 9))
    assert parallel_mix("hmac", folder / "long.npy", "-o", folder / "whole.h5", *LONG).returncode == 0
    return folder / "long.npy", folder / "whole.h5"


def assert_as_by_one_process(folder: Path, slow: list[str]) -> None:
    """The result of slow distances is that of one process; from here on they are not slow any more."""
    (folder / "slowly").unlink(missing_ok=True)
    with contextlib.chdir(folder):
        done = parallel_mix(*slow, "-o", "whole.h5")
    assert done.returncode == 0, done.stderr
    assert_same_result(folder / "whole.h5", folder / "out.h5")


def status(output: Path) -> dict[str, object]:
    path = output.with_name(output.name + ".progress.json")
    return dict(json.loads(path.read_text())) if path.exists() else {}


@pytest.mark.parametrize("launcher", ["srun --mpi=pmix", "mpirun"])
def test_a_submission_on_two_nodes_gives_the_same_bits(
    cluster: Cluster, table: Path, tmp_path: Path, launcher: str
) -> None:
    words = ["--nodes", 2, "--ntasks-per-node", 2, "--time", 5, "--launcher", launcher]
    (job,) = cluster.submit(tmp_path, *words, "--", "hmac", "t.npy", "-o", "out.h5")
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    assert_same_result(tmp_path / "serial.h5", tmp_path / "out.h5")
    assert "mpi, 4 at a time" in (tmp_path / f"hmac-{job}.log").read_text()
    assert "done" in cluster.parallel_mix(tmp_path, "status", "out.h5").stdout


def test_the_launch_line_is_found_out(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    (job,) = cluster.submit(tmp_path, "--nodes", 3, "--ntasks-per-node", 1, "--", "hmac", "t.npy", "-o", "out.h5")
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    assert_same_result(tmp_path / "serial.h5", tmp_path / "out.h5")


def test_a_wrong_launch_is_a_sentence(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    for kind in ("pmi2", "none"):
        words = ["srun", "-N2", "-n4", f"--mpi={kind}", BIN / "parallel-mix", "hmac", table, "-o", tmp_path / "o.h5"]
        done = cluster.run(*words, timeout=120)
        assert done.returncode != 0
        assert "do not know of each other" in done.stderr or "do not fit together" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "o.h5").exists()


def test_a_serial_command_in_a_job_of_many_tasks_is_right(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{BIN}/parallel-mix info {table}\n{BIN}/parallel-mix export serial.h5 -o l.csv\n"
    (tmp_path / "s.sh").write_text(script)
    job = cluster.run("sbatch", "--parsable", "-n4", "-o", "s.log", "s.sh", cwd=tmp_path).stdout.strip()
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    assert (tmp_path / "l.csv").exists()


def test_a_chain(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    words = ["convert", "t.npy", "-o", "t.h5", "--then", "hmac", "t.h5", "-o", "out.h5"]
    words += ["--then", "export", "out.h5", "-o", "labels.csv"]
    jobs = cluster.submit(tmp_path, "--ntasks", 2, "--", *words)
    assert len(jobs) == 3
    assert cluster.wait_done(jobs[-1], tmp_path) == "COMPLETED"
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 2001


def test_a_chain_ends_where_a_link_fails(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    jobs = cluster.submit(tmp_path, "--", "convert", "bad.csv", "-o", "b.h5", "--then", "hmac", "b.h5", "-o", "o.h5")
    assert cluster.wait_done(jobs[0], tmp_path) == "FAILED"
    assert cluster.wait_done(jobs[1], tmp_path) == "CANCELLED"
    assert "which is no number" in (tmp_path / f"convert-{jobs[0]}.log").read_text()
    assert "cancelled" in cluster.parallel_mix(tmp_path, "status", "o.h5").stdout


def test_an_array(cluster: Cluster, tmp_path: Path) -> None:
    for k in range(3):
        np.save(tmp_path / f"in put{k}.npy", blobs(300, 2, seed=k))
        parallel_mix("hmac", tmp_path / f"in put{k}.npy", "-o", tmp_path / f"serial{k}.h5")
    words = ["--array", "0-2", "--ntasks", 2, "--", "hmac", "in put%a.npy", "-o", "out%a.h5"]
    (job,) = cluster.submit(tmp_path, *words)
    cluster.wait(lambda: all((tmp_path / f"out{k}.h5").exists() for k in range(3)), tmp_path)
    for k in range(3):
        assert_same_result(tmp_path / f"serial{k}.h5", tmp_path / f"out{k}.h5")
    cluster.wait_done(job, tmp_path)


@pytest.mark.parametrize("command", ["hmac", "distances"])
def test_the_template_stops_at_its_signal_and_is_requeued(
    cluster: Cluster, command: str, long_run: tuple[Path, Path], tmp_path: Path
) -> None:
    slow = slow_distances(tmp_path, 60.0)
    words = ["hmac", str(long_run[0]), *LONG] if command == "hmac" else slow
    environment = {**cluster.environment, "PATH": f"{BIN}:{cluster.environment['PATH']}"}
    resources = ["--parsable", "--ntasks=4", "--nodes=2", "--time=5", f"--chdir={tmp_path}"]
    template = str(ROOT / "slurm" / f"{command}.sbatch")
    with_path = Cluster(environment, cluster.hosts)
    done = with_path.run("sbatch", *resources, template, words[1], tmp_path / "out.h5", *words[2:])
    job = done.stdout.strip()
    cluster.wait((tmp_path / "out.h5.checkpoint").exists, tmp_path)
    cluster.run("scancel", "--batch", "-s", "USR1", job)  # what --signal=B:USR1 does in time
    cluster.wait(lambda: int(status(tmp_path / "out.h5").get("attempt", 1)) == 2, tmp_path)  # type: ignore[call-overload]
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    if command == "hmac":
        assert_same_result(long_run[1], tmp_path / "out.h5")
    else:
        assert_as_by_one_process(tmp_path, slow)
    assert status(tmp_path / "out.h5")["job"] == job


def test_scancel_and_the_same_submission_again(cluster: Cluster, long_run: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["--nodes", 2, "--ntasks-per-node", 2, "--", "hmac", long_run[0], "-o", "out.h5", *LONG]
    (job,) = cluster.submit(tmp_path, *words)
    assert "queued" in cluster.parallel_mix(tmp_path, "status", "out.h5").stdout or status(tmp_path / "out.h5")
    cluster.wait((tmp_path / "out.h5.checkpoint").exists, tmp_path)
    cluster.run("scancel", job)
    assert cluster.wait_done(job, tmp_path) == "CANCELLED"
    assert not (tmp_path / "out.h5").exists()
    assert status(tmp_path / "out.h5")["state"] in ("stopped", "running", "stopping")
    (job,) = cluster.submit(tmp_path, *words)
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    assert_same_result(long_run[1], tmp_path / "out.h5")
    assert int(str(status(tmp_path / "out.h5")["attempt"])) == 2


BAD = {
    "unknown partition": (["--partition", "nowhere"], "invalid partition"),
    "time above the limit": (["--time", "2-0"], "time limit"),
    "too many nodes": (["--nodes", "90"], "ode"),
    "a time that is none": (["--time", "soon"], "must be a time"),
    "a name with quotes": (["--job-name", 'a "b"; rm'], "letters, digits"),
    "no such input": ([], "is not there"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_submissions_are_sentences(cluster: Cluster, table: Path, tmp_path: Path, case: str) -> None:
    words, text = BAD[case]
    name = "nothing.npy" if case == "no such input" else "t.npy"
    done = cluster.parallel_mix(tmp_path, "submit", *words, "--", "hmac", name, "-o", "o.h5")
    assert done.returncode == 2
    assert text in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "o.h5.progress.json").exists()


def test_a_submission_from_a_deleted_folder_is_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    words = f"mkdir {tmp_path}/x; cd {tmp_path}/x; rmdir {tmp_path}/x; {BIN}/parallel-mix submit -- info y"
    done = cluster.run("bash", "-c", words)
    assert done.returncode == 2
    assert "has been deleted" in done.stderr


def test_names_with_spaces_umlauts_quotes_and_newlines(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    name = "a 'b' \"ü\"\n$(touch hacked).npy"
    folder = tmp_path / "x 'ß' \"y\""
    folder.mkdir()
    table.rename(folder / name)
    parallel_mix("hmac", folder / name, "-o", tmp_path / "serial.h5", "--force")
    (job,) = cluster.submit(folder, "--ntasks", 2, "--", "hmac", name, "-o", f"{name}.h5")
    assert cluster.wait_done(job, folder) == "COMPLETED"
    assert_same_result(tmp_path / "serial.h5", folder / f"{name}.h5")
    assert not list(tmp_path.rglob("hacked"))


def test_an_output_that_the_nodes_do_not_share_is_a_sentence(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    words = ["--nodes", 2, "--ntasks-per-node", 1, "--", "hmac", "t.npy", "-o", "/dev/shm/out.h5"]
    done = cluster.parallel_mix(tmp_path, "submit", *words)
    assert "other nodes do not see it" in done.stderr
    job = done.stdout.split()[0]
    assert cluster.wait_done(job, tmp_path) == "FAILED"
    assert "is not the same folder on n2 as on n1" in (tmp_path / f"hmac-{job}.log").read_text()


def test_the_doctor_as_a_job(cluster: Cluster, tmp_path: Path) -> None:
    environment = {**cluster.environment, "PATH": f"{BIN}:{cluster.environment['PATH']}"}
    done = Cluster(environment, cluster.hosts).run(
        BIN / "parallel-mix", "doctor", "--submit", "--nodes", 2, "--ntasks-per-node", 2, cwd=tmp_path, timeout=90
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok    ranks: 4: 2 on n1, 2 on n2" in done.stdout
    assert "ok    partition debug: 3 nodes" in done.stdout
    assert "srun --mpi=pmix" in done.stdout


def test_dask_workers_as_jobs_one_of_them_killed(cluster: Cluster, long_run: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["--dask-workers", "2..3", "--", "hmac", long_run[0], "-o", "out.h5", *LONG]
    (job,) = cluster.submit(tmp_path, *words)
    cluster.wait((tmp_path / "out.h5.checkpoint").exists, tmp_path)
    workers = cluster.run("squeue", "-h", "-t", "RUNNING", "-n", "dask-worker", "-o", "%A").stdout.split()
    assert workers
    cluster.run("scancel", workers[0])
    assert cluster.wait_done(job, tmp_path, 120) == "COMPLETED"
    assert_same_result(long_run[1], tmp_path / "out.h5")
    assert any("tls://" in path.read_text() for path in (tmp_path / "dask-logs").glob("*.err")), "encrypted"
    cluster.wait(lambda: not cluster.run("squeue", "-h", "-o", "%A").stdout.strip(), tmp_path)


def test_the_time_limit_comes_and_the_job_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    slow = slow_distances(tmp_path, 220.0)  # 55 s of four ranks; the signal comes before the limit of a minute
    words = ["--nodes", 2, "--ntasks-per-node", 2, "--time", 1, "--max-requeue", 9]
    (job,) = cluster.submit(tmp_path, *words, "--", *slow, "-o", "out.h5")
    assert cluster.wait_done(job, tmp_path, 240) == "COMPLETED"
    assert int(str(status(tmp_path / "out.h5")["attempt"])) > 1
    assert_as_by_one_process(tmp_path, slow)


def test_a_node_that_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    environment = {**cluster.environment, "PARALLEL_MIX_SILENCE": "8"}
    quick = Cluster(environment, cluster.hosts)
    slow = slow_distances(tmp_path, 120.0)
    words = ["--nodes", 2, "--ntasks-per-node", 2, "--", *slow, "-o", "out.h5"]
    (job,) = quick.submit(tmp_path, *words)
    cluster.wait((tmp_path / "out.h5.checkpoint").exists, tmp_path)
    names = cluster.run("squeue", "-h", "-j", job, "-o", "%N").stdout.strip()
    node = int(cluster.run("scontrol", "show", "hostnames", names).stdout.split()[-1][1:])
    cluster.hosts.cut(node)
    try:
        cluster.wait(lambda: cluster.state(job) not in ("RUNNING", "PENDING"), tmp_path, 100)
        assert f"on n{node} has not been heard of" in (tmp_path / f"distances-{job}.log").read_text()
    finally:
        cluster.hosts.heal(node)
    cluster.run("scontrol", "update", f"nodename=n{node}", "state=resume")
    (tmp_path / "slowly").unlink()
    cluster.wait_done(job, tmp_path)
    (job,) = quick.submit(tmp_path, *words)
    assert cluster.wait_done(job, tmp_path) == "COMPLETED"
    assert_as_by_one_process(tmp_path, slow)


def test_one_task_of_an_array_is_requeued_and_goes_on(
    cluster: Cluster, long_run: tuple[Path, Path], tmp_path: Path
) -> None:
    for k in range(2):
        (tmp_path / f"t{k}.npy").symlink_to(long_run[0])
    words = ["--array", "0-1", "--ntasks", 2, "--", "hmac", "t%a.npy", "-o", "out%a.h5", *LONG]
    (job,) = cluster.submit(tmp_path, *words)
    cluster.wait((tmp_path / "out1.h5.checkpoint").exists, tmp_path)
    cluster.run("scancel", "--batch", "-s", "USR1", f"{job}_1")
    cluster.wait(lambda: all((tmp_path / f"out{k}.h5").exists() for k in range(2)), tmp_path)
    assert status(tmp_path / "out0.h5")["attempt"] == 1
    assert status(tmp_path / "out1.h5")["attempt"] == 2
    for k in range(2):
        assert_same_result(long_run[1], tmp_path / f"out{k}.h5", without=("run", "data"))


def test_a_dask_worker_that_is_cut_off(cluster: Cluster, long_run: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["--cpus-per-task", 4, "--dask-workers", "2..2", "--", "hmac", long_run[0], "-o", "out.h5", *LONG]
    (job,) = cluster.submit(tmp_path, *words)  # four cores each: the head and its workers have a node each
    cluster.wait((tmp_path / "out.h5.checkpoint").exists, tmp_path)
    nodes = cluster.run("squeue", "-h", "-t", "RUNNING", "-n", "dask-worker", "-o", "%N").stdout.split()
    cluster.hosts.cut(int(nodes[-1][1:]))
    try:
        assert cluster.wait_done(job, tmp_path, 180) == "COMPLETED"
    finally:
        cluster.hosts.heal(int(nodes[-1][1:]))
        cluster.run("scancel", "--name", "dask-worker")
        cluster.run("scontrol", "update", f"nodename={nodes[-1]}", "state=resume")
    assert_same_result(long_run[1], tmp_path / "out.h5")


def test_a_full_disk_on_one_node_is_a_sentence(cluster: Cluster, table: Path, tmp_path: Path) -> None:
    fill = "fallocate -l $(( $(df --output=avail -B1 /tmp | tail -1) - 2000000 )) /tmp/full"
    assert cluster.run("srun", "-w", "n2", "bash", "-c", fill).returncode == 0
    try:
        words = ["--nodes", 2, "--ntasks-per-node", 1, "--", "hmac", "t.npy", "-o", "out.h5"]
        (job,) = cluster.submit(tmp_path, *words)
        assert cluster.wait_done(job, tmp_path) == "FAILED"
        assert "/tmp on n2 has" in (tmp_path / f"hmac-{job}.log").read_text()
    finally:
        cluster.run("srun", "-w", "n2", "rm", "/tmp/full")
