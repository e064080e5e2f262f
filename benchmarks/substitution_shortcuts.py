"""Shortcuts of vertex substitution's compiled code, as texts with and without them, for `substitution_ablation.py`.

A shortcut that the package has is the text with it and the text without; one that it has no longer (`ONCE_...`) the
text as it is, and as it was. The package itself needs no switches so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import njit

Changes = Sequence[tuple[str, str]]
APART = """        part[i] = min(max(q, a) - q2[i], 0)
    for i in range(n):
        change[first[i]] += part[i]
"""
OF_TABLE: dict[str, Changes] = {
    "a start that comes to medoids of an earlier one ends": [
        ("known = ended_before(medoids, losses, r, ends[:places])", "known = False")
    ],
    "a loop of its own for adding to the medoids' changes": [
        (APART, "        change[first[i]] += min(max(q, a) - q2[i], 0)\n")
    ],
    "32-bit labels": [
        ("np.uint32(1) if q < a else np.uint32(0)", "1 if q < a else 0"),
        ("np.uint32(j) if", "j if"),
        ("np.empty(m, np.uint32)", "np.empty(m, np.int64)"),
    ],
    "padded lanes": [("-(-n // LANES) * LANES", "n")],
    "judging and placing inline": [('(inline="always")', "")],
    "a table of whole numbers": [
        ("def substitute_by_table(Q: Ints,", "def substitute_by_table(Q: Ints, w: Array, steps: float,"),
        ("place_all(Q: Ints,", "place_all(Q: Ints, w: Array, steps: float,"),
        ("place_all(Q, ", "place_all(Q, w, steps, "),
        ("judge_all(n: int,", "judge_all(n: int, w: Array, steps: float,"),
        ("judge_all(n, ", "judge_all(n, w, steps, "),
        ("q, a = other[i], row[i]", "q, a = in_steps(other[i], w[i], steps), in_steps(row[i], w[i], steps)"),
        ("q, a = row[i], q1[i]", "q, a = in_steps(row[i], w[i], steps), q1[i]"),
    ],
}
ONCE_OF_TABLE: dict[str, Changes] = {
    "candidates judged since the last exchange are skipped": [
        ("    been = np.empty(n, np.int64)\n",
         "    been, judged, exchanges = np.empty(n, np.int64), np.empty(n, np.int64), 0\n"),
        ("        been[:] = 0\n", "        been[:], judged[:], exchanges = 0, -1, 0\n"),
        ("                if been[candidate] == sweep:\n                    continue\n",
         "                if (been[candidate] == sweep) | (judged[candidate] == exchanges):\n"
         "                    continue\n                judged[candidate] = exchanges\n"),
        ("been[candidate], better = sweep, True", "been[candidate], exchanges, better = sweep, exchanges + 1, True"),
    ],
    "the least change is sought before its medoid": [
        ("                out = best_of(change)\n                if gain + change[out] < 0:\n",
         "                least = change[0]\n                for j in range(1, k):\n"
         "                    least = min(least, change[j])\n                if gain + least < 0:\n"
         "                    out = best_of(change)\n"),
    ],
}  # fmt: skip
BODY = """    for i in range(len(row)):
        if row[i] < d2[i]:
            moved, q2"""
OF_SEARCH: dict[str, Changes] = {
    "an exchange changes the nearest two of few points": [
        ("exchange(E[candidate], candidate, out, near[r], first[r], second[r])",
         "near[r, :, out] = E[candidate]\n                    nearest_two(near[r], first[r], second[r])"),
    ],
    "candidates judged since the last exchange are skipped": [(" or judged[r, candidate] == exchanges[r]", "")],
}  # fmt: skip
ONE_PASS = [
    (BODY, """    for j in range(len(change)):
        for i in range(len(row)):
            other = d2[i] if first[i] == j else d1[i]
            change[j] += in_steps(min(row[i], other), w[i], steps) - in_steps(other, w[i], steps)
    for i in range(0):
        if row[i] < d2[i]:
            moved, q2"""),
]  # fmt: skip
ONCE_OF_SEARCH: dict[str, Changes] = {
    "points that change are sought sixteen at a time": [
        (BODY, """    for begin in range(0, len(row), 16):
      stop = min(begin + 16, len(row))
      hit = stop - begin < 16
      if not hit:
        for i in range(begin, begin + 16):
            hit |= row[i] < d2[i]
      if not hit:
        continue
      for i in range(begin, stop):
        if row[i] < d2[i]:
            moved, q2"""),
    ],
    "distances to the nearest medoid are kept in steps": [
        ("d1: Array, d2: Array, removal: Ints)", "d1: Array, d2: Array, kept: Ints, removal: Ints)"),
        ("d1: Array, d2: Array, change: Ints)", "d1: Array, d2: Array, kept: Ints, change: Ints)"),
        ("        loss += q1\n", "        kept[i] = q1\n        loss += q1\n"),
        ("                q1 = in_steps(d1[i], w[i], steps)\n", "                q1 = kept[i]\n"),
        ("d1[r], d2[r], removal[r])", "d1[r], d2[r], kept[r], removal[r])"),
        ("d1[r], d2[r], change)", "d1[r], d2[r], kept[r], change)"),
        ("    removal, change = np.empty",
         "    kept = np.empty((starts, n), np.int64)\n    removal, change = np.empty"),
    ],
}  # fmt: skip


def uncached(function: Any = None, *, inline: str = "never") -> Any:
    """As `kernels.compiled.compiled`, for code without a file."""
    return partial(uncached, inline=inline) if function is None else _compile(function, inline)


def _compile(function: Any, inline: str) -> Any:
    return njit(nogil=True, inline=inline, error_model="numpy")(function)


def changed(module: ModuleType, changes: Changes) -> Any:
    """A module compiled from a changed text."""
    text = Path(str(module.__file__)).read_text()
    for old, new in [*changes, ("from parallel_mix.kernels.compiled import compiled\n", "")]:
        if old not in text:
            raise SystemExit(f"{module.__name__} has no such text any more:\n{old}")
        text = text.replace(old, new)
    other: Any = ModuleType(module.__name__)
    other.compiled = uncached
    exec(compile(text, "changed", "exec"), vars(other))  # the package's own text
    return other
