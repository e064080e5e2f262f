"""Checkpoints and live status of one run, both beside its output.

`OUT.checkpoint` is an HDF5 file of named arrays, written whole or not at all; its identity is data digest, command and
the options that decide the answer. `OUT.progress.json` says how far the run is; nobody needs the HDF5 for that.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from parallel_mix.errors import InputError, SupersededError
from parallel_mix.progress import Progress
from parallel_mix.store.atomic import write_json
from parallel_mix.store.hdf5_tables import hdf5_written_whole, opened

A_WHILE = 60.0
"""Seconds without a heartbeat after which a run whose status says that it runs counts as dead."""
LIKELY_ALIVE = 8.0
"""Seconds since its last heartbeat for which such a run is likely to be alive."""
ASK_EVERY = 0.1
"""Seconds, at least, from one question to the model how far it is to the next."""
LAYOUT = 13
"""The number of the layout of checkpoints' states: raised with any change, so that an older one is refused in words."""
COST_SHARE = 0.01
"""A checkpoint is written when the time since the last one is 1 / COST_SHARE times what that one cost."""


def checkpoint_path(output: Path) -> Path:
    """The path of the checkpoint of the run that writes `output`."""
    return output.with_name(output.name + ".checkpoint")


def status_path(output: Path) -> Path:
    """The path of the status, in JSON, of the run that writes `output`."""
    return output.with_name(output.name + ".progress.json")


def read_status(path: Path) -> dict[str, Any]:
    """The status of a run by its names; empty where there is no file, or none that can be understood."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        status = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(status, dict):
            return {key: value for key, value in status.items() if _makes_sense(key, value)}
    return {}


def _makes_sense(key: str, value: Any) -> bool:
    """Whether a value of a status is of the type that belongs to its name."""
    if key in ("attempt", "launch", "process"):
        return type(value) is int and 0 <= value < 2**31
    if key in ("done", "total", "rate", "seconds_left", "seconds", "heartbeat"):
        return value is None or (type(value) in (int, float) and abs(value) < 1e300)
    return value is None or isinstance(value, str)


def note_queued(output: Path, job: str) -> None:
    """Write the status of a run that waits in a queue as this job, unless the run is under way."""
    path = status_path(output)
    before = read_status(path)
    if before.get("state") == "running" and time.time() - path.stat().st_mtime < A_WHILE:
        return
    attempt = 0 if before.get("state", "done") == "done" else int(before.get("attempt", 0))
    kept = {key: before.get(key, 0) for key in ("done", "total", "launch")}
    waiting = {
        "state": "queued",
        "message": f"waits as job {job}",
        "job": job,
        "attempt": attempt,
        "output": str(output),
    }
    with contextlib.suppress(InputError):  # the job is submitted, whatever becomes of this
        write_json(path, {**kept, **waiting})


class KeptRun:
    """A run with files behind it: what a model offers goes into a checkpoint, what it reports into a status file."""

    def __init__(
        self,
        output: Path,
        identity: dict[str, Any],
        progress: Progress,
        fresh: bool = False,
        pause: float = 2.0,
    ) -> None:
        self.pause = pause
        self.output = output
        plain = {key: value.value if isinstance(value, Fingerprint) else value for key, value in identity.items()}
        self.identity = {key: as_plain(value) for key, value in plain.items()} | {"layout of checkpoints": LAYOUT}
        self.sentences = {key: value.differs for key, value in identity.items() if isinstance(value, Fingerprint)}
        self.progress = progress
        self.checkpoint = checkpoint_path(output)
        self.status = status_path(output)
        before = read_status(self.status)
        self.displaced = self._under_way(before)
        self.attempt = 1 if before.get("state", "done") == "done" else int(before.get("attempt", 0)) + 1
        self.launch = int(before.get("launch", 0)) + 1
        if fresh:
            self.checkpoint.unlink(missing_ok=True)
        self._state: dict[str, Any] | None = None if fresh else self._load()
        self.reused = float(self._state["done"]) if self._state else 0.0
        self._saved_at = time.monotonic()
        self._cost = 0.0
        self._asked_at = self._reported_at = 0.0
        self._how_far: Callable[[], tuple[float, float, str]] = lambda: (0.0, 0.0, "started")
        self._latest: Callable[[], dict[str, Any]] | None = None
        self._started = time.time()
        self.checkpoints = 0
        self.seconds = 0.0
        self.before_saving: Callable[[], None] = lambda: None
        self.write_status("running", first=True)

    def _under_way(self, before: dict[str, Any]) -> str:
        """The host and process where another attempt of this run seems to be at work, or ''."""
        alive = before.get("state") == "running" and time.time() - self.status.stat().st_mtime < LIKELY_ALIVE
        if before.get("host") == socket.gethostname() and not Path(f"/proc/{before.get('process')}").exists():
            alive = False
        return f"{before.get('host')} (process {before.get('process')})" if alive else ""

    # what a model sees

    def restored(self) -> dict[str, Any] | None:
        """The state in the checkpoint of an earlier attempt, or None; progress is counted from here on."""
        self.progress.begin()
        return self._state

    def offer(self, state: Callable[[], dict[str, Any]]) -> None:
        """Keep a state in mind, and write it where the last checkpoint is old enough for what checkpoints cost."""
        self._latest = state
        if time.monotonic() - self._saved_at >= max(self.pause, self._cost / COST_SHARE):
            self.save()

    def report(self, how_far: Callable[[], tuple[float, float, str]]) -> None:
        """Show how far the run is, and write it into the status once a second."""
        self._how_far = how_far
        now = time.monotonic()
        if now - self._asked_at < ASK_EVERY:
            return
        self._asked_at = now
        self.progress.show(*how_far())
        if now - self._reported_at >= 1.0:
            self.write_status("running")

    # what a job does

    def heartbeat(self) -> None:
        """Write into the status that the run is alive, while a long task lasts."""
        if time.monotonic() - self._reported_at >= 5.0:
            self.write_status("running")

    def save(self) -> None:
        """Write the state that was offered last into the checkpoint."""
        if self._latest is None:
            return
        self.yield_to_later_attempt()
        self.before_saving()
        began = time.monotonic()
        state = self._latest()
        with hdf5_written_whole(self.checkpoint, "checkpoint") as file:
            file.attrs["identity"] = json.dumps(self.identity, sort_keys=True)
            file.attrs["attempt"] = self.attempt
            file.attrs["elapsed"] = self.progress.elapsed
            for name, value in state.items():
                file[name] = value
        self._saved_at = time.monotonic()
        self._cost = self._saved_at - began
        self.checkpoints += 1
        self.seconds += self._cost

    def forget(self) -> None:
        """Drop the checkpoint, as the unfinished file that it belongs to is gone: all is to be done again."""
        self._state, self.reused = None, 0.0
        self.checkpoint.unlink(missing_ok=True)

    def finish(self, how: str = "finished") -> None:
        """End the run: its result is written, so the checkpoint goes and the status says `done`."""
        self.write_status("done", how)
        self.checkpoint.unlink(missing_ok=True)

    def write_status(self, state: str, text: str = "", first: bool = False) -> None:
        """Write how far the run is, for people and scripts, unless a later attempt has taken its place."""
        if not first:
            self.yield_to_later_attempt()
        self._reported_at = time.monotonic()
        elapsed = time.time() - self._started
        done, total, doing = self._how_far()
        rate = self.progress.rate
        left = (total - done) / rate if rate > 0 else None
        write_json(
            self.status,
            {
                "state": state,
                "message": text or doing,
                "done": done,
                "total": total,
                "rate": rate,
                "seconds_left": 0.0 if state == "done" else left,
                "seconds": round(elapsed, 3),
                "heartbeat": time.time(),
                "attempt": self.attempt,
                "launch": self.launch,
                "host": socket.gethostname(),
                "process": os.getpid(),
                "output": str(self.output),
                "job": os.environ.get("SLURM_JOB_ID"),
            },
        )

    def yield_to_later_attempt(self) -> None:
        """End this attempt where a later one has begun: it must not write over its successor's checkpoint."""
        other = read_status(self.status)
        if int(other.get("launch", 0)) > self.launch:
            raise SupersededError(
                f"Attempt {other.get('attempt')} of this run is under way on {other.get('host')}: this one, attempt "
                f"{self.attempt}, ends here."
            )

    def _load(self) -> dict[str, Any] | None:
        if not self.checkpoint.exists():
            return None
        with opened(self.checkpoint, mend="use --fresh to begin anew") as file:
            try:
                kept = json.loads(file.attrs["identity"])
            except (KeyError, ValueError) as error:
                raise InputError(f"{self.checkpoint} is no checkpoint of ours. Use --fresh to begin anew.") from error
            keys = sorted({*kept, *self.identity})
            differences = [
                difference(key, kept.get(key), self.identity.get(key), self.sentences)
                for key in keys
                if kept.get(key) != self.identity.get(key)
            ]
            differences = list(filter(None, differences))
            if kept != self.identity:
                words = "; ".join(differences) or "it differs"
                raise InputError(
                    f"{self.checkpoint} belongs to another run: {words}. Use --fresh to begin anew, "
                    "or another output name."
                )
            self.progress.earlier = float(file.attrs.get("elapsed", 0.0))
            state: dict[str, Any] = {}
            file.visititems(
                lambda name, item: state.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
            return state


class Fingerprint(NamedTuple):
    """A part of a run's identity that says nothing to a person, and the sentence to say where it differs."""

    value: Any
    differs: str  # "": that follows from something else


def difference(key: str, was: Any, now: Any, sentences: Mapping[str, str]) -> str:
    """How a run differs from the one that a checkpoint belongs to; '' where that follows from something else."""
    if key in sentences:
        return "" if None in (was, now) else sentences[key]
    if now is None:
        return f"{key} was {was}"
    return f"{key} is {now}" if was is None else f"{key} was {was}, is {now}"


class WatchedRun(KeptRun):
    """A run that goes on from a checkpoint and writes nothing: for one task of it by itself (`--only-task`)."""

    def save(self) -> None:
        """Write no checkpoint."""

    def write_status(self, state: str, text: str = "", first: bool = False) -> None:
        """Write no status."""


def as_plain(value: Any) -> Any:
    """The value with NumPy's numbers as Python's and tuples as lists, as JSON knows them."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [as_plain(v) for v in value]
    return value
