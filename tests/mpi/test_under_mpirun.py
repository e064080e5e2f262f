"""The contract suite and the communicator's own tests, inside a real communicator."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT, environment, mpirun


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_contract_holds_on_ranks(ranks: int) -> None:
    pytest_words = [
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        "--with-mpi",
        "--timeout=60",
        "--timeout-method=thread",
    ]
    words = [sys.executable, "-m", "mpi4py", "-m", "pytest", *pytest_words, "tests/backends"]
    done = subprocess.run(
        [*mpirun(ranks), *words], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
