"""How true the time left is that a run of HMAC says: the first word after a tenth of the run, and after a half.

python benchmarks/hmac_forecast.py [W1 W2 W3 W4 100000x2 20000x5 ...]      NxD: rows drawn as theirs

A run is the fit alone (20 nested levels, approach 2, all cores); what it would have said at each report is kept, and
compared with when it really ended.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hmac_speed import workloads
from large_data import drawn

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.density import field_climb, modal_em, tree_climb
from parallel_mix.models.core.run import HowFar, QuietRun
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacSettings
from parallel_mix.progress import Progress


class Clocked(QuietRun):
    """Notes at each report when the run would end by what `Progress` would say."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.progress = Progress(quiet=True)
        self.notes: list[tuple[float, float]] = []

    def restored(self) -> None:
        self.progress.begin()

    def report(self, how_far: Callable[[], HowFar]) -> None:
        done, total, text = how_far()
        self.progress.show(done, total, text)
        if self.progress.rate > 0:
            now = time.perf_counter() - self.began
            self.notes.append((now, now + (total - done) / self.progress.rate))


def main() -> None:
    """Run what is asked for."""
    words = sys.argv[1:] or ["W1", "W2", "W3", "W4", "20000x5", "100000x2"]
    for kernels in (modal_em, tree_climb, field_climb):
        kernels.warm_up()
    print("| data | took, s | said after a tenth, s | said / true | said after a half, s | said / true |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = workloads(Path(name)) if any(word.startswith("W") for word in words) else Path(name)
        for word in words:
            X = np.load(folder / f"{word}.npz")["X"] if word.startswith("W") else drawn(*map(int, word.split("x")))
            with SerialBackend() as backend:
                run = Clocked()
                fit_hmac(HeldRows(X), HmacSettings(), backend, run)
                took = time.perf_counter() - run.began
            said = []
            for share in (0.1, 0.5):
                note = next((note for note in run.notes if note[0] >= share * took), None)
                if note is None:
                    said.append("it ended before a word | -")
                    continue
                at, end = note
                said.append(f"{end:.2f} (at {at:.2f}) | {end / took:.2f}")
            print(f"| {word} | {took:.2f} | {' | '.join(said)} |", flush=True)


if __name__ == "__main__":
    main()
