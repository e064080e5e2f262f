"""A private, throw-away SLURM of two nodes on this host: real munged, slurmctld and slurmd on ports of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MPI_ENVIRONMENT

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
CONFIGURATION = """
ClusterName=parallelmixtest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmdSpoolDir={root}/spool.%n
TmpFS={root}/tmp.%n
StateSaveLocation={root}/state
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=bf_interval=1,sched_interval=2,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=3
InactiveLimit=0
PropagateResourceLimits=NONE
MailProg=/bin/true
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=4 RealMemory=8000 State=UNKNOWN
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=debug Nodes=n[1-2] Default=YES MaxTime=INFINITE DefaultTime=10 State=UP
"""


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which srun and sbatch reach the private cluster."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in PROGRAMS):
        pytest.skip("SLURM is not installed here, or this is not root (.ci/run installs it from Debian)")
    root = tmp_path_factory.mktemp("slurm")
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: object) -> None:
        log = (root / f"{Path(str(words[0])).name}-{len(started)}.out").open("wb")
        started.append(subprocess.Popen([str(w) for w in words], stdout=log, stderr=log, start_new_session=True))

    for folder in ("state", "spool.n1", "spool.n2", "tmp.n1", "tmp.n2"):
        (root / folder).mkdir()
    root.chmod(0o755)
    key = root / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    munge = {name: root / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
    start(
        "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge['socket']}",
        f"--pid-file={munge['pid']}", f"--log-file={munge['log']}", f"--seed-file={munge['seed']}",
    )  # fmt: skip
    port = 17300
    configuration = root / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], root=root, port=port, port1=port + 1, port2=port + 2
        )
    )
    more = {"SLURM_CONF": str(configuration), **MPI_ENVIRONMENT}
    environment = {**os.environ, **more}
    os.environ["SLURM_CONF"] = str(configuration)
    try:
        start("slurmctld", "-D", "-c", "-f", configuration)
        for node in ("n1", "n2"):
            start("slurmd", "-D", "-N", node, "-f", configuration)
        until = time.monotonic() + 30
        while True:
            words = ["sinfo", "-h", "-N", "-t", "idle", "-o", "%N"]
            idle = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30).stdout.split()
            if len(set(idle)) == 2:
                break
            if time.monotonic() > until:
                pytest.skip("SLURM did not come up here: " + (root / "slurmctld.log").read_text()[-500:])
            time.sleep(0.1)
        yield environment
        subprocess.run(["scancel", "--user=root"], env=environment, check=False, timeout=30)
        until = time.monotonic() + 20
        queue = ["squeue", "-h", "-o", "%A"]
        while subprocess.run(queue, env=environment, capture_output=True, timeout=30).stdout.strip():
            if time.monotonic() > until:
                break
            time.sleep(0.2)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        os.environ.pop("SLURM_CONF", None)
