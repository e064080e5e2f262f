"""Labels of a clustering by mode association as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.families.hmac.file import read_clustering


def labels_of(path: Path, level: str | None) -> dict[str, Any]:
    """Columns by name: of one level, or of all of them."""
    result = read_clustering(path)
    if level == "all":
        return {f"level_{k}": one.labels for k, one in enumerate(result.levels)}
    try:
        asked = None if level is None else int(level)
    except ValueError:
        raise InputError(f"--level must be a number or `all`, not {level!r}.") from None
    return {"label": result.levels[result.level_number(asked)].labels}
