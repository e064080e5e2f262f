"""Tables of the papers that can be made again from data that are there: errors in %, mean and sd over 20 partitions.

hlm.txt is Qiao & Li's HLM paper (Tables 2 and 3), local-sda.txt Sadowski, Cazzanti & Gupta (Tables I and II).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from parallel_mix.errors import InputError
from parallel_mix.evaluate.methods import known_methods, with_grid
from parallel_mix.models.core.methods import Method
from parallel_mix.models.similarity.methods import LOCAL_NEIGHBOURS, NEIGHBOURS


@dataclass(frozen=True)
class Source:
    """A data set: its file, what the file holds, and how distances are converted from similarities."""

    file: str
    dataset: str
    kind: str
    conversion: str | None = None


SOURCES = {
    "aural_sonar": Source("aural_sonar.npz", "S", "similarities", "bound"),
    "protein": Source("protein.npz", "S", "similarities", "inverse"),
    "voting": Source("voting.npz", "S", "similarities", "bound"),
    "sonar": Source("sonar.npz", "X", "distances"),  # Euclidean, of its vectors
    "sonar-vectors": Source("sonar.npz", "X", "vectors"),
}


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper: its title, and its cells (mean, sd) in % by classifier and data set."""

    title: str
    cells: Mapping[str, Mapping[str, tuple[float, float]]]
    local: bool = False  # neighbours chosen as local-sda.txt does
    rivals: str | None = None  # a table whose classifiers, too, decide which is the best

    @property
    def data(self) -> list[str]:
        """The names of its data sets."""
        return list(dict.fromkeys(name for row in self.cells.values() for name in row))

    def methods(self) -> list[Method]:
        """Its classifiers, with the settings that the paper chooses from."""
        known = known_methods()
        methods = [known[name] for name in self.cells]
        if not self.local:  # local SDA as Chen et al. (2009) have it
            chen = {"n_neighbors": list(NEIGHBOURS), "fallback": "knn"}
            return [with_grid(method, chen) if method.name == "sda" else method for method in methods]
        return [
            with_grid(method, {"n_neighbors": list(LOCAL_NEIGHBOURS)}) if "n_neighbors" in method.grid else method
            for method in methods
        ]


def _rows(text: str, data: tuple[str, ...]) -> dict[str, dict[str, tuple[float, float]]]:
    """The rows of a table from lines of a name, and a mean and an sd for each data set."""
    rows = {}
    for line in text.strip().splitlines():
        name, *numbers = line.split()
        pairs = [(float(mean), float(sd)) for mean, sd in zip(numbers[::2], numbers[1::2], strict=True)]
        rows[name] = dict(zip(data, pairs, strict=True))
    return rows


HLM = ("aural_sonar", "protein", "sonar", "voting")
SDA = ("aural_sonar", "protein", "voting")
TABLES = {
    "hlm-table-2": PaperTable(
        "distance-based classifiers (I), Qiao & Li, Table 2",
        _rows(
            """
            knn               17.25 6.80   29.88 9.82   20.71 6.48   5.52 1.61
            sda               17.75 7.66   17.44 6.52   20.00 6.79   6.38 2.07
            svm-features-rbf  14.00 7.18    1.05 1.37   21.31 5.71   6.03 1.85
            hlm-kernel        13.75 5.67   29.07 7.52   23.81 5.05   6.09 1.86
            hlm-vsh           16.00 5.39   23.49 10.55  24.40 4.69   4.89 2.12
            hlm-kernel-vsh    15.25 4.60   24.42 9.91   23.57 5.42   4.89 2.12
            """,
            HLM,
        ),
        rivals="hlm-table-3",
    ),
    "hlm-table-3": PaperTable(
        "distance-based classifiers (II), Qiao & Li, Table 3",
        _rows(
            """
            affinity-knn         15.50 5.89   30.81 6.61   20.36 6.00   5.86 1.78
            kri-knn              13.75 6.87   30.35 9.71   20.00 4.90   5.29 1.80
            krr-knn              15.50 6.69    9.65 4.95   20.71 5.22   5.52 1.69
            svm-knn-clip         13.75 7.40   11.86 5.50   20.00 5.29   5.17 2.20
            svm-clip             13.00 5.34    5.35 4.60   19.29 6.25   4.89 2.05
            svm-features-linear  14.25 6.94    3.02 2.76   20.60 5.60   5.34 1.86
            psvm                 14.25 5.97    1.86 1.89   19.29 4.64   5.34 1.72
            hlm-gknn             14.50 5.22   14.53 12.59  31.43 5.81   6.95 2.67
            hlm-agg              13.75 6.30   15.00 13.00  24.88 6.18   5.17 2.37
            """,
            HLM,
        ),
        rivals="hlm-table-2",
    ),
    "hlm-vectors": PaperTable(
        "support vector machines on the vectors of sonar themselves, Qiao & Li, section 5.3",
        _rows(
            """
            svm-linear  16.90 5.05
            svm-rbf     20.00 5.40
            """,
            ("sonar-vectors",),
        ),
    ),
    "sda-table-1": PaperTable(
        "local SDA and its variants, Sadowski, Cazzanti & Gupta, Table I",
        _rows(
            """
            sda-bayesian           19.75 8.50   22.91 4.85   6.84 1.95
            sda-pairwise           16.25 8.09    9.77 5.97   7.07 2.51
            sda-pairwise-bayesian  16.25 8.25    1.63 2.73   6.90 2.01
            sda                    18.75 7.05   19.42 6.84   6.90 2.33
            sda-marginal           18.75 8.25   20.00 7.64   6.72 2.25
            sda-joint              19.25 8.47   19.65 7.06   6.78 2.33
            """,
            SDA,
        ),
        local=True,
    ),
    "sda-table-2": PaperTable(
        "pairwise Bayesian local SDA and its rivals, Sadowski, Cazzanti & Gupta, Table II",
        _rows(
            """
            sda-pairwise-bayesian  16.25 8.25    1.63 2.73   6.90 2.01
            knn                    15.75 5.68   30.00 9.63   5.69 1.95
            svm-knn-clip           13.75 7.59   11.86 5.64   5.11 2.40
            svm-knn-flip           14.00 5.98    1.74 2.49   5.11 2.37
            svm-knn-shift          14.00 7.00   30.23 8.80   5.23 2.43
            svm-knn-features       13.00 6.16   29.65 10.18  5.40 1.40
            """,
            SDA,
        ),
        local=True,
    ),
}


def paper_table(name: str) -> PaperTable:
    """The table of this name."""
    if name not in TABLES:
        raise InputError(f"There is no table {name!r}: use one of {', '.join(TABLES)}.")
    return TABLES[name]


def beside(
    table: PaperTable, ours: Mapping[tuple[str, str], tuple[float, float]], marked: Container[tuple[str, str]]
) -> str:
    """A table in Markdown: our errors (in bold those `marked`), the paper's, and the difference in the paper's sds."""
    titles = {name: method.title for name, method in known_methods().items()}
    lines = ["| classifier | data | ours | paper | difference, sds |", "|---|---|---|---|---|"]
    for name, row in table.cells.items():
        for data, (mean, sd) in row.items():
            if (name, data) not in ours:
                continue
            error, spread = ours[name, data]
            apart = (error - mean) / sd
            text = f"{error:.2f} ({spread:.2f})"
            lines.append(
                f"| {titles[name]} | {data} | {f'**{text}**' if (name, data) in marked else text} | "
                f"{mean:.2f} ({sd:.2f}) | {apart:+.2f}{' !' if abs(apart) > 1 else ''} |"
            )
    return "\n".join(lines) + "\n"
