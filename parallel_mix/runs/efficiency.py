"""How well a run used its workers, and what to ask for next time."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from parallel_mix.backends.usage import Usage

GOOD = 0.75
FEW_TASKS = 4
LONG_ENOUGH = 10.0
MEBI = 2**20


@dataclass(frozen=True)
class Efficiency:
    """The workers' usage over the time from the first task to the last."""

    seconds: float
    workers: Sequence[Usage]
    size: int = 0  # tasks that run at the same time, where workers that died are among those above

    @property
    def threads(self) -> int:
        return self.size or sum(worker.threads for worker in self.workers)

    @property
    def speed_up(self) -> float:
        """How many times longer one compute thread would have taken for the same tasks."""
        return sum(worker.busy for worker in self.workers) / self.seconds if self.seconds > 0 else 1.0

    @property
    def share(self) -> float:
        """The part of the compute threads' time that went into tasks."""
        return min(self.speed_up / self.threads, 1.0) if self.threads else 0.0

    def advice(self) -> str:
        """What would have been better, or that all was well."""
        talking = sum(worker.talking for worker in self.workers) / max(self.seconds * len(self.workers), 1e-9)
        tasks = sum(worker.tasks for worker in self.workers)
        if self.seconds < LONG_ENOUGH:
            return "too short a run to judge by"
        if self.share >= GOOD:
            return "well used"
        if self.threads == 1:
            return "the rest went into reading, writing, and compiling where that was said"
        enough = max(1, math.ceil(self.speed_up / 0.85))
        if tasks < FEW_TASKS * self.threads:
            return f"{tasks} tasks are few for {self.threads} workers: {enough} would do as well"
        if talking > 0.2:
            return f"messages took {talking:.0%} of the time: fewer ranks ({enough} would do), or --approach 2"
        return f"{enough} workers would do nearly as well"

    def summary(self) -> str:
        """One line."""
        if not any(worker.tasks for worker in self.workers):
            return "The workers had nothing to do: so little there was, or so much had been done before."
        peak = max((worker.memory for worker in self.workers), default=0) / MEBI
        did = f"{self.threads} at a time did {self.speed_up:.1f} times what one does ({self.share:.0%} busy)"
        if self.threads == 1:
            did = f"One compute thread was busy for {self.share:.0%} of the time"
        return f"{did}, {peak:,.0f} MiB at most in one process: {self.advice()}."

    def table(self) -> list[str]:
        """A line a worker: busy, waiting, communicating."""
        if not self.workers:
            return []
        head = f"{'worker':<28} {'host':<12} {'tasks':>7} {'busy':>8} {'waiting':>8} {'talking':>8} {'MiB in':>8}"
        lines = [f"{head} {'peak':>8}"]
        for w in self.workers:
            waiting = max(self.seconds * w.threads - w.busy, 0.0)
            lines.append(
                f"{w.worker[:28]:<28} {w.host[:12]:<12} {w.tasks:>7,} {w.busy:>7.1f}s {waiting:>7.1f}s "
                f"{w.talking:>7.1f}s {w.received / MEBI:>8.1f} {w.memory / MEBI:>4,.0f} MiB"
            )
        return lines

    def as_record(self) -> str:
        """For the run record."""
        return json.dumps(
            {"seconds": self.seconds, "size": self.size, "workers": [asdict(worker) for worker in self.workers]}
        )

    @classmethod
    def from_record(cls, text: str) -> Efficiency:
        tree = json.loads(text)
        return cls(float(tree["seconds"]), [Usage(**worker) for worker in tree["workers"]], int(tree["size"]))
