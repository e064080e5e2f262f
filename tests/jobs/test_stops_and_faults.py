"""Signals, failing tasks, dead workers, foreign checkpoints: nothing hangs, nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.errors import ParallelMixError
from tests.conftest import BIN, assert_same_result, blobs, children, environment, launcher, parallel_mix, run_to_end
from tests.processes import dask_address

LONG = ["--levels", "6", "--range", "0.1,1.0", "--checkpoint-every", "0", "--density", "exact"]


@pytest.fixture(scope="module")
def long_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "table.npy"
    np.save(path, blobs(7000, 8, 9))
    return path


@pytest.fixture(scope="module")
def whole(long_table: Path) -> Path:
    out = long_table.with_name("whole.h5")
    assert parallel_mix("hmac", long_table, "-o", out, *LONG).returncode == 0
    return out


def start(table: Path, out: Path, backend: str) -> subprocess.Popen[str]:
    before, after = launcher(backend)
    words = [*before, str(BIN / "parallel-mix"), "hmac", str(table), "-o", str(out), *LONG, *after]
    return subprocess.Popen(
        words, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.02)


def status(out: Path) -> dict[str, object]:
    return json.loads(out.with_name(out.name + ".progress.json").read_text())


def checkpoint(out: Path) -> Path:
    return out.with_name(out.name + ".checkpoint")


@pytest.mark.parametrize(
    "backend_name, signum",
    [
        *(("serial2", signum) for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)),
        *(("mpi2", signum) for signum in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)),
        ("serial1", signal.SIGTERM),
        ("dask2", signal.SIGTERM),
    ],
)
def test_a_signal_stops_the_run_and_it_goes_on(
    long_table: Path, whole: Path, tmp_path: Path, backend_name: str, signum: int
) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, backend_name)
    wait_for(checkpoint(out).exists, process)
    # mpirun passes TERM and USR1 on to all ranks, but takes INT for itself and sends TERM
    target = process.pid
    os.kill(target, signum)
    began = time.monotonic()
    said = process.communicate(timeout=20)[1]
    assert time.monotonic() - began < 10, said
    assert status(out)["state"] == "stopped", said
    with h5py.File(checkpoint(out)) as kept:
        assert status(out)["done"] == kept["works"][:].sum() + kept["ascents/work"][:].sum()
    assert "Traceback" not in said
    if not backend_name.startswith("mpi"):
        assert process.returncode == (130 if signum == signal.SIGINT else 75), said
        assert "give the same command again" in said
    assert not out.exists()
    done = parallel_mix("hmac", long_table, "-o", out, *LONG)
    assert done.returncode == 0, done.stderr
    assert_same_result(whole, out)
    assert status(out)["done"] == status(out)["total"] == status(whole)["total"]


def test_a_signal_to_a_waiting_rank_is_acted_on_within_two_seconds(long_table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, "mpi3")
    wait_for(checkpoint(out).exists, process)
    began = time.monotonic()
    os.kill(int(str(status(out)["process"])), signal.SIGTERM)  # rank 0 alone
    wait_for(lambda: status(out)["state"] == "stopped", process, seconds=2)
    assert time.monotonic() - began < 2
    process.communicate(timeout=20)


BROKEN = """
import sys
from parallel_mix.models.hmac import climbing
def broken(*arguments, **more):
    raise FloatingPointError("a made-up fault")
climbing.{name} = broken
from parallel_mix.cli import main
main()
"""


@pytest.mark.parametrize(
    "backend_name, approach", [("serial1", 2), ("serial2", 1), ("serial2", 2), ("mpi1", 1), ("mpi3", 1), ("mpi3", 2)]
)
def test_a_failing_task_ends_the_run_and_can_be_run_alone(
    long_table: Path, tmp_path: Path, backend_name: str, approach: int
) -> None:
    out = tmp_path / "run.h5"
    script = tmp_path / "broken.py"
    script.write_text(BROKEN.format(name="ascend" if approach == 2 else "kernel_sums"))
    before, after = launcher(backend_name)
    words = [sys.executable, str(script), "hmac", str(long_table), "-o", str(out), *LONG, "--approach", str(approach)]
    began = time.monotonic()
    done = run_to_end([*before, *words, *after], timeout=60)
    assert time.monotonic() - began < 20
    assert done.returncode != 0
    assert "failed on " in done.stderr
    assert "FloatingPointError: a made-up fault" in done.stderr
    assert "in broken" in done.stderr, "the worker's traceback"
    assert "--only-task " in done.stderr
    assert status(out)["state"] == "failed"
    task = done.stderr.split("--only-task ")[1].split(".")[0]
    alone = subprocess.run([*words, "--only-task", task], env=environment(), capture_output=True, text=True, timeout=60)
    assert alone.returncode == 1
    assert "a made-up fault" in alone.stderr
    mended = parallel_mix("hmac", long_table, "-o", out, *LONG, "--approach", approach, "--only-task", task)
    assert mended.returncode == 0
    assert status(out)["state"] == "failed", "a look at a task changes nothing"
    assert f"Task {task} ran without an error" in mended.stderr


UNSEEN = """
import sys
from parallel_mix.runs.staging import Staging
from parallel_mix.store.hdf5_tables import StoredRows
Staging.rows = lambda self, table: StoredRows("/nowhere/rows.h5", "X", "w", table.X.shape, (0, 0))
from parallel_mix.models.hmac import levels as hmac_levels
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.points import measure_frame
def fit(source, settings, backend, run, frame):
    from parallel_mix.models.hmac.points import PointsRecipe, Frame
    import numpy as np
    backend.share(PointsRecipe(source, Frame(np.zeros(8), np.ones(8), 1.0)))
    from functools import partial
    from parallel_mix.models.hmac.field_climbing import waves_of_block
    list(backend.map(partial(waves_of_block, extent=np.ones(8), smallest=1.0), [(0, 1), (1, 2), (2, 3)]))
hmac_levels.fit_hmac = fit
from parallel_mix.models.hmac import points
points.measure_frame = lambda source, standardize, of_blocks: Frame(None, None, 1.0)
from parallel_mix.models.hmac.points import Frame
from parallel_mix.cli import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("backend_name", ["own-dask2"])
def test_a_worker_that_cannot_see_the_file_says_so(long_table: Path, tmp_path: Path, backend_name: str) -> None:
    out = tmp_path / "run.h5"
    script = tmp_path / "unseen.py"
    script.write_text(UNSEEN)
    before, after = launcher(backend_name)
    words = [*before, sys.executable, str(script), "hmac", str(long_table), "-o", str(out), *after]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert "failed on Dask worker" in done.stderr
    assert "/nowhere/rows.h5 does not exist" in done.stderr
    assert status(out)["state"] == "failed"


def test_a_dask_worker_killed_in_the_middle_changes_nothing(long_table: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, "own-dask2")
    wait_for(checkpoint(out).exists, process)
    workers = [pid for pid in children(process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    said = process.communicate(timeout=90)[1]
    assert process.returncode == 0, said
    assert_same_result(whole, out)


def test_a_forked_process_killed_in_the_middle_ends_the_run_with_a_sentence(
    long_table: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, "serial2")
    wait_for(checkpoint(out).exists, process)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 1, said
    assert "died (signal 9), perhaps for want of memory" in said
    assert "Traceback" not in said
    assert parallel_mix("hmac", long_table, "-o", out, *LONG).returncode == 0
    assert_same_result(whole, out)


def test_no_process_outlives_a_killed_parent(long_table: Path, tmp_path: Path) -> None:
    process = start(long_table, tmp_path / "run.h5", "serial2")
    wait_for(checkpoint(tmp_path / "run.h5").exists, process)
    workers = children(process.pid)
    process.kill()
    process.communicate(timeout=10)
    until = time.monotonic() + 10
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < until, "a forked process goes on without its parent"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_rank_ends_the_job_and_it_goes_on(long_table: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, "mpi2")
    wait_for(checkpoint(out).exists, process)
    rank0 = int(str(status(out)["process"]))
    siblings = [p for p in Path("/proc").iterdir() if p.name.isdigit() and int(p.name) != rank0]
    ranks = []
    for entry in siblings:
        try:
            if (
                b"OMPI_COMM_WORLD_RANK=1\0" in (entry / "environ").read_bytes()
                and str(out).encode() in (entry / "cmdline").read_bytes()
            ):
                ranks.append(int(entry.name))
        except OSError:
            continue
    assert ranks
    os.kill(ranks[0], signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert parallel_mix("hmac", long_table, "-o", out, *LONG, backend="mpi3").returncode == 0
    assert_same_result(whole, out)


def test_a_checkpoint_of_another_run_is_refused_and_fresh_begins_anew(
    long_table: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.h5"
    process = start(long_table, out, "serial1")
    wait_for(checkpoint(out).exists, process)
    process.kill()
    process.communicate()
    kept = checkpoint(out).read_bytes()
    other = parallel_mix("hmac", long_table, "-o", out, "--levels", 5, "--range", "0.1,1.0", "--density", "exact")
    assert other.returncode == 2
    assert "belongs to another run: levels was 6, is 5. Use --fresh" in other.stderr
    np.save(tmp_path / "other.npy", blobs(50))
    other = parallel_mix("hmac", tmp_path / "other.npy", "-o", out, *LONG)
    assert other.returncode == 2
    assert "belongs to another run: the data differ. Use --fresh" in other.stderr
    assert checkpoint(out).read_bytes() == kept
    done = parallel_mix("hmac", long_table, "-o", out, *LONG, "--fresh")
    assert done.returncode == 0, done.stderr
    assert_same_result(whole, out)


def test_a_damaged_checkpoint_is_a_sentence(long_table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    checkpoint(out).write_bytes(b"\x89HDF\r\n\x1a\n and no more")
    done = parallel_mix("hmac", long_table, "-o", out, *LONG)
    assert done.returncode == 2
    assert "damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_attempt_that_was_replaced_ends_itself(long_table: Path, tmp_path: Path) -> None:
    """A cut-off first attempt must not write over its successor's checkpoint."""
    out = tmp_path / "run.h5"
    process = start(long_table, out, "serial1")
    wait_for(checkpoint(out).exists, process)
    later = {**status(out), "attempt": 7, "launch": 7, "host": "elsewhere"}
    path = out.with_name(out.name + ".progress.json")
    os.kill(process.pid, signal.SIGSTOP)
    path.write_text(json.dumps(later))
    os.kill(process.pid, signal.SIGCONT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1, said
    assert "Attempt 7 of this run is under way on elsewhere" in said
    assert status(out)["attempt"] == 7


def test_a_signal_before_there_is_work_stops_at_once(tmp_path: Path) -> None:
    """No scheduler answers, and Dask would wait half a minute."""
    np.save(tmp_path / "t.npy", blobs(50))
    words = ["hmac", str(tmp_path / "t.npy"), "-o", str(tmp_path / "o.h5"), "--backend", "dask"]
    with subprocess.Popen(
        [str(BIN / "parallel-mix"), *words, "--scheduler", "tcp://127.0.0.1:9"],
        env=environment(), stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=10)[1]
    assert process.returncode == 75, said
    assert "Traceback" not in said


def test_a_heartbeat_goes_on_while_a_task_lasts(tmp_path: Path) -> None:
    from parallel_mix.backends.serial import SerialBackend
    from parallel_mix.progress import Progress
    from parallel_mix.store.checkpoints import KeptRun
    from tests.backends.test_contract import Constant, slow_double

    run = KeptRun(tmp_path / "o.h5", {}, Progress(quiet=True))
    first = json.loads(run.status.read_text())["heartbeat"]
    run._reported_at -= 10
    with SerialBackend(1) as backend:
        backend.on_wait = run.heartbeat
        backend.share(Constant(0))
        list(backend.map(slow_double, [0.3]))
    assert json.loads(run.status.read_text())["heartbeat"] > first


def test_whatever_is_asked_of_a_dask_scheduler_that_is_gone_is_a_sentence() -> None:
    from distributed import Client

    from parallel_mix.backends.dask import DaskBackend
    from tests.backends.test_contract import Constant, slow_double

    client = Client(dask_address())
    with DaskBackend(client=client) as backend:
        backend.share(Constant(0))
        backend._begin(slow_double)
        client.close()
        actions = (
            lambda: backend._submit(0, 1),
            lambda: backend.share(Constant(1)),
            lambda: backend._begin(slow_double),
        )
        for action in actions:
            with pytest.raises(ParallelMixError, match="scheduler is gone"):
                action()


def test_a_dask_scheduler_that_goes_ends_the_run_in_words(long_table: Path, whole: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "run.h5", str(tmp_path / "scheduler.json")
    quick = environment(DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="3s")

    def dask(program: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--scheduler-file", file, *words]
        return subprocess.Popen(command, env=quick, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)

    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    wait_for(Path(file).exists, scheduler)
    worker = dask("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
    words = [str(BIN / "parallel-mix"), "hmac", str(long_table), "-o", str(out), *LONG, "--backend", "dask"]
    run = subprocess.Popen([*words, "--scheduler-file", file], env=quick, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(checkpoint(out).exists, run)
        scheduler.kill()
        said = run.communicate(timeout=60)[1]
        assert run.returncode == 1, said
        assert "parallel-mix: The Dask scheduler is gone." in said
        assert "Traceback" not in said
        assert status(out)["state"] == "failed"
    finally:
        for process in (run, worker, scheduler):
            process.kill()
            process.wait()
    assert parallel_mix("hmac", long_table, "-o", out, *LONG).returncode == 0
    assert_same_result(whole, out)


def test_ctrl_c_at_a_terminal_is_quiet_on_dask(long_table: Path, tmp_path: Path) -> None:
    """A terminal sends it to the workers, too."""
    before, after = launcher("dask2")
    words = [*before, str(BIN / "parallel-mix"), "hmac", str(long_table), "-o", str(tmp_path / "run.h5"), *after]
    process = subprocess.Popen(
        [*words, "--checkpoint-every", "0", "--density", "exact"],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "run.h5.checkpoint").exists() and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
