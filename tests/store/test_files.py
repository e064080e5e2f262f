"""Every format gives the same table; what is written is there whole or not at all."""

from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from parallel_mix.errors import InputError
from parallel_mix.progress import Progress
from parallel_mix.store import checkpoints
from parallel_mix.store.atomic import write_json, written_whole
from parallel_mix.store.checkpoints import KeptRun
from parallel_mix.store.hdf5_tables import write_table
from parallel_mix.store.tables import Selection, Table, digest, read_table
from tests.conftest import blobs, parallel_mix

X = blobs(30, 3)
NAMES = [f"ship {k}" for k in range(30)]
Y = np.array(["a", "b"] * 15)
W = np.linspace(0.5, 2.0, 30)


def write(folder: Path, kind: str) -> tuple[Path, Selection]:
    path = folder / f"t.{kind.split()[0]}"
    if kind.startswith("csv"):
        separator = {"csv": ",", "csv semicolon": ";", "csv tab": "\t"}[kind]
        lines = [separator.join(["name", "a", "b", "c", "class", "weight"])]
        lines += [
            separator.join([n, *(repr(float(v)) for v in row), y, repr(float(w))])
            for n, row, y, w in zip(NAMES, X, Y, W, strict=True)
        ]
        path.write_text("# a comment\n" + "\n".join(lines) + "\n")
        return path, Selection(weights="weight", labels="class", row_names="name")
    if kind == "npz":
        np.savez(path, X=X, y=Y, w=W, rows=np.array(NAMES), columns=np.array(["a", "b", "c"]))
    elif kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        columns = {"name": NAMES, **dict(zip("abc", X.T, strict=True)), "class": Y, "weight": W}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path, Selection(weights="weight", labels="class", row_names="name")
    else:
        write_table(path, Table(X, path, w=W, y=Y, rows=NAMES, columns=["a", "b", "c"]))
    return path, Selection()


@pytest.mark.parametrize("kind", ["csv", "csv semicolon", "csv tab", "npz", "parquet", "h5"])
def test_every_format_gives_the_same_table(kind: str, tmp_path: Path) -> None:
    table = read_table(*write(tmp_path, kind))
    assert table.X.tobytes() == X.tobytes()
    assert table.w is not None
    assert table.w.tobytes() == W.tobytes()
    assert table.rows == NAMES
    assert list(table.y) == list(Y)  # type: ignore[arg-type]
    assert table.columns == ["a", "b", "c"]
    assert digest(table) == digest(Table(X, tmp_path, w=W))


@pytest.mark.parametrize(
    "text", ["1,2\n3,4\n", "a,b\n1,2\n3,4\n", "\ufeffa,b\n1,2\n3,4\n", "1 2\n3   4\n", '"1","2"\n3,4\n']
)
def test_csv_as_people_write_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").X, [[1, 2], [3, 4]])


def test_names_of_datasets_can_be_chosen(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["deep/points"] = X
        file["deep/w"] = W
        file["mine"] = W * 2
    table = read_table(tmp_path / "t.h5", Selection("deep/points"))
    assert table.w is not None
    assert table.w.tobytes() == W.tobytes()
    table = read_table(tmp_path / "t.h5", Selection("deep/points", weights="mine"))
    assert table.w is not None
    assert table.w.tobytes() == (W * 2).tobytes()


def test_what_fails_to_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_json(path, {"a": 1})
    with pytest.raises(RuntimeError), written_whole(path) as temporary:
        temporary.write_text("half of it")
        raise RuntimeError
    assert path.read_text().strip() == '{\n "a": 1\n}'
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_state_comes_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {
        "done": 5,
        "x/points": X,
        "flags": X[:, 0] > 0,
        "nothing": np.zeros((0, 3)),
        "odd": np.array([np.nan, np.inf]),
    }
    run = KeptRun(tmp_path / "o.h5", {"command": "c", "levels": 3}, Progress(quiet=True), pause=0)
    run.report(lambda: (0, 100, ""))
    time.sleep(0.2)
    run.report(lambda: (5, 100, ""))
    run.offer(lambda: state)
    again = KeptRun(tmp_path / "o.h5", {"command": "c", "levels": 3}, Progress(quiet=True))
    again.report(lambda: (5, 100, ""))
    assert 5 < again.progress.rate < 25, "the time of the first attempt counts"
    restored = again.restored()
    assert restored is not None
    assert again.attempt == 2
    assert again.reused == 5
    for name, value in state.items():
        assert np.asarray(restored[name]).dtype == np.asarray(value).dtype
        assert np.asarray(restored[name]).tobytes() == np.asarray(value).tobytes()
    with pytest.raises(InputError, match="levels was 3, is 4"):
        KeptRun(tmp_path / "o.h5", {"command": "c", "levels": 4}, Progress(quiet=True))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "LAYOUT", 1_000)
        with pytest.raises(InputError, match=r"layout of checkpoints was .*, is 1000\. Use --fresh"):
            KeptRun(tmp_path / "o.h5", {"command": "c", "levels": 3}, Progress(quiet=True))
    assert (
        KeptRun(tmp_path / "o.h5", {"command": "c", "levels": 4}, Progress(quiet=True), fresh=True).restored() is None
    )


def test_without_its_data_a_result_finds_the_input_or_says_it_changed(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", X)
    run = ["hmac", tmp_path / "t.npy", "-o", tmp_path / "r.h5", "--levels", 4, "--no-data", "--quiet"]
    assert parallel_mix(*run).returncode == 0
    with h5py.File(tmp_path / "r.h5") as file:
        assert file["data/X"].shape == (0, 3)
    words = ["predict", tmp_path / "r.h5", tmp_path / "t.npy", "-o", tmp_path / "p.csv", "--quiet"]
    assert parallel_mix(*words).returncode == 0
    np.save(tmp_path / "t.npy", X + 1)
    changed = parallel_mix(*words, "--force")
    assert changed.returncode == 2
    assert "has changed since" in changed.stderr
    (tmp_path / "t.npy").unlink()
    np.save(tmp_path / "u.npy", X)
    gone = parallel_mix("predict", tmp_path / "r.h5", tmp_path / "u.npy", "-o", tmp_path / "p.csv", "--force")
    assert gone.returncode == 2
    assert "is not there any more" in gone.stderr


def test_convert_export_and_info(tmp_path: Path) -> None:
    path, _ = write(tmp_path, "csv")
    choice = ["--row-names", "name", "--labels", "class", "--weights", "weight"]
    assert parallel_mix("convert", path, "-o", tmp_path / "t.h5", *choice).returncode == 0
    for source, more in ((path, choice), (tmp_path / "t.h5", [])):
        out = tmp_path / f"{source.suffix[1:]}.run.h5"
        assert parallel_mix("hmac", source, "-o", out, "--levels", 5, *more).returncode == 0
    one, other = ((tmp_path / f"{kind}.run.h5") for kind in ("csv", "h5"))
    with h5py.File(one) as a, h5py.File(other) as b:
        assert (a["hmac/labels"][()] == b["hmac/labels"][()]).all()
        assert sorted(a["data"]) == sorted(b["data"]) == ["X", "columns", "rows", "w", "y"]
    assert parallel_mix("export", one, "-o", tmp_path / "l.csv").returncode == 0
    lines = (tmp_path / "l.csv").read_text().splitlines()
    assert lines[0] == "row,label"
    assert lines[1].startswith("ship 0,")
    assert len(lines) == 31
    assert parallel_mix("export", one, "-o", tmp_path / "all.csv", "--level", "all").returncode == 0
    assert (tmp_path / "all.csv").read_text().splitlines()[0] == "row,level_0,level_1,level_2,level_3,level_4"
    said = parallel_mix("info", one).stdout
    assert "30 rows, 3 columns; 5 nested levels by approach 2" in said
    assert "attempt 1" in said
    assert "a table of 30 rows and 3 columns" in parallel_mix("info", tmp_path / "t.h5").stdout


def test_plots_are_written_and_are_the_same_each_time(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", blobs(300, 3))
    assert parallel_mix("hmac", tmp_path / "t.npy", "-o", tmp_path / "r.h5").returncode == 0
    for folder in ("a", "b"):
        done = parallel_mix("plot", tmp_path / "r.h5", "-o", tmp_path / folder, "--level", "7")
        assert done.returncode == 0, done.stderr
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    stems = {
        "tree",
        "clusters",
        *(f"{kind}-level-{k:02d}" for kind in ("scatter", "pairs", "densities") for k in (7,)),
    }
    assert {name.split(".")[0] for name in names} == stems
    assert {name.split(".")[1] for name in names} == {"png", "svg"}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert "There is no level 99" in parallel_mix("plot", tmp_path / "r.h5", "-o", tmp_path / "c", "--level", 99).stderr
    bad = parallel_mix("plot", tmp_path / "r.h5", "-o", tmp_path / "c", "--columns", "1,9")
    assert bad.returncode == 2
    assert "takes two of" in bad.stderr
    assert parallel_mix("plot", tmp_path / "t.npy", "-o", tmp_path / "c").returncode == 2


def test_some_columns_of_each_format(tmp_path: Path) -> None:
    """csv and parquet may have text in the others; arrays count their columns from 1."""
    lines = ["name,a,remark,b,kind", "one,1,good,2,x", 'two,3,"bad, very",4,y', "three,5,,6,x"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 3.0, 5.0], "remark": ["good", "", "x"], "b": [2.0, 4.0, 6.0], "kind": ["x", "y", "x"]}
    pq.write_table(pytest.importorskip("pyarrow").table(columns), tmp_path / "t.parquet")
    array = np.array([[1.0, 9.0, 2.0], [3.0, 9.0, 4.0], [5.0, 9.0, 6.0]])
    np.save(tmp_path / "t.npy", array)
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["X"], file["columns"] = array, ["a", "c", "b"]
    for name, wanted in {"t.csv": "b,a", "t.parquet": "b,a", "t.npy": "3,1", "t.h5": "b,a"}.items():
        selection = Selection(
            labels="kind" if name in ("t.csv", "t.parquet") else None, columns=tuple(wanted.split(","))
        )
        table = read_table(tmp_path / name, selection)
        assert table.X.tolist() == [[2.0, 1.0], [4.0, 3.0], [6.0, 5.0]], name
        assert table.columns == wanted.split(",")
        with pytest.raises(InputError, match="has no column 'z'; it has"):
            read_table(tmp_path / name, Selection(columns=("a" if name != "t.npy" else "1", "z")))
    done = parallel_mix("hmac", tmp_path / "t.csv", "-o", tmp_path / "r.h5", "--columns", "a,b", "--row-names", "name")
    assert done.returncode == 0, done.stderr
    words = ["predict", tmp_path / "r.h5", tmp_path / "t.parquet", "-o", tmp_path / "p.csv"]
    assert parallel_mix(*words, "--columns", "a,b").returncode == 0
    done = parallel_mix(*words, "--columns", "b,a", "--force")
    assert "Column 1 of" in done.stderr
