"""What is said of how a run used its workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallel_mix.backends.usage import Usage
from parallel_mix.runs.efficiency import Efficiency
from tests.conftest import parallel_mix


def run_of(busy: list[float], seconds: float = 100.0, tasks: int = 100, talking: float = 0.0) -> Efficiency:
    workers = [Usage(f"rank {k}", "h", 1, tasks, b, talking, 2**20, 50 * 2**20) for k, b in enumerate(busy)]
    return Efficiency(seconds, workers)


@pytest.mark.parametrize(
    ("efficiency", "advice"),
    [
        (run_of([90, 95]), "well used"),
        (run_of([50, 10, 10, 10]), "1 workers would do nearly as well"),
        (run_of([60, 50, 40, 20], tasks=2), "8 tasks are few for 4 workers: 2 would do as well"),
        (run_of([40, 40, 40, 40], talking=40.0), "messages took 40% of the time"),
        (run_of([2, 2], seconds=3.0), "too short a run to judge by"),
    ],
)
def test_advice(efficiency: Efficiency, advice: str) -> None:
    assert efficiency.advice().startswith(advice)


def test_figures_and_the_way_through_the_record() -> None:
    efficiency = Efficiency.from_record(run_of([90, 70]).as_record())
    assert efficiency.speed_up == pytest.approx(1.6)
    assert efficiency.share == pytest.approx(0.8)
    assert "rank 1" in efficiency.table()[2]
    assert "30.0s" in efficiency.table()[2], "waiting"
    assert "50 MiB at most" in efficiency.summary()


@pytest.mark.parametrize("backend", ["serial1", "serial2", "mpi2", "dask2"])
def test_every_backend_says_what_its_workers_did(backend: str, table: Path, tmp_path: Path) -> None:
    assert parallel_mix("hmac", table, "-o", tmp_path / "o.h5", backend=backend).returncode == 0
    lines = parallel_mix("info", tmp_path / "o.h5").stdout.splitlines()
    head = next(k for k, text in enumerate(lines) if text.startswith("worker"))
    assert 1 <= len(lines[head + 1 :]) <= 2
    assert all("MiB" in text for text in lines[head + 1 :])
