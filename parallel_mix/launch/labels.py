"""Labels of a result as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.errors import InputError
from parallel_mix.models.hmac_result import HmacResult
from parallel_mix.store.cluster_files import read_clusterings
from parallel_mix.store.results import kind_of, read_result


def labels_of(path: Path, level: str | None) -> dict[str, Any]:
    """Columns by name: of one level, of all of them, or of each number of clusters."""
    if kind_of(path) == "clusters":
        if level is not None:
            raise InputError(f"{path} has no levels: leave out --level.")
        found = read_clusterings(path)
        if len(found) == 1 and found[0].classes is not None:
            return {"label": found[0].labels, "class": np.array(found[0].classes)[found[0].labels]}
        return {"label": found[0].labels} if len(found) == 1 else {f"clusters_{c.count}": c.labels for c in found}
    if (kind := kind_of(path)) != "hmac":
        raise InputError(f"{path} is a result of the kind {kind!r}: labels are those of `hmac` and `cluster`.")
    result = HmacResult.from_tree(read_result(path, "hmac"))
    if level == "all":
        return {f"level_{k}": one.labels for k, one in enumerate(result.levels)}
    try:
        asked = None if level is None else int(level)
    except ValueError:
        raise InputError(f"--level must be a number or `all`, not {level!r}.") from None
    return {"label": result.levels[result.level_number(asked)].labels}
