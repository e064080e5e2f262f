"""Dask workers as jobs of a SLURM cluster, through dask-jobqueue: as many as there is work for, dead ones replaced."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from dask import config as dask_config

from parallel_mix.errors import InputError
from parallel_mix.extras import need

LOGS = "dask-logs"
SETTINGS = {
    "distributed.scheduler.allowed-failures": 10,  # a worker's death is seldom the fault of its task
    "distributed.comm.timeouts.tcp": "20s",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


def slurm_cluster(low: int, high: int) -> Any:
    """A cluster of between `low` and `high` worker jobs; what passes between them is encrypted (TLS).

    Partition, account and time limit are those of the job this runs in, where it runs in one.
    """
    need("dask-jobqueue", "--slurm-workers")
    from dask_jobqueue import SLURMCluster
    from distributed.security import Security

    if shutil.which("sbatch") is None:
        raise InputError("There is no SLURM here (sbatch is not found): --slurm-workers needs one.")
    asked = subprocess.run(["sinfo", "-h"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S607
    if asked.returncode:
        raise InputError("SLURM's programs are here, but no cluster answers: --slurm-workers needs one.")
    environment = os.environ
    cores = int(environment.get("SLURM_CPUS_PER_TASK", "1"))
    memory = int(environment.get("SLURM_MEM_PER_CPU", "0")) * cores or int(environment.get("SLURM_MEM_PER_NODE", "0"))
    qos = environment.get("SLURM_JOB_QOS", "")
    Path(LOGS).mkdir(exist_ok=True)
    folder = Path.home() / ".cache" / "parallel-mix"  # of the user alone, on all nodes, no blanks in its name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    dask_config.set(SETTINGS)
    cluster = SLURMCluster(
        queue=environment.get("SLURM_JOB_PARTITION"),
        account=_account(environment.get("SLURM_JOB_ACCOUNT")),
        walltime=_time_left(environment.get("SLURM_JOB_ID")),
        cores=cores,
        processes=1,
        memory=f"{memory}MB" if memory else "2GB",
        job_directives_skip=[] if memory else ["--mem"],
        worker_extra_args=[] if memory else ["--memory-limit", "0"],
        job_extra_directives=["--export=ALL", *([f"--qos={qos}"] if qos and qos != "normal" else [])],
        job_script_prologue=["unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK", "export OMP_NUM_THREADS=1"],
        name="dask-worker",
        python=shlex.quote(sys.executable),
        log_directory=LOGS,
        local_directory=environment.get("TMPDIR", "/tmp"),  # noqa: S108 (of the worker's node)
        shared_temp_directory=str(folder),
        security=Security.temporary(),
        scheduler_options={"host": _address(), "dashboard_address": None},
        death_timeout=60,
        silence_logs="error",
    )
    cluster.adapt(minimum_jobs=low, maximum_jobs=high, interval="2s", wait_count=30)
    return cluster


def _account(name: str | None) -> str | None:
    return name if name and name != "(null)" else None


def _time_left(job: str | None) -> str | None:
    """The time left to this job, as SLURM writes it, for its workers to have as much; None outside a job."""
    if job is None:
        return None
    words = ["squeue", "-h", "-j", job, "-o", "%L"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    left = done.stdout.strip()
    return left if done.returncode == 0 and left[:1].isdigit() else None


def _address() -> str:
    """This host's address as other nodes reach it: the one its name has, or else the one of the default route."""
    try:
        addresses = {str(item[4][0]) for item in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    except OSError:
        addresses = set()
    outward = sorted(address for address in addresses if not address.startswith("127."))
    if outward:
        return outward[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
