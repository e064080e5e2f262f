"""Runs that last as long as a test needs, and leave the processor alone: distances by a function that sleeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.conftest import blobs

MODULE = """
import time
from pathlib import Path
HERE = Path(__file__).parent
def taxi(x, y):
    if (HERE / "slowly").exists():
        time.sleep(0.01)
    return float(abs(x - y).sum())
"""
SECONDS_A_PAIR = 0.01


def slow_distances(folder: Path, seconds: float) -> list[str]:
    """The command, without its output, of a run in the folder that takes so many seconds of one worker.

    Once the file `slowly` is gone from the folder, it takes no time.
    """
    (folder / "sleeps.py").write_text(MODULE)
    (folder / "slowly").touch()
    np.save(folder / "rows.npy", blobs(round((seconds / SECONDS_A_PAIR) ** 0.5), 3, 9))
    return ["distances", "rows.npy", "--metric", "sleeps:taxi", "--checkpoint-every", "0"]
