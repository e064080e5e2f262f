"""`parallel-mix plot` of distances and of neighbours."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.families.distances.pages import in_order
from tests.conftest import blobs, parallel_mix

KINDS = {
    "square": ([], {"matrix", "distances", "map"}),
    "new and old": (["old.h5"], {"matrix", "distances"}),
    "neighbours": (["--knn", "4"], {"neighbours", "agreement"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures")
    for name, n in (("new.h5", 1100), ("old.h5", 40)):
        with h5py.File(path / name, "w") as file:
            file["X"], file["y"] = blobs(n, 3), [f"class {k % 3}" for k in range(n)]
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_pictures(kind: str, folder: Path, tmp_path: Path) -> None:
    words, names = KINDS[kind]
    words = [str(folder / word) if word.endswith(".h5") else word for word in words]
    assert parallel_mix("distances", folder / "new.h5", *words, "-o", tmp_path / "D.h5").returncode == 0
    done = parallel_mix("plot", tmp_path / "D.h5", "-o", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    pictures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert pictures == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}


def test_what_has_no_levels_takes_no_level(folder: Path, tmp_path: Path) -> None:
    assert parallel_mix("distances", folder / "old.h5", "-o", tmp_path / "D.h5").returncode == 0
    done = parallel_mix("plot", tmp_path / "D.h5", "-o", tmp_path / "figures", "--level", "3")
    assert done.returncode == 2
    assert "of the kind 'distances': it has no --level" in done.stderr
    assert not (tmp_path / "figures").exists()


def test_rows_come_class_by_class_and_near_ones_together() -> None:
    x = np.array([0.0, 9.0, 0.1, 9.1, 5.0])
    D = np.abs(x[:, None] - x)
    assert sorted(in_order(D, None)) == [0, 1, 2, 3, 4]
    place = np.argsort(in_order(D, None))
    assert abs(place[0] - place[2]) == abs(place[1] - place[3]) == 1
    y = np.array(["b", "a", "a", "b", "a"])
    assert list(y[in_order(D, y)]) == ["a", "a", "a", "b", "b"]
