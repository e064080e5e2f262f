"""A private, throw-away SLURM of three nodes, each a host of its own: real munged, slurmctld and slurmd."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import AS_ROOT, BIN
from tests.slurm.hosts import Hosts

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol")
NODES = 3
NET = "10.79.0"
PORT = 17300
CONFIGURATION = """
ClusterName=parallelmixtest
SlurmctldHost={host}({net}.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={slurmd_port}
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmdSpoolDir={root}/spool.%n
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
MinJobAge=600
SlurmdTimeout=30
MessageTimeout=10
PropagateResourceLimits=NONE
EnforcePartLimits=ALL
MailProg=/bin/true
{nodes}
PartitionName=debug Nodes=n[1-{count}] Default=YES MaxTime=60 DefaultTime=10 State=UP
"""


@dataclass
class Cluster:
    """What a test needs of the cluster."""

    environment: dict[str, str]
    hosts: Hosts

    def run(self, *words: object, timeout: float = 60, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(w) for w in words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            **more,  # type: ignore[call-overload]
        )

    def parallel_mix(self, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
        return self.run(BIN / "parallel-mix", *words, cwd=folder)

    def submit(self, folder: Path, *words: object) -> list[str]:
        """Jobs of `parallel-mix submit`."""
        done = self.parallel_mix(folder, "submit", *words)
        assert done.returncode == 0, done.stderr
        return [line.split()[0] for line in done.stdout.splitlines()]

    def state(self, job: str) -> str:
        states = self.run("squeue", "-h", "-a", "--states=all", f"--jobs={job}", "-o", "%T").stdout.split()
        return states[0] if states else "gone"

    def wait(self, condition: Callable[[], object], folder: Path, seconds: float = 90) -> None:
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                queue = self.run("squeue", "-a", "--states=all").stdout
                logs = "".join(f"--- {p.name}\n{p.read_text()}" for p in folder.glob("*.log"))
                raise AssertionError(f"{queue}\n{logs}")
            time.sleep(0.1)

    def wait_done(self, job: str, folder: Path, seconds: float = 90) -> str:
        """The state in which a job ended."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "gone")
        self.wait(lambda: self.state(job) in ended, folder, seconds)
        return self.state(job)


def why_not() -> str:
    """Why there can be no cluster here; '' where there can."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in PROGRAMS):
        return "SLURM is not installed here, or this is not root (.ci/run installs it from Debian)"
    return Hosts.why_not()


@contextlib.contextmanager
def running_cluster(root: Path, shared: Path) -> Iterator[Cluster]:
    """A SLURM that is up, its files in `root`; `shared` is what its nodes see of /tmp."""
    hosts = Hosts(root, "n", NODES, NET, [shared])
    daemons: list[subprocess.Popen[bytes]] = []

    def start(*words: object) -> None:
        with (root / f"{Path(str(words[0])).name}.out").open("wb") as log:
            daemons.append(subprocess.Popen([str(w) for w in words], stdout=log, stderr=log, start_new_session=True))

    for folder in ("state", *(f"spool.n{i}" for i in range(1, NODES + 1))):
        (root / folder).mkdir()
    root.chmod(0o755)
    key = root / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    munge = {name: root / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
    configuration = root / "slurm.conf"
    nodes = "\n".join(f"NodeName=n{i} NodeAddr={NET}.{i} CPUs=4 RealMemory=8000" for i in range(1, NODES + 1))
    host = socket.gethostname().split(".")[0]
    configuration.write_text(
        CONFIGURATION.format(host=host, net=NET, root=root, port=PORT, slurmd_port=PORT + 1, nodes=nodes, count=NODES)
    )
    more = {"SLURM_CONF": str(configuration), **AS_ROOT}
    made = Cluster({**os.environ, **more}, hosts)
    try:
        hosts.up()
        start(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge['socket']}",
            f"--pid-file={munge['pid']}", f"--log-file={munge['log']}", f"--seed-file={munge['seed']}",
        )  # fmt: skip
        until = time.monotonic() + 10
        while not munge["socket"].exists() and time.monotonic() < until:
            time.sleep(0.05)
        os.environ["SLURM_CONF"] = str(configuration)
        start("slurmctld", "-D", "-c", "-f", configuration)
        for i in range(1, NODES + 1):
            hosts.start(i, ["slurmd", "-D", "-N", f"n{i}", "-f", configuration], root / f"slurmd.n{i}.out")
        until = time.monotonic() + 30
        while len(set(made.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.split())) < NODES:
            if time.monotonic() > until:
                raise RuntimeError("SLURM did not come up: " + (root / "slurmctld.log").read_text()[-500:])
            time.sleep(0.1)
        yield made
        made.run("scancel", "--user=root")
        until = time.monotonic() + 20
        while made.run("squeue", "-h", "-o", "%A").stdout.strip() and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        os.environ.pop("SLURM_CONF", None)
        hosts.down()
        for process in reversed(daemons):
            process.terminate()
        for process in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
