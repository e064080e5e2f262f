"""A distance that takes its time, for runs that are to be killed."""

import time

import numpy as np


def distance(x: np.ndarray, y: np.ndarray) -> float:
    """The sum of differences, half a millisecond later."""
    until = time.perf_counter() + 5e-4
    while time.perf_counter() < until:
        pass
    return float(np.abs(x - y).sum())
