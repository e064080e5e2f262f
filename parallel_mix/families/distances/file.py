"""Results of `parallel-mix distances`: a matrix in its file, and what belongs to its rows and columns.

The matrix is laid out and written in place by `store.matrix_files`; everything beside it is a tree made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallel_mix.models.distances.pairwise import class_names
from parallel_mix.store.results import Tree, read_attribute
from parallel_mix.store.stored_matrix import StoredMatrix
from parallel_mix.store.tables import Table

LAYOUT = (
    ("/@metric, @dtype; @p, @sigma, @symmetric, @symmetrize", "what decided the distances; the last ones where they "
     "have a say"),
    ("/distances (n, m)", "float64, or float32 with `--single`; contiguous, rows new, columns old"),
    ("/y, rows, w", "known classes, names and weights of the rows"),
    ("/old/y, rows, w", "those of the columns, where they are other things"),
)  # fmt: skip


def tree_beside(decided: dict[str, Any], new: Table, old: Table) -> Tree:
    """What goes into the file beside the numbers."""
    tree: Tree = {f"@{key}": value for key, value in decided.items()}
    return tree | names(new) | ({} if old is new else {"old": names(old)})


def names(table: Table) -> Tree:
    """Classes, names and weights of the rows."""
    kept: Tree = {}
    if table.y is not None:
        kept["y"] = table.y if table.y.dtype.kind in "biu" else list(map(str, class_names(table.y)))
    if table.rows is not None:
        kept["rows"] = table.rows
    if table.w is not None and table.offsets is None:
        kept["w"] = table.w
    return kept


def size_of_names(table: Table) -> int:
    """More bytes than the classes and names of the rows take in HDF5."""
    texts = [str(value) for values in (table.y, table.rows) if values is not None for value in values]
    return sum(64 + 2 * len(text.encode()) for text in texts)


def read_matrix_of(path: Path) -> tuple[StoredMatrix, str]:
    """The matrix, which is not read before it is needed, and the metric it was made by."""
    return StoredMatrix.of(path, "distances"), read_attribute(path, "metric")
