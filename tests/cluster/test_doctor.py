"""The doctor: well where all is well, and a word of advice for each thing that is broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parallel_mix.cluster import doctor
from parallel_mix.cluster.doctor import findings_of_process
from tests.conftest import BIN, parallel_mix


def on_path(first: Path | None = None) -> str:
    return ":".join(map(str, [*([first] if first else []), BIN, os.environ["PATH"]]))


def test_a_healthy_set_up(tmp_path: Path) -> None:
    done = parallel_mix("doctor", tmp_path, PATH=on_path())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("All is well.")
    for what in ("packages", "MPI library", "mpirun", "machine", "BLAS", "folder", "HDF5 locking", "parallel writes"):
        assert f"ok    {what}:" in done.stdout
    assert not list(tmp_path.iterdir())


def test_ranks_and_links(tmp_path: Path) -> None:
    done = parallel_mix("doctor", tmp_path, backend="mpi2", PATH=on_path())
    assert "ok    ranks: 2:" in done.stdout
    assert "ok    links: latency" in done.stdout
    assert done.stdout.count("packages") == 1


def test_what_is_broken_is_named(tmp_path: Path) -> None:
    other = tmp_path / "mpirun"
    other.write_text("#!/bin/sh\necho HYDRA build details: Version: 4.3\n")
    other.chmod(0o755)
    done = parallel_mix("doctor", tmp_path / "nothing", PATH=on_path(tmp_path))
    assert done.returncode == 1
    assert "MEND  folder:" in done.stdout
    assert "findings are to be mended" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "finding"),
    [
        ("mpi_library", "", "MPI library"),
        ("mpi_library", "MPICH Version: 4.3", "mpirun"),
        ("locking", False, "HDF5 locking"),
        ("parallel_writes", False, "parallel writes"),
    ],
)
def test_each_fault_has_its_finding(
    name: str, value: object, finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, name, lambda *_: value)
    monkeypatch.setenv("PATH", on_path())
    wrong = [check.what for check in findings_of_process(tmp_path) if not check.well]
    assert wrong == [finding]


def test_a_folder_that_cannot_be_written() -> None:
    done = parallel_mix("doctor", "/proc", PATH=on_path())
    assert "MEND  folder: /proc cannot be written" in done.stdout
