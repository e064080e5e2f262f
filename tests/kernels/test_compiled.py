"""Compiled code goes by the text of all kernels, and says that it is being compiled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, environment

CALLER = """
import numpy as np
from parallel_mix.kernels.mixtures.few_classes import medoids_of_few
E = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
print(medoids_of_few(E, np.ones(3), np.zeros((3, 3), np.int64), 1.0, np.zeros((1, 1), np.int64))[0])
"""


def run(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    more = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    words = [sys.executable, "-c", CALLER]
    return subprocess.run(words, env=environment(**more), capture_output=True, text=True, cwd=folder, check=True)


def test_a_changed_kernel_is_compiled_anew_into_those_that_call_it(tmp_path: Path) -> None:
    """numba itself looks at the caller's file alone: an upgrade would run what the old callee said."""
    shutil.copytree(ROOT / "parallel_mix", tmp_path / "parallel_mix", ignore=shutil.ignore_patterns("__pycache__"))
    first = run(tmp_path, tmp_path / "cache")
    assert first.stdout.strip() == "1", "the point in the middle"
    assert first.stderr.count("Numerical code is being compiled") == 1
    again = run(tmp_path, tmp_path / "cache")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    callee = tmp_path / "parallel_mix" / "kernels" / "medoids" / "vertex_substitution.py"
    text = callee.read_text()
    assert text.count("if least < 0 or total < least:") == 1
    callee.write_text(text.replace("if least < 0 or total < least:", "if least < 0 or total > least:"))
    assert run(tmp_path, tmp_path / "cache").stdout.strip() == "0", "the farthest, by the changed callee"
