"""Batch templates: sound bash, one launch line, nothing of the user's run through a shell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "slurm").glob("*.sbatch"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_is_sound(path: Path) -> None:
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    text = path.read_text()
    assert "set -euo pipefail" in text
    assert text.count("srun ") == 1 + text.count("under srun ")
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(path)], check=True)


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    """What srun would be given, from a stand-in that writes its words down."""
    (tmp_path / "srun").write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@" > "$HERE/words"\n')
    (tmp_path / "srun").chmod(0o755)
    name = 'a b; touch "$HERE/hacked" $(touch $HERE/hacked) `touch $HERE/hacked`.h5'
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HERE": str(tmp_path)}
    subprocess.run(
        ["bash", str(ROOT / "slurm" / "hmac.sbatch"), name, "out.h5", "--levels", "3"], env=environment, check=True
    )
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["--mpi=pmix", "parallel-mix", "hmac", name, "-o", "out.h5", "--levels", "3"]
    assert not (tmp_path / "hacked").exists()
