"""Where a fit's density comes from: sums over all rows, sums over leaves of nearby ones, or a field."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from parallel_mix.backends.base import Backend
from parallel_mix.errors import InputError
from parallel_mix.extras import install_line, need
from parallel_mix.kernels.density import modal_em
from parallel_mix.kernels.density.field import NODES_A_BANDWIDTH, nodes_over
from parallel_mix.models.core.sources import RowSource
from parallel_mix.models.hmac import field_climbing, tree_climbing
from parallel_mix.models.hmac.climb_map import Density
from parallel_mix.models.hmac.field_climbing import FieldDensity
from parallel_mix.models.hmac.points import Frame
from parallel_mix.models.hmac.result import HmacSettings
from parallel_mix.models.hmac.tree_climbing import TreeDensity

ROWS_FOR_LEAVES, ROWS_FOR_A_FIELD = 1_000, 10_000
"""From so many rows on the density comes from leaves, and from a field, where it can."""
MOST_BANDWIDTHS = 1e10
"""Where rows lie farther from the middle of all, in bandwidths, too few digits are left to tell the others apart."""
MOST_NODES = 33_554_432
"""The most nodes of a field (256 MB)."""


def decided(source: RowSource, settings: HmacSettings, frame: Frame) -> tuple[HmacSettings, str]:
    """The settings, once it is decided where the density comes from, and what the user is to know of that."""
    density, remark = "field" if settings.approach == 3 else settings.density, ""
    smallest = float(settings.ladder(frame.spread)[0])
    if density == "auto":
        n = source.shape[0]
        density = "exact" if settings.approach == 1 or n < ROWS_FOR_LEAVES else "tree"
        if density == "tree" and n >= ROWS_FOR_A_FIELD and not why_no_field(frame, smallest):
            density = "field" if find_spec("finufft") else "tree"
            if density == "tree":
                remark = f"This takes longer than with finufft, which is not installed: {install_line('field')}."
    elif density == "field":
        if why := why_no_field(frame, smallest):
            asked = "--approach 3" if settings.approach == 3 else "--density field"
            raise InputError(f"{why}. Leave out {asked}.")
        need("field", "A density from a field")
    return replace(settings, density=density), remark


def left_where_they_are(settings: HmacSettings, frame: Frame) -> HmacSettings:
    """The settings for rows that stay in their file: by approach 3, where the density can come from a field."""
    possible = settings.density in ("auto", "field") and find_spec("finufft") is not None
    if possible and not why_no_field(frame, float(settings.ladder(frame.spread)[0])):
        return replace(settings, approach=3)
    return settings


def refuse_rows_far_out(frame: Frame, smallest: float) -> None:
    """Refuse data that reach too far to either side of their middle, in bandwidths."""
    with np.errstate(over="ignore"):
        reach = np.maximum(-frame.low, frame.high) / smallest
    column = int(reach.argmax())
    if not reach[column] <= MOST_BANDWIDTHS:
        raise InputError(
            f"Column {column + 1} reaches {reach[column]:.3g} bandwidths of {smallest:g} to either side of its middle. "
            f"Beyond {MOST_BANDWIDTHS:,.0f} too few digits tell rows apart: leave out rows that lie far out, such as "
            "marks of missing values, or ask for larger bandwidths."
        )


def why_no_field(frame: Frame, smallest: float) -> str:
    """Why the density cannot come from a field; "" where it can."""
    d = len(frame.low)
    if d not in NODES_A_BANDWIDTH:
        return f"A field is for one to three columns, not {d}"
    with np.errstate(over="ignore"):
        nodes = nodes_over((frame.high - frame.low) / smallest)
    if not nodes.prod() <= MOST_NODES:
        size = f"more than {MOST_NODES:,} nodes: the bandwidth is small, or some rows lie far out"
        return f"At bandwidth {smallest:g} a field would have {size}"
    return ""


def density_of(kind: str, backend: Backend, source: RowSource, frame: Frame, smallest: float) -> Density | None:
    """The density of this kind, where the workers share the points; None for exact sums."""
    if kind == "tree":
        return TreeDensity(smallest)
    if kind == "field":
        need("field", "A density from a field")
        frame = frame if frame.low.size else frame.over(source)
        return FieldDensity.of(backend, source.shape[0], frame.high - frame.low, smallest)
    return None


def warm_up(kind: str) -> None:
    """Load the compiled code of a density of this kind, before workers are forked."""
    {"exact": modal_em, "tree": tree_climbing, "field": field_climbing}[kind].warm_up()
