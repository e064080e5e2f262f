"""The base of all figures: size, fonts, saving as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parallel_mix.errors import InputError
from parallel_mix.store.atomic import written_whole


def new_figure(width: float = 8.0, height: float = 5.0) -> Any:
    """A figure drawn without a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Any) -> None:
    """Draw no box but a light grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def save(figure: Any, folder: Path, name: str, formats: tuple[str, ...]) -> list[Path]:
    """Write a figure under one name in several formats; the paths of the files."""
    import matplotlib as mpl

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made: {error.strerror}.") from error
    written = []
    with mpl.rc_context({"svg.hashsalt": "parallel-mix", "svg.fonttype": "none"}):
        for kind in formats:
            path = folder / f"{name}.{kind}"
            with written_whole(path) as temporary:
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(temporary, format=kind, dpi=150, metadata=metadata)
            written.append(path)
    return written
