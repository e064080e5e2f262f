"""The pictures of a result of any kind."""

from __future__ import annotations

from pathlib import Path

from parallel_mix.errors import InputError
from parallel_mix.extras import need
from parallel_mix.families import family_of

FORMATS = ("png", "svg", "pdf")


def plot_result(
    path: Path, folder: Path, formats: tuple[str, ...], level: str | None = None, columns: str | None = None
) -> list[Path]:
    """Draw all figures of a result, and return the files written; `level` and `columns` choose what is scattered."""
    need("plots", "Pictures")
    if unknown := [kind for kind in formats if kind not in FORMATS]:
        raise InputError(f"There is no format {unknown[0]!r}: use {', '.join(FORMATS)}.")
    family = family_of(path, "pages", ", of which there are no pictures.")
    pages = family.part("pages")
    if family.levels:
        written: list[Path] = pages.draw(path, folder, formats, pages.LevelChoices(level, columns))
        return written
    if (level, columns) != (None, None):
        raise InputError(
            f"{path} is a result of the kind {family.kind!r}: it has no --level and no --columns to choose."
        )
    plain: list[Path] = pages.draw(path, folder, formats)
    return plain
