"""What `info` says of a classifier over distances."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from parallel_mix.families.hlm.file import read_model
from parallel_mix.models.hlm.model import KERNEL
from parallel_mix.progress import plural


def describe(path: Path) -> list[str]:
    """Its classes, their priors and components."""
    stored = read_model(path)
    model, names = stored.model, stored.names
    of_class = np.bincount(model.classes, minlength=len(names))
    least, most = of_class[of_class > 0].min(), of_class.max()
    kind = f"{plural(most, 'component')} a class" if least == most else f"{least} to {most} components a class"
    kind = "Kernel HLM" if model.count == KERNEL else kind
    lines = [f"{path}: classifier over distances (HLM), {kind}, fitted on {model.rows:,} rows"]
    if stored.selection is not None:
        means = 100.0 * np.nanmean(stored.selection["errors"], axis=1)
        candidates = stored.selection["candidates"]
        shown = (f"{k or 'kernel'}: {mean:.1f}" for k, mean in zip(candidates, means, strict=True))
        lines.append(f"errors in cross-validation, %: {', '.join(shown)}")
    lines.append(f"  {'class':<16} {'prior':>8} {'components':>10} {'shape s':>9} {'scale b':>25}")
    for k, name in enumerate(names):
        here = model.classes == k
        b = model.b[here]
        scale = f"{b.min():.4g} to {b.max():.4g}" if here.any() else ""
        shape = f"{model.s[here].mean():.4g}" if here.any() else ""
        lines.append(f"  {name[:16]:<16} {model.prior[k]:8.4f} {int(here.sum()):10,} {shape:>9} {scale:>25}")
    return lines
