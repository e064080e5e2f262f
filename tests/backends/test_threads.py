"""The compute threads of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from parallel_mix.backends.threads import ComputeThreads

STORM = """
import os, time
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    os.kill({process}, {signum})
    time.sleep(2e-4)
"""


def test_waiting_ends_in_time_under_a_storm_of_signals() -> None:
    """As of SLURM's signal at the end of the time limit: one that came in the wrong microsecond made a rank wait on."""
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    threads = ComputeThreads(1, "here")
    script = STORM.format(seconds=2, process=os.getpid(), signum=int(signal.SIGUSR2))
    storm = subprocess.Popen([sys.executable, "-c", script])
    try:
        began = time.monotonic()
        while storm.poll() is None:
            assert threads.results(timeout=4e-4) == []
        assert time.monotonic() - began < 30
    finally:
        storm.wait()
        signal.signal(signal.SIGUSR2, before)
        threads.close()
