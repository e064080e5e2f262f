"""Tables of errors, as the papers print them: mean (sd), the best in bold with all that are not significantly worse."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.evaluate.significance import LEAST, not_worse

FORMATS = ("text", "markdown", "latex", "csv")


@dataclass(frozen=True)
class Cell:
    """The errors of a classifier on a data set, in %: mean and sd over the partitions."""

    mean: float
    sd: float
    bold: bool = False

    @property
    def text(self) -> str:
        """The cell as text, such as 12.50 (3.10)."""
        if not np.isfinite(self.mean):
            return "failed"
        return f"{self.mean:.2f} ({self.sd:.2f})" if np.isfinite(self.sd) else f"{self.mean:.2f}"


@dataclass(frozen=True)
class ErrorTable:
    """Classifiers by data sets; a cell may be missing."""

    rows: list[str]
    columns: list[str]
    cells: dict[tuple[str, str], Cell]
    few: tuple[str, ...] = ()  # data sets of too few partitions for a significant difference


def cells_of(titles: Sequence[str], errors: np.ndarray) -> dict[str, Cell]:
    """The cells of one data set, by title, from errors as shares (classifiers, partitions)."""
    cells = {}
    for title, row, bold in zip(titles, errors, not_worse(errors), strict=True):
        known = 100.0 * row[np.isfinite(row)]
        mean = float(known.mean()) if len(known) else float("nan")
        cells[title] = Cell(mean, float(known.std(ddof=1)) if len(known) > 1 else float("nan"), bool(bold))
    return cells


def told_apart(names: Sequence[tuple[str, str]]) -> list[str]:
    """The first name of each pair; where it stands twice the second, with a number where that does, too."""
    first = [one for one, _ in names]
    titles = [other if first.count(one) > 1 else one for one, other in names]
    return [
        f"{name} ({titles[:k].count(name) + 1})" if titles.count(name) > 1 else name for k, name in enumerate(titles)
    ]


def table_of(data_sets: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> ErrorTable:
    """One table of several data sets, each given as name, titles of the classifiers, and errors."""
    rows: dict[str, None] = {}
    cells: dict[tuple[str, str], Cell] = {}
    for name, titles, errors in data_sets:
        rows |= dict.fromkeys(titles)
        cells |= {(title, name): cell for title, cell in cells_of(titles, errors).items()}
    few = tuple(name for name, _, errors in data_sets if errors.shape[1] < LEAST)
    return ErrorTable(list(rows), [name for name, _, _ in data_sets], cells, few)


def legend(table: ErrorTable, mark: str) -> str:
    """A line on what the numbers are and what a mark means, or why there is none."""
    numbers = "error in %, mean (sd) over the partitions"
    meaning = f"{numbers}; {mark}: the lowest, or not significantly worse (signed-rank test, 5 %)"
    if not table.few:
        return meaning
    where = "" if len(table.few) == len(table.columns) else f" for {', '.join(table.few)}"
    why = f"nothing is marked{where}: with fewer than {LEAST} partitions no difference is significant"
    return f"{meaning if where else numbers}; {why}"


def written(table: ErrorTable, form: str) -> str:
    """The table as text in a format: text, markdown, latex or csv."""
    if form not in FORMATS:
        raise InputError(f"There is no format {form!r}: use {', '.join(FORMATS)}.")
    return {"text": _as_text, "markdown": _as_markdown, "latex": _as_latex, "csv": _as_csv}[form](table)


def _grid(table: ErrorTable, bold: tuple[str, str], missing: str = "") -> list[list[str]]:
    lines = []
    for row in table.rows:
        line = [row]
        for column in table.columns:
            cell = table.cells.get((row, column))
            text = missing if cell is None else cell.text
            line.append(f"{bold[0]}{text}{bold[1]}" if cell is not None and cell.bold else text)
        lines.append(line)
    return lines


def _as_text(table: ErrorTable) -> str:
    lines = [["classifier", *table.columns], *_grid(table, ("", " *"))]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    shown = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*shown, "", legend(table, "*")]) + "\n"


def _as_markdown(table: ErrorTable) -> str:
    head = ["| classifier | " + " | ".join(table.columns) + " |", "|---|" + "---|" * len(table.columns)]
    body = ("| " + " | ".join(line) + " |" for line in _grid(table, ("**", "**")))
    return "\n".join([*head, *body, "", _capital(legend(table, "bold"))]) + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _as_latex(table: ErrorTable) -> str:
    def plain(text: str) -> str:
        return text.replace("_", r"\_").replace("%", r"\%").replace("&", r"\&")

    head = [r"\begin{tabular}{l" + "r" * len(table.columns) + "}", r"\hline"]
    head.append(" & ".join(["classifier", *map(plain, table.columns)]) + r" \\ \hline")
    body = [" & ".join([plain(line[0]), *line[1:]]) + r" \\" for line in _grid(table, (r"\textbf{", "}"))]
    said = plain(_capital(legend(table, "bold")))
    return "\n".join([*head, *body, r"\hline", r"\end{tabular}", "", rf"{{\footnotesize {said}}}"]) + "\n"


def _as_csv(table: ErrorTable) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["classifier", "data", "mean", "sd", "not_worse"])
    for (row, column), cell in table.cells.items():
        mark = "" if column in table.few else int(cell.bold)
        writer.writerow([row, column, round(cell.mean, 6), round(cell.sd, 6), mark])
    return text.getvalue() + (f"# {legend(table, 'not_worse')}\n" if table.few else "")
