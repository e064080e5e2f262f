"""The status of runs, by their status files and the queue; an HDF5 file in use is never read."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parallel_mix.cluster import slurm
from parallel_mix.progress import clock
from parallel_mix.store.checkpoints import read_status, status_path

SILENT = 60.0
"""Seconds without a heartbeat after which a run counts as silent."""
ENDING = ".progress.json"


def find(paths: Sequence[Path]) -> list[Path]:
    """The status files of these outputs, or of all runs in the folders among them."""
    statuses: list[Path] = []
    for path in paths:
        if path.is_dir():
            statuses += sorted(path.glob(f"*{ENDING}"), key=lambda p: p.stat().st_mtime)
        else:
            statuses.append(path if path.name.endswith(ENDING) else status_path(path))
    return statuses


def gather(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The status of each run with its state in the queue; a run without a status file is `unknown`."""
    runs = []
    for path in paths:
        status = read_status(path)
        run = {"run": str(path)[: -len(ENDING)], "state": "unknown", **status}
        if status:
            run["silent"] = max(0.0, _now(path.parent) - path.stat().st_mtime)
        runs.append(run)
    queue = slurm.queue([str(run["job"]) for run in runs if run.get("job")])
    for run in runs:
        state, reason = queue.get(str(run.get("job")), ("", ""))
        run["queue"] = f"{state}{f' ({reason})' if reason not in ('', 'None') else ''}"
        _correct(run, state)
    return runs


def _now(folder: Path) -> float:
    """The time as the folder's file system has it: a node's clock may be wrong."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


def _correct(run: dict[str, Any], queue: str) -> None:
    """Correct the state of a run that was killed, and so could not say so."""
    over = queue in ("CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
    if run["state"] == "queued" and (over or not queue):
        run["state"] = queue.lower() or "gone"
        run["message"] = (
            "ended before it began; its log says why" if over else "the queue does not know its job any more"
        )
    elif run["state"] in ("running", "stopping") and over:
        run["state"] = "killed"
        run["message"] = f"SLURM says {queue}; {_what_next(run)}"
    elif run["state"] in ("running", "stopping") and _dead_here(run):
        run["state"] = "killed"
        run["message"] = f"its process {run['process']} is no more; {_what_next(run)}"
    elif (
        run["state"] in ("running", "stopping")
        and run.get("silent", 0.0) > SILENT
        and queue not in ("RUNNING", "PENDING")
    ):
        run["state"] = "silent"
        run["message"] = (
            f"no sign of life for {clock(run['silent'])}; last: {run.get('message')}; if it is dead, {_what_next(run)}"
        )


def _what_next(run: dict[str, Any]) -> str:
    if Path(f"{run['run']}.checkpoint").exists():
        return "the same command goes on from its checkpoint"
    return "it had kept no checkpoint yet: the same command begins anew"


def _dead_here(run: dict[str, Any]) -> bool:
    """Whether the run's process was on this host and is not there any more."""
    return run.get("host") == socket.gethostname() and bool(run.get("process")) and not _alive(int(run["process"]))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def line(run: dict[str, Any]) -> str:
    """A line on how far one run is."""
    if run["state"] == "unknown":
        return f"{run['run']}: no run has begun here"
    done, total, left = run.get("done") or 0, run.get("total") or 0, run.get("seconds_left")
    words = [run["state"]]
    if total and run["state"] != "done":
        words.append(f"{min(done / total, 1.0):.0%}")
    if left and run["state"] == "running":
        words.append(f"{clock(left)} left")
    if run["state"] == "done":
        words.append(f"in {clock(run.get('seconds', 0.0))}")
    words.append(f"attempt {run.get('attempt', 1)}" if run.get("attempt") else "")
    if run.get("job"):
        words.append(f"job {run['job']}{' ' + run['queue'] if run['queue'] else ''}")
    words.append(str(run.get("message") or "") if run["state"] != "done" else "")
    return f"{run['run']}: " + ", ".join(word for word in words if word)
