"""The density and its derivatives at a point of a field: by polynomials through the eight nodes around, each direction.

A polynomial through eight nodes misses waves of a bandwidth's length by less than a hundred millionth of the density
nearby (in three dimensions, where nodes stand half as close, a millionth).
"""

from __future__ import annotations

import numpy as np

from parallel_mix.kernels.compiled import REORDERED, compiled
from parallel_mix.kernels.density.field import STENCIL, Field
from parallel_mix.kernels.density.kernel_sums import Array

LEFT_NODES = STENCIL // 2 - 1
"""Nodes of the stencil before the one below a point."""


def polynomials() -> Array:
    """Coefficients of the polynomials that are 1 at one node of the stencil and 0 at the others.

    (power, node); powers of the place, in nodes from the middle of the stencil.
    """
    nodes = np.arange(STENCIL) - (STENCIL - 1) / 2.0
    table = np.empty((STENCIL, STENCIL))
    for k in range(STENCIL):
        others = np.delete(nodes, k)
        table[:, k] = np.polynomial.polynomial.polyfromroots(others) / np.prod(nodes[k] - others)
    return table


VALUES = polynomials()
SLOPES = np.arange(1.0, STENCIL)[:, None] * VALUES[1:]
BENDS = np.arange(1.0, STENCIL - 1)[:, None] * SLOPES[1:]


@compiled(fastmath=REORDERED, inline="always")
def evaluate(coefficients: Array, place: float, result: Array) -> None:
    """The eight polynomials of these coefficients at a place."""
    top = len(coefficients) - 1
    for j in range(STENCIL):
        result[j] = coefficients[top, j]
    for power in range(top - 1, -1, -1):
        for j in range(STENCIL):
            result[j] = result[j] * place + coefficients[power, j]


@compiled(fastmath=REORDERED)
def value_at(field: Field, point: Array, room: Array, sums: Array) -> bool:
    """The density at a point, its slope, and the upper triangle of its second derivatives, into `sums`.

    False where the point lies so near the edge of the grid, or beyond, that it cannot be told. (`room` is (3, d, 8).)
    """
    d = len(point)
    a0, a1, a2 = 0, 0, 0
    for k in range(d):
        at = (point[k] - field.first[k]) * field.a_bandwidth[k]
        if not (at >= LEFT_NODES and at < field.nodes[k] - STENCIL + LEFT_NODES):
            return False
        below = int(at)
        place = at - below - 0.5
        evaluate(VALUES, place, room[0, k])
        evaluate(SLOPES, place, room[1, k])
        evaluate(BENDS, place, room[2, k])
        first = below - LEFT_NODES
        a0, a1, a2 = a1, a2, first
    if d == 1:
        _sums_1(field.values[a2 : a2 + STENCIL], room, sums)
    elif d == 2:
        _sums_2(field.values, a1 * field.nodes[1] + a2, field.nodes[1], room, sums)
    else:
        _sums_3(
            field.values,
            (a0 * field.nodes[1] + a1) * field.nodes[2] + a2,
            field.nodes[1] * field.nodes[2],
            field.nodes[2],
            room,
            sums,
        )
    for k in range(d):
        sums[1 + k] *= field.a_bandwidth[k]
    entry = d + 1
    for k in range(d):
        for j in range(k, d):
            sums[entry] *= field.a_bandwidth[k] * field.a_bandwidth[j]
            entry += 1
    return True


@compiled(fastmath=REORDERED, inline="always")
def dot(x: Array, y: Array) -> float:
    """The sum of eight products."""
    total = 0.0
    for j in range(STENCIL):
        total += x[j] * y[j]
    return total


@compiled(fastmath=REORDERED)
def _sums_1(g: Array, room: Array, sums: Array) -> None:
    sums[0], sums[1] = dot(room[0, 0], g), dot(room[1, 0], g)
    sums[2] = dot(room[2, 0], g)


@compiled(fastmath=REORDERED)
def _sums_2(values: Array, start: int, stride: int, room: Array, sums: Array) -> None:
    f, fx, fy, fxx, fxy, fyy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(STENCIL):
        g = values[start + i * stride : start + i * stride + STENCIL]
        s, t = dot(room[0, 1], g), dot(room[1, 1], g)
        w, v = room[0, 0, i], room[1, 0, i]
        f += w * s
        fx += v * s
        fy += w * t
        fxx += room[2, 0, i] * s
        fxy += v * t
        fyy += w * dot(room[2, 1], g)
    sums[0], sums[1], sums[2] = f, fx, fy
    sums[3], sums[4], sums[5] = fxx, fxy, fyy


@compiled(fastmath=REORDERED)
def _sums_3(values: Array, start: int, plane: int, stride: int, room: Array, sums: Array) -> None:
    sums[:10] = 0.0
    for i in range(STENCIL):
        f, fy, fz, fyy, fyz, fzz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(STENCIL):
            at = start + i * plane + j * stride
            g = values[at : at + STENCIL]
            s, t = dot(room[0, 2], g), dot(room[1, 2], g)
            w, v = room[0, 1, j], room[1, 1, j]
            f += w * s
            fy += v * s
            fz += w * t
            fyy += room[2, 1, j] * s
            fyz += v * t
            fzz += w * dot(room[2, 2], g)
        w, v = room[0, 0, i], room[1, 0, i]
        sums[0] += w * f
        sums[1] += v * f
        sums[2] += w * fy
        sums[3] += w * fz
        sums[4] += room[2, 0, i] * f
        sums[5] += v * fy
        sums[6] += v * fz
        sums[7] += w * fyy
        sums[8] += w * fyz
        sums[9] += w * fzz
