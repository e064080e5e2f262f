"""Which columns are data: an index is none, words choose by name, number and range."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from parallel_mix.errors import InputError
from parallel_mix.store.hdf5_tables import write_table
from parallel_mix.store.tables import Selection, Table, read_table

X = np.random.default_rng(0).normal(size=(6, 4)).round(3)
NAMES = ["alcohol", "malic", "ash", "hue"]


def written(folder: Path, kind: str, named: bool = True) -> Path:
    """X in a file of some format."""
    path = folder / f"t.{kind}"
    if kind == "csv":
        np.savetxt(path, X, delimiter=",", fmt="%.3f", header=",".join(NAMES) if named else "", comments="")
    elif kind == "parquet":
        pa.parquet.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path)
    elif kind == "npy":
        np.save(path, X)
    elif kind == "npz":
        np.savez(path, X=X, **({"columns": np.array(NAMES)} if named else {}))
    else:
        write_table(path, Table(X, path, columns=NAMES if named else None))
    return path


CHOICES = [
    (["2", "3", "4"], [], [1, 2, 3]),
    (["4", "1"], [], [3, 0]),
    (["2", "1", "4", "3"], [], [1, 0, 3, 2]),
    (["2..4"], [], [1, 2, 3]),
    (["1", "3..4"], [], [0, 2, 3]),
    ([], ["2"], [0, 2, 3]),
    ([], ["1..2", "4"], [2]),
    (["1..3"], ["2"], [0, 2]),
]
BY_NAME = [(["hue", "ash"], [], [3, 2]), (["malic..hue"], ["ash"], [1, 3]), ([], ["alcohol", "3"], [1, 3])]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz", "h5"])
@pytest.mark.parametrize("named", [True, False])
def test_words_choose_columns_of_every_format(kind: str, named: bool, tmp_path: Path) -> None:
    path = written(tmp_path, kind, named)
    has_names = kind == "parquet" or (named and kind != "npy")
    for columns, drop, places in CHOICES + BY_NAME * has_names:
        table = read_table(path, Selection(columns=tuple(columns) or None, drop=tuple(drop) or None))
        np.testing.assert_array_equal(table.X, X[:, places])
        assert table.columns == [NAMES[k] if has_names else str(k + 1) for k in places]
        assert table.notes == ()


@pytest.mark.parametrize(
    ("columns", "drop", "sentence"),
    [
        (["5"], [], "no column '5'; it has 4 columns, counted from 1"),
        (["0"], [], "no column '0'"),
        (["wine"], [], "no column 'wine'; it has alcohol, malic, ash, hue"),
        (["3..2"], [], "runs backwards"),
        (["1", "alcohol"], [], "'alcohol' .* is asked for twice"),
        ([], ["1..4"], "No column .* is left"),
        ([], ["wine"], "no column 'wine'"),
    ],
)
def test_words_for_no_columns(columns: list[str], drop: list[str], sentence: str, tmp_path: Path) -> None:
    for kind in ("csv", "h5"):
        with pytest.raises(InputError, match=sentence):
            read_table(written(tmp_path, kind), Selection(columns=tuple(columns) or None, drop=tuple(drop) or None))


def csv(folder: Path, head: str, *columns: object) -> Path:
    path = folder / "t.csv"
    rows = zip(*[list(column) for column in columns], strict=True)  # type: ignore[call-overload]
    path.write_text((head + "\n") * bool(head) + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


INDEXES = {
    "of pandas": (",a,b", range(6), "column 1 has no name and is taken as row names"),
    "of pandas, written twice": ("Unnamed: 0,a,b", range(6), "column 1 has no name"),
    "of texts": (",a,b", "uvwxyz", "column 1 has no name"),
    "with a name": ("id,a,b", range(1, 7), "column 'id' does nothing but count the rows"),
    "without a header": ("", range(10, 16), "column 1 does nothing but count the rows"),
}


@pytest.mark.parametrize("case", INDEXES)
def test_an_index_in_csv_is_row_names(case: str, tmp_path: Path) -> None:
    head, index, said = INDEXES[case]
    path = csv(tmp_path, head, index, X[:, 0], X[:, 1])  # type: ignore[call-overload]
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X[:, :2])
    assert table.rows == [str(k) for k in index]  # type: ignore[attr-defined]
    assert len(table.notes) == 1
    assert said in table.notes[0]
    assert "--columns brings it back" in table.notes[0]
    if case != "of texts":
        assert read_table(path, Selection(columns=("1..3",))).X.shape == (6, 3)


def test_two_indexes_and_names_of_the_users_own(tmp_path: Path) -> None:
    path = csv(tmp_path, ",id,a,name", range(6), range(3, 9), X[:, 0], "uvwxyz")
    table = read_table(path, Selection(row_names="name"))
    assert (table.X.shape, table.rows) == ((6, 1), list("uvwxyz"))
    path = csv(tmp_path, ",id,a", range(6), range(3, 9), X[:, 0])
    table = read_table(path)
    assert (table.X.shape, table.rows) == ((6, 1), list("012345"))
    assert [("row names" in note, "left out" in note) for note in table.notes] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    "column", [[0, 1, 2, 3, 4, 6], [0, 2, 4, 6, 8, 10], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5], [5, 4, 3, 2, 1, 0]]
)
def test_what_is_no_index_is_data(column: list[float], tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "k,a", column, X[:, 0]))
    assert (table.X.shape, table.rows, table.notes) == ((6, 2), None, ())


def test_the_only_column_is_data_though_it_counts(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "k", range(6))).X.shape == (6, 1)


@pytest.mark.parametrize("index", ["id", "__index_level_0__"])
def test_an_index_of_pandas_in_parquet_is_row_names(index: str, tmp_path: Path) -> None:
    content = pa.table({"a": X[:, 0], "b": X[:, 1], index: [7, 3, 9, 1, 2, 4]})
    metadata = {b"pandas": json.dumps({"index_columns": [index], "columns": []}).encode()}
    pa.parquet.write_table(content.replace_schema_metadata(metadata), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(table.X, X[:, :2])
    assert table.rows == ["7", "3", "9", "1", "2", "4"]
    assert "is taken as row names" in table.notes[0]
    assert read_table(tmp_path / "t.parquet", Selection(columns=("1..3",))).X.shape == (6, 3)


def test_a_models_columns_are_put_in_its_order(tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "npz", "h5"):
        table = read_table(written(tmp_path, kind), Selection(model_columns=("hue", "malic")))
        np.testing.assert_array_equal(table.X, X[:, [3, 1]])
        assert "does not know them: alcohol, ash" in table.notes[0]
        table = read_table(written(tmp_path, kind), Selection(model_columns=("hue", "malic", "alcohol", "ash")))
        np.testing.assert_array_equal(table.X, X[:, [3, 1, 0, 2]])
        with pytest.raises(InputError, match="lacks 1 column of the 2 that the model was made from: wine"):
            read_table(written(tmp_path, kind), Selection(model_columns=("hue", "wine")))


def test_columns_in_another_order_are_compared_by_name(tmp_path: Path) -> None:
    from tests.conftest import parallel_mix

    write_table(tmp_path / "old.h5", Table(X, tmp_path, columns=NAMES))
    write_table(tmp_path / "new.h5", Table(X[:, ::-1].copy(), tmp_path, columns=NAMES[::-1]))
    done = parallel_mix("distances", tmp_path / "new.h5", tmp_path / "old.h5", "-o", tmp_path / "D.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "D.h5") as file:
        assert np.diagonal(file["distances"][:]).max() == 0.0
    assert "columns used (4): hue, ash, malic, alcohol" in done.stderr


def test_an_index_names_the_rows_of_new_points_too(tmp_path: Path) -> None:
    for head in ("id,b,a", ",b,a"):
        path = csv(tmp_path, head, range(4, 10), X[:, 0], X[:, 1])
        table = read_table(path, Selection(model_columns=("a", "b")))
        np.testing.assert_array_equal(table.X, X[:, [1, 0]])
        assert table.rows == [str(k) for k in range(4, 10)]


def test_names_that_stand_for_two_columns_choose_none(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,a,b", X[:, 0], X[:, 1], X[:, 2])
    assert read_table(path).X.shape == (6, 3)
    with pytest.raises(InputError, match=r"Two columns .* are called 'a'"):
        read_table(path, Selection(columns=("a",)))
    with pytest.raises(InputError, match=r"Two columns .* are called 'a'"):
        read_table(path, Selection(model_columns=("a", "b")))
    np.testing.assert_array_equal(read_table(path, Selection(model_columns=("a", "a", "b"))).X, X[:, :3])


def test_columns_that_pandas_numbers_have_a_header_and_rows_of_numbers_are_rows(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, ",0,1", ["007", "3", "10000000000000003", "x", "y", "z"], X[:, 0], X[:, 1]))
    assert (table.X.shape, table.columns) == ((6, 2), ["0", "1"])
    assert table.rows == ["007", "3", "10000000000000003", "x", "y", "z"]
    assert read_table(csv(tmp_path, "", [0, 1, 1, 0], [1, 0, 1, 0])).X.shape == (4, 2)
    with pytest.raises(InputError, match="NaN"):
        read_table(csv(tmp_path, "", ["", 3, 4], [1.5, 4, 5]))


def test_a_column_that_is_empty_throughout_is_no_name(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "a,b,", X[:, 0], X[:, 1], [""] * 6))
    assert (table.X.shape, table.rows) == ((6, 2), None)


def test_the_columns_of_a_model_without_names_are_taken_as_they_are(tmp_path: Path) -> None:
    path = csv(tmp_path, "", range(6), X[:, 0])
    assert read_table(path).X.shape == (6, 1)
    assert read_table(path, Selection(width=2)).X.shape == (6, 2)


def test_row_names_of_ones_own_leave_an_index_out(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "id,a,name", range(6), X[:, 0], "uvwxyz"), Selection(row_names="name"))
    assert table.rows == list("uvwxyz")
    assert "is left out" in table.notes[0]
