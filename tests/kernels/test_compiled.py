"""Compiled code goes by the text of all kernels, and says that it is being compiled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, environment

MODULE = """
from parallel_mix.kernels.compiled import compiled
{more}

@compiled
def {name}(value: float) -> float:
    return {answer}
"""

SUMMED = """
import numpy as np
from parallel_mix.kernels.density.leaves import leaves_of, room_for_sums, sums_from_leaves, tree_of
X = np.random.default_rng(1).normal(size=(900, 2))
tree = tree_of(X, np.zeros(900))
leaves = leaves_of(tree, 0.3)
sums = sums_from_leaves(leaves, tree.rows / 0.3, np.arange(32), np.zeros(900), 1e-6, room_for_sums(leaves, 32))
print(sums.tobytes().hex())
"""


def run(folder: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    more = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    words = [sys.executable, "-c", "from parallel_mix.kernels.medoids.caller import asked; print(asked(3.0))"]
    return subprocess.run(words, env=environment(**more), capture_output=True, text=True, cwd=folder, check=True)


def test_a_changed_kernel_is_compiled_anew_into_those_that_call_it(tmp_path: Path) -> None:
    """numba itself looks at the caller's file alone: an upgrade would run what the old callee said."""
    shutil.copytree(ROOT / "parallel_mix", tmp_path / "parallel_mix", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "parallel_mix" / "kernels"
    imported = "from parallel_mix.kernels.similarity.callee import callee\n"
    (kernels / "medoids" / "caller.py").write_text(MODULE.format(more=imported, name="asked", answer="callee(value)"))
    callee = kernels / "similarity" / "callee.py"
    callee.write_text(MODULE.format(more="", name="callee", answer="value + 1.0"))
    first = run(tmp_path, tmp_path / "cache")
    assert first.stdout.strip() == "4.0"
    assert first.stderr.count("Numerical code is being compiled") == 1
    again = run(tmp_path, tmp_path / "cache")
    assert (again.stdout, again.stderr) == (first.stdout, "")
    callee.write_text(MODULE.format(more="", name="callee", answer="value - 1.0"))
    assert run(tmp_path, tmp_path / "cache").stdout.strip() == "2.0", "by the changed callee"


def test_the_first_run_has_the_bits_of_those_that_find_the_code_compiled(tmp_path: Path) -> None:
    """Sums are reordered for speed. Were a callee not part of its caller, whose copy of it runs would depend on what
    else is loaded, and these differ in their last bits.
    """
    words = [sys.executable, "-c", SUMMED]
    more = environment(NUMBA_CACHE_DIR=str(tmp_path))
    outputs = [subprocess.run(words, env=more, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert outputs[0] == outputs[1] != ""
