"""Jobs on a private SLURM of three hosts, broken at random moments in every way; each must come to the same bits.

python benchmarks/slurm_faults.py [50 [KIND ...]]      prints a table in Markdown (root and SLURM needed)
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from parallel_mix.store.checkpoints import read_status, status_path  # noqa: E402
from tests.conftest import assert_same_result, blobs, parallel_mix  # noqa: E402
from tests.slurm.cluster import Cluster, running_cluster, why_not  # noqa: E402

OPTIONS = ["--levels", "6", "--range", "0.1,1.0", "--checkpoint-every", "0"]
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "gone")
OFTEN = 4


class Trial:
    """One run and one fault."""

    def __init__(self, cluster: Cluster, folder: Path, table: Path) -> None:
        self.cluster, self.folder, self.table = cluster, folder, table
        self.output = folder / "out.h5"
        self.cut = 0
        self.job = self.submit()

    def submit(self) -> str:
        words = ["--nodes", 2, "--ntasks-per-node", 2, "--time", 20, "--", "hmac", self.table, "-o", "out.h5", *OPTIONS]
        return self.cluster.submit(self.folder, *words)[0]

    # faults

    def rank_killed(self) -> None:
        """SIGKILL for one rank."""
        command = ["pgrep", "-f", "parallel_mix hmac"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        pids = [int(pid) for pid in printed.split() if b"launch" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if pids:
            os.kill(random.choice(pids), signal.SIGKILL)

    def time_limit(self) -> None:
        """The signal that comes before the time limit."""
        self.cluster.run("scancel", "--batch", "-s", "USR1", self.job)

    def requeued(self) -> None:
        """Preempted: requeued by somebody else."""
        self.cluster.run("scontrol", "requeue", self.job)

    def cancelled(self) -> None:
        """Cancelled by its user."""
        self.cluster.run("scancel", self.job)

    def host_cut(self) -> None:
        """The network of a host goes."""
        names = self.cluster.run("squeue", "-h", "-j", self.job, "-o", "%N").stdout.strip()
        hosts = self.cluster.run("scontrol", "show", "hostnames", names).stdout.split() if names else ["n3"]
        self.cut = int(hosts[-1][1:])
        self.cluster.hosts.cut(self.cut)

    def mend(self) -> None:
        if self.cut:
            self.cluster.hosts.heal(self.cut)
            node = f"nodename=n{self.cut}"
            self.cluster.run("scontrol", "update", node, "state=resume")
            self.cut = 0

    # what follows

    def finish(self) -> tuple[int, float]:
        """Submit again as a user would until there is a result: how often, and the longest time nothing went on."""
        again, longest, since, last = 0, 0.0, time.monotonic(), ""
        until = since + 400
        while time.monotonic() < until:
            state = self.cluster.state(self.job)
            said = read_status(status_path(self.output))
            seen = str([state, *(said.get(key) for key in ("state", "done", "attempt", "launch"))])
            if seen != last:
                last, since = seen, time.monotonic()
            longest = max(longest, time.monotonic() - since)
            if state in ENDED:
                self.mend()
                if self.output.exists():
                    return again, longest
                if again == OFTEN:
                    break
                again += 1
                self.job = self.submit()
            time.sleep(0.2)
        raise SystemExit(f"No result: {self.cluster.state(self.job)}, see {self.folder}")


FAULTS: dict[str, Callable[[Trial], None]] = {
    "a rank killed": Trial.rank_killed,
    "signal of the time limit": Trial.time_limit,
    "requeued": Trial.requeued,
    "cancelled": Trial.cancelled,
    "a host cut off": Trial.host_cut,
}


def main() -> None:
    """Break `count` runs, in turns of all kinds."""
    if reason := why_not():
        sys.exit(reason)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    kinds = [kind for kind in FAULTS if not sys.argv[2:] or kind in sys.argv[2:]]
    random.seed(int(os.environ.get("SEED", "1")))
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, running_cluster(_made(Path(name) / "slurm"), Path(name)) as cluster:
        folder = Path(name)
        np.save(folder / "t.npy", blobs(36_000, 8, 9))
        began = time.monotonic()
        parallel_mix("hmac", folder / "t.npy", "-o", folder / "whole.h5", *OPTIONS)
        whole = time.monotonic() - began
        print(f"36,000 rows, 8 columns, {whole:.1f} s on two processes\n")
        print("| fault | after, s | submitted again | attempts | longest standstill, s | identical |")
        print("|---|---|---|---|---|---|", flush=True)
        for number in range(count):
            kind = kinds[number % len(kinds)]
            trial = Trial(cluster, _made(folder / f"run{number}"), folder / "t.npy")
            cluster.wait(lambda t=trial: cluster.state(t.job) == "RUNNING", trial.folder)  # type: ignore[misc]
            after = random.uniform(0.5, whole)
            time.sleep(after)
            FAULTS[kind](trial)
            again, silence = trial.finish()
            trial.mend()
            cluster.wait(_idle(cluster), trial.folder, 120)
            try:
                assert_same_result(folder / "whole.h5", trial.output)
                same = "yes"
            except AssertionError:
                same = "NO"
            tally[same] += 1
            attempts = read_status(status_path(trial.output))["attempt"]
            print(f"| {kind} | {after:.1f} | {again} | {attempts} | {silence:.0f} | {same} |", flush=True)
    print(f"\n{count} faults, {tally['yes']} identical results")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _idle(cluster: Cluster) -> Callable[[], bool]:
    """True when all nodes are there again."""
    words = ("sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
    return lambda: len(set(cluster.run(*words).stdout.split())) == 3


if __name__ == "__main__":
    main()
