"""What is in a file, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.evaluate.tables import table_of, told_apart, written
from parallel_mix.launch.efficiency import Efficiency
from parallel_mix.models.distance_checks import examine
from parallel_mix.models.hlm_model import KERNEL
from parallel_mix.models.hmac_result import HmacResult
from parallel_mix.models.pairwise import is_known
from parallel_mix.progress import plural
from parallel_mix.store.cluster_files import read_clusterings
from parallel_mix.store.crossval_files import read_comparison
from parallel_mix.store.damage import MEND, reading
from parallel_mix.store.guard import checksums_in, look_first
from parallel_mix.store.results import kind_of, read_attribute, read_classes, read_record, read_result
from parallel_mix.store.stored_matrix import StoredMatrix, read_sides
from parallel_mix.store.tables import Selection, read_table

MOST_COLUMNS = 40
MOST_SIZES = 16


def of_result(path: Path) -> list[str]:
    """What was found, and how it was made."""
    tell = {
        "hmac": _of_hmac,
        "distances": _of_distances,
        "neighbours": _of_neighbours,
        "clusters": _of_clusters,
        "hlm": _of_hlm,
        "crossval": _of_crossval,
    }
    return [*tell[kind_of(path)](path), "", *_of_run(path), *_of_checksums(path)]


def verified(path: Path) -> str:
    """That a whole file is what was written, large matrices too; refused where it is not, or nothing tells."""
    look_first(path, MEND)
    if (sums := checksums_in(path)) is None:
        raise InputError(f"{path} has no checksums: nothing tells whether it is what was written.")
    with reading(path):
        sums.compare_all()
    return f"{path}: all {sums.length:,} bytes are those that were written"


def _of_checksums(path: Path) -> list[str]:
    """A line where nothing would tell that the file was changed."""
    return [] if checksums_in(path) else ["no checksums: a number that was changed on the way would not be told"]


def _of_hmac(path: Path) -> list[str]:
    result = HmacResult.from_tree(read_result(path, "hmac"))
    lines = [f"{path}: clustering by mode association (hmac)", *result.summary()]
    known = np.array(read_classes(path) or [])
    some = is_known(known)
    return [*lines, result.agreement(known, some)] if len(set(known[some])) > 1 else lines


def _of_distances(path: Path) -> list[str]:
    matrix, metric = StoredMatrix.of(path, "distances"), read_attribute(path, "metric")
    return [f"{path}: distances ({metric})", *examine(matrix, own=read_sides(path)[1] is None).lines()]


def _of_neighbours(path: Path) -> list[str]:
    distances = read_result(path, "neighbours")["distances"]
    (n, k), near, far = distances.shape, distances[:, 0].mean(), distances[:, -1].mean()
    return [
        f"{path}: {k} nearest neighbours of {n:,} ({read_attribute(path, 'metric')})",
        f"mean distance {near:.6g} to the first, {far:.6g} to the last",
    ]


def _of_clusters(path: Path) -> list[str]:
    tree, known = read_result(path, "clusters"), read_classes(path)
    lines = [f"{path}: clustering by distances alone ({tree['@method']})"]
    for found in read_clusterings(path):
        sizes = ", ".join(f"{size:,}" for size in found.sizes[:MOST_SIZES])
        more = ", ..." if len(found.sizes) > MOST_SIZES else ""
        lines.append(f"{plural(found.count, 'cluster')}: total distance {found.loss:.9g}; rows {sizes}{more}")
        if known and found.classes is None and len({name for name in known if is_known([name])[0]}) > 1:
            from sklearn.metrics import adjusted_rand_score

            some = is_known(known)
            score = adjusted_rand_score(np.array(known)[some], found.labels[some])
            lines[-1] += f"; agreement with known classes (ARI) {score:.3f}"
        if found.classes is not None:
            of = {name: np.flatnonzero(np.array(found.classes) == name) for name in sorted(set(found.classes))}
            lines += [f"  {name}: clusters {', '.join(map(str, here))}" for name, here in of.items()]
    return lines


def _of_hlm(path: Path) -> list[str]:
    tree = read_result(path, "hlm")
    parts, names = tree["components"], [str(name, "utf-8") for name in tree["classes"]]
    of_class = np.bincount(parts["classes"], minlength=len(names))
    least, most = of_class[of_class > 0].min(), of_class.max()
    kind = f"{plural(most, 'component')} a class" if least == most else f"{least} to {most} components a class"
    kind = "Kernel HLM" if int(tree["@components"]) == KERNEL else kind
    lines = [f"{path}: classifier over distances (HLM), {kind}, fitted on {int(tree['@rows']):,} rows"]
    if "selection" in tree:
        means = 100.0 * np.nanmean(tree["selection"]["errors"], axis=1)
        shown = (f"{k or 'kernel'}: {mean:.1f}" for k, mean in zip(tree["selection"]["candidates"], means, strict=True))
        lines.append(f"errors in cross-validation, %: {', '.join(shown)}")
    lines.append(f"  {'class':<16} {'prior':>8} {'components':>10} {'shape s':>9} {'scale b':>25}")
    for k, name in enumerate(names):
        here = parts["classes"] == k
        b = parts["b"][here]
        scale = f"{b.min():.4g} to {b.max():.4g}" if here.any() else ""
        shape = f"{parts['s'][here].mean():.4g}" if here.any() else ""
        lines.append(f"  {name[:16]:<16} {tree['prior'][k]:8.4f} {int(here.sum()):10,} {shape:>9} {scale:>25}")
    return lines


def _of_crossval(path: Path) -> list[str]:
    found = read_comparison(path)
    lines = [f"{path}: {plural(len(found.methods), 'classifier')} compared on {len(found.tests)} partitions of "
             f"{len(found.y):,} rows of {len(found.classes)} classes", ""]  # fmt: skip
    lines += written(table_of([(found.name, told_apart(found.names), found.errors)]), "text").splitlines()
    for method in found.methods:
        lines += [
            f"{method.name} failed in {where}: {text.strip().splitlines()[-1]}"
            for where, text in method.failures.items()
        ]
    return lines


def _of_run(path: Path) -> list[str]:
    record = read_record(path)
    lines = [
        f"made {record['started']} on {record['host']} by `{record['command_line']}`",
        f"backend {record['backend']}, {record['workers']} at a time, {record['seconds']:.1f} s, attempt "
        f"{record['attempts']}, {record['reused']:g} {record.get('unit', 'ascents')} reused, seed {record['seed']}",
    ]
    if "efficiency" not in record:
        return lines
    efficiency = Efficiency.from_record(record["efficiency"])
    return [*lines, efficiency.summary(), *efficiency.table()]


def of_table(path: Path, selection: Selection) -> list[str]:
    """Rows, columns, and their range."""
    table = read_table(path, selection)
    n, d = table.X.shape
    lines = [f"{path}: a table of {n:,} rows and {plural(d, 'column')}"]
    lines += table.notes
    lines += [f"  with {name}" for name in ("w", "y", "rows") if getattr(table, name) is not None]
    lines.append(f"  {'column':<16} {'lowest':>12} {'mean':>12} {'highest':>12} {'sd':>12}")
    for k, column in enumerate(table.X.T[:MOST_COLUMNS]):
        name = table.columns[k] if table.columns else str(k + 1)
        sd = column.std(ddof=1)
        lines.append(f"  {name[:16]:<16} {column.min():12.5g} {column.mean():12.5g} {column.max():12.5g} {sd:12.5g}")
    return lines + ([f"  ... and {d - MOST_COLUMNS} more"] if d > MOST_COLUMNS else [])
