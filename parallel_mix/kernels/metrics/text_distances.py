"""Edit distances of texts (Levenshtein): insertions, deletions and changes of a letter, each counted as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parallel_mix.kernels.density.kernel_sums import Array

METRICS = ("edit", "edit-normalized")

Texts = Sequence[str]


@dataclass(frozen=True)
class EditMetric:
    """The number of edits ("edit"), or that number over the length of the longer text ("edit-normalized")."""

    name: str
    symmetric = True
    block = 1
    frees_lock = True

    def prepare(self, texts: Texts) -> Texts:
        """The texts themselves: they are compared as they are."""
        return texts

    def tile(self, new: Texts, rows: slice, old: Texts, columns: slice, own: bool) -> Array:
        """Distances between some of the new and some of the old; `own`: the new are the old."""
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        scorer = Levenshtein.distance if self.name == "edit" else Levenshtein.normalized_distance
        return np.asarray(cdist(new[rows], old[columns], scorer=scorer, dtype=np.float64))
