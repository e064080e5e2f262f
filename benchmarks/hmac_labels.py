"""Labels of HMAC against plain float64 modal EM to 1e-12, row by row: false modes, missing modes, moved rows.

python benchmarks/hmac_labels.py small [SETS] [SEED] [HOW]        small random sets at one bandwidth
python benchmarks/hmac_labels.py sets [FIRST LAST [HOW]]       24 mixtures, 10 or 20 levels, nested
python benchmarks/hmac_labels.py W1 W2 W3 W4 [HOW]                the shared workloads, 20 levels, nested

HOW: 2, exact sums, if left out; 1, the same by approach 1; field; tree. `REFERENCES=FOLDER` keeps the plain labels,
which take minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
from hmac_speed import workloads

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.kernels.density.mode_merging import merge_ends
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacResult, HmacSettings


@numba.njit(parallel=True, cache=True)
def plain_ends(starts: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Where modal EM ends, in bandwidths: sums of plain differences, steps until one is below 1e-12."""
    m, d = starts.shape
    n = len(X)
    ends = starts.copy()
    for row in numba.prange(m):
        x = ends[row].copy()
        half_squares = np.empty(n)
        step = np.empty(d)
        for _ in range(3_000_000):
            least = np.inf
            for i in range(n):
                squares = 0.0
                for k in range(d):
                    squares += (X[i, k] - x[k]) ** 2
                half_squares[i] = squares / 2
                least = min(least, half_squares[i])
            step[:] = 0.0
            total = 0.0
            for i in range(n):
                if half_squares[i] - least < 60.0:  # e^-60 is less than a rounding of the sum
                    p = np.exp(least - half_squares[i])
                    total += p
                    for k in range(d):
                        step[k] += p * (X[i, k] - x[k])
            length = 0.0
            for k in range(d):
                step[k] /= total
                x[k] += step[k]
                length += step[k] ** 2
            if length < 1e-24:
                break
        ends[row] = x
    return ends


def plain_levels(X: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    """Labels of nested levels by plain ascents, (levels, rows)."""
    X = X - (X.min(axis=0) / 2 + X.max(axis=0) / 2)
    modes, labels, levels = X, np.arange(len(X)), []
    for sigma in bandwidths:
        ends = plain_ends(modes / sigma, X / sigma)
        count, member = merge_ends(ends)
        modes = np.array([ends[np.flatnonzero(member == k)[0]] for k in range(count)]) * sigma
        labels = member[labels]
        levels.append(labels)
    return np.stack(levels)


def moved_rows(ours: np.ndarray, plain: np.ndarray) -> np.ndarray:
    """Rows that are not in the cluster that most of their plain cluster is in, or the other way round."""
    moved = np.zeros(len(ours), dtype=bool)
    for one, other in ((ours, plain), (plain, ours)):
        pairs, counts = np.unique(np.column_stack([one, other]), axis=0, return_counts=True)
        order = np.argsort(counts, kind="stable")
        counterpart = np.zeros(one.max() + 1, dtype=int)
        counterpart[pairs[order, 0]] = pairs[order, 1]
        moved |= counterpart[one] != other
    return np.flatnonzero(moved)


def fit(X: np.ndarray, settings: HmacSettings, backend: SerialBackend) -> HmacResult:
    """Our result."""
    return fit_hmac(HeldRows(X), settings, backend)


def kept(name: str, X: np.ndarray, bandwidths: np.ndarray) -> np.ndarray:
    """The plain labels, from the folder of references if they are there."""
    folder = os.environ.get("REFERENCES")
    path = Path(folder or ".") / f"plain-{name}.npy"
    if folder and path.exists():
        return np.asarray(np.load(path))
    labels = plain_levels(X, bandwidths)
    if folder:
        np.save(path, labels)
    return labels


def judge(name: str, X: np.ndarray, settings: HmacSettings, backend: SerialBackend) -> None:
    """One line of the table of nested results."""
    result = fit(X, settings, backend)
    plain = kept(name, X, result.bandwidths)
    false = missing = 0
    moved, listed = set(), set()
    unlisted: set[int] = set()
    for level, labels in zip(result.levels, plain, strict=True):
        false += max(len(level.sizes) - labels.max() - 1, 0)
        missing += max(labels.max() + 1 - len(level.sizes), 0)
        rows = set(moved_rows(level.labels, labels).tolist())
        listed |= set(level.boundary.tolist())
        moved |= rows
        unlisted |= rows - listed
    size = f"{len(X):,} x {X.shape[1]}"
    counts = (len(plain), false, missing, len(moved), len(unlisted), len(listed))
    print(f"| {name} | {size} | {' | '.join(map(str, counts))} |")
    sys.stdout.flush()


def mixture(number: int, how: str) -> tuple[np.ndarray, HmacSettings]:
    """One of the 24 sets: 2 to 20 dimensions, 2,000 or 3,000 rows, 10 or 20 levels."""
    r = np.random.default_rng([24, number])
    d, n, k = (2, 3, 5, 8, 12, 20)[number % 6], (2_000, 3_000)[number // 6 % 2], int(r.integers(3, 16))
    centres = r.normal(size=(k, d)) * 10.0 / np.sqrt(d)
    X = centres[r.integers(0, k, n)] + r.normal(size=(n, d)) * r.uniform(0.4, 1.6, (n, 1))
    return X, HmacSettings(levels=(10, 20)[number // 12], **HOWS[how])


HOWS: dict[str, dict[str, Any]] = {
    "1": {"density": "exact", "approach": 1},
    "2": {"density": "exact"},
    "field": {"density": "field"},
    "tree": {"density": "tree"},
}


def small(sets: int = 2_000, seed: int = 1, how: str = "2") -> None:
    """Small sets of normal rows: 20 to 60 of them, 1 to 5 dimensions (1 to 3 from a field, 1 to 6 by the tree),
    bandwidths 0.2 to 0.8.
    """
    r = np.random.default_rng(seed)
    false = missing = moved = unlisted = listed = total = 0
    longest = capped = 0
    most = {"field": 4, "tree": 7}.get(how, 6)
    with SerialBackend(threads=1) as backend:
        for _ in range(sets):
            n, d, sigma = int(r.integers(20, 61)), int(r.integers(1, most)), float(r.uniform(0.2, 0.8))
            X = r.normal(size=(n, d))
            level = fit(X, HmacSettings((sigma,), **HOWS[how]), backend).levels[0]
            plain = plain_levels(X, np.array([sigma]))[0]
            false += len(level.sizes) > plain.max() + 1
            missing += len(level.sizes) < plain.max() + 1
            rows = moved_rows(level.labels, plain)
            moved, unlisted = moved + len(rows), unlisted + len(set(rows) - set(level.boundary))
            listed, total = listed + len(level.boundary), total + n
            longest, capped = max(longest, int(level.iterations.max())), capped + level.capped
    print(
        "| sets | rows | sets with false modes | with modes missing | rows moved | not listed | rows listed | longest |"
    )
    print("|---|---|---|---|---|---|---|---|")
    print(f"| {sets:,} | {total:,} | {false} | {missing} | {moved} | {unlisted} | {listed} | {longest} |")
    print(f"{capped} ascents hit the limit of iterations." if capped else "", flush=True)


HEAD = (
    "| data | size | levels | false modes | missing | rows moved at any level | not listed | rows listed |\n"
    + "|---" * 8
    + "|"
)


def main() -> None:
    """Run what is asked for."""
    words = sys.argv[1:] or ["small"]
    if words[0] == "small":
        small(*map(int, words[1:3]), *words[3:])
        return
    with_how = words[-1] in HOWS and not (words[0] == "sets" and len(words) == 3)
    how = words.pop() if with_how else "2"
    print(HEAD)
    with SerialBackend(threads=2) as backend:
        if words[0] == "sets":
            for number in range(*map(int, words[1:] or (0, 24))):
                judge(f"set{number}", *mixture(number, how), backend)
            return
        with tempfile.TemporaryDirectory() as name:
            folder = workloads(Path(name))
            for word in words:
                judge(word, np.load(folder / f"{word}.npz")["X"], HmacSettings(**HOWS[how]), backend)


if __name__ == "__main__":
    main()
