"""Imports point only down, and each outside library is imported in its own room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = {
    "kernels": {"kernels"},
    "models": {"models", "kernels", "backends"},
    "backends": {"backends"},
    "store": {"store"},
    "plots": {"plots", "store", "evaluate", "models", "kernels"},
    "evaluate": {"evaluate", "models", "kernels", "backends"},
    "runs": {"runs", "backends", "models", "store"},
    "cluster": {"cluster", "backends", "store"},
    "families": {"families", "runs", "plots", "evaluate", "backends", "models", "store", "kernels"},
}
EVERYWHERE = {"compile_notice", "errors", "extras", "progress", "config", "registry", "__version__"}
ONLY_IN = {
    "mpi4py": "backends",
    "dask": "backends",
    "dask_jobqueue": "backends",
    "distributed": "backends",
    "h5py": "store",
    "matplotlib": "plots",
    "numba": "kernels",
}
FILES = sorted([*(ROOT / "parallel_mix").rglob("*.py"), *(ROOT / "jobs").glob("*.py")])


def imported(path: Path) -> list[str]:
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append(node.module or "")
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    room = parts[1] if parts[0] == "parallel_mix" and len(parts) > 2 else ""
    for name in imported(path):
        words = name.split(".")
        if words[0] == "parallel_mix" and len(words) > 1 and room:
            assert words[1] in ROOMS[room] | EVERYWHERE, f"{room} imports {name}"
        owner = ONLY_IN.get(words[0])
        assert owner is None or owner == room, f"{name} outside {owner}/"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_models_know_of_backends_only_the_interface_and_the_default(path: Path) -> None:
    if "models" in path.parts:
        used = {name for name in imported(path) if name.startswith("parallel_mix.backends")}
        assert used <= {"parallel_mix.backends.base", "parallel_mix.backends.serial"}


@pytest.mark.parametrize("path", sorted((ROOT / "jobs").glob("[a-z]*.py")), ids=lambda path: path.name)
def test_a_job_is_small_and_named_by_two_words(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 80
    assert "_" in path.stem


def test_no_file_unpickles() -> None:
    for path in FILES:
        names = imported(path)
        assert not {"pickle", "joblib", "cloudpickle", "dill"} & {name.split(".")[0] for name in names}, path
        assert "allow_pickle=True" not in path.read_text()
