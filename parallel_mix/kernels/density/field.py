"""The density in one to three dimensions as a field: its values on a grid, between which it is interpolated.

The Fourier transform of a Gaussian kernel density is that of the points times a Gaussian, which leaves nothing of waves
shorter than 0.85 bandwidths but 1e-12. So some hundred waves a direction hold the whole density, however many points
there are. They are summed over the points once, by a nonuniform fast Fourier transform (`spectrum`), and such sums over
disjoint sets of points add. An inverse transform gives the values on a grid; the field of a larger bandwidth comes from
the values of a smaller one (`wider`).

Lengths are in bandwidths about the middle of the data's range. Values are sums of w exp(-|y - x|^2 / 2) with weights
that add to 1, as everywhere in `kernels/density`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parallel_mix.kernels.density.kernel_sums import Array

Spectrum = NDArray[np.complex128]

LEFT = 1e-12
"""What is left of the shortest waves that are kept, as a share of the longest."""
SHORTEST = float(np.sqrt(-2.0 * np.log(LEFT)))
"""The largest wave number that is kept, in waves of 2 pi a bandwidth."""
SUM_ERROR = 1e-11
"""The relative error of the sums over the points."""
MARGIN = 7.6
"""How far the grid reaches beyond the data, in bandwidths; the density repeats itself beyond."""
NODES_A_BANDWIDTH = {1: 8, 2: 8, 3: 4}
"""Nodes of the grid in each direction, by the number of dimensions."""
STENCIL = 8
"""Nodes in each direction between which a value is interpolated."""
LEAST_SHARE = 1e-7
"""Where the density is under this share of its peak it is not read from the field, whose errors would show."""
SMOOTH_ENOUGH = 1.25
"""A bandwidth that grew by this factor leaves nothing of what half the nodes cannot tell apart."""


class Field(NamedTuple):
    """The values of a density on a grid."""

    values: Array  # of all nodes in a line, the last direction fastest
    nodes: Any  # (d) int64
    first: Array  # (d) the place of the first node
    a_bandwidth: Array  # (d) nodes a bandwidth
    least: float  # lower values are not read from the field


@dataclass(frozen=True)
class Grid:
    """The grid of a field, from the range of the data in bandwidths."""

    nodes: tuple[int, ...]
    box: Array  # (d) the length after which the density repeats itself, in bandwidths
    waves: tuple[int, ...]  # an odd number in each direction, of either sign

    @classmethod
    def over(cls, extent: Array) -> Grid:
        """The grid over data of this extent (d), in bandwidths."""
        nodes = tuple(fast_length(length) for length in nodes_over(extent))
        box = np.array(nodes) / NODES_A_BANDWIDTH[len(extent)]
        return cls(nodes, box, tuple(waves_of(length, count) for length, count in zip(box, nodes, strict=True)))


def nodes_over(extent: Array) -> Array:
    """The nodes in each direction (d) that a grid over data of this extent has at least."""
    nodes: Array = (extent + 2.0 * MARGIN) * NODES_A_BANDWIDTH[len(extent)]
    return nodes


def fast_length(least: float) -> int:
    """The smallest even number of nodes from `least` on whose transform is fast: no prime above 5 divides it."""
    from scipy.fft import next_fast_len

    return 2 * int(next_fast_len(max(int(np.ceil(least / 2.0)), 1), real=True))


def waves_of(length: float, nodes: int) -> int:
    """The waves that are kept in one direction, of either sign, over so many bandwidths."""
    return int(min(2 * int(np.ceil(SHORTEST * length / (2.0 * np.pi))) + 1, nodes - 1 + nodes % 2))


def wave_numbers(waves: int) -> np.ndarray:
    """The numbers of waves of either sign, in rising order."""
    return np.arange(waves) - waves // 2


def spectrum(points: Array, weights: Array, grid: Grid) -> Spectrum:
    """Sums over some points (in bandwidths about the middle) of their weights times each wave.

    Of the last direction the half that is not negative: the other half is its mirror image.
    """
    import finufft

    d = points.shape[1]
    phases = [np.ascontiguousarray(points[:, k] * (2.0 * np.pi / grid.box[k])) for k in range(d)]
    transform = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[d - 1]
    sums = transform(*phases, weights.astype(np.complex128), grid.waves, isign=-1, eps=SUM_ERROR, nthreads=1)
    return np.ascontiguousarray(sums[..., grid.waves[-1] // 2 :])


def field_of(sums: Spectrum, grid: Grid) -> Field:
    """The field from the sums of all points."""
    d = len(grid.nodes)
    waves = sums.copy()
    for axis in range(d):
        numbers = wave_numbers(grid.waves[axis])
        if axis == d - 1:
            numbers = numbers[grid.waves[-1] // 2 :]
        gaussian = np.exp(-0.5 * (numbers * (2.0 * np.pi / grid.box[axis])) ** 2) * np.sqrt(2.0 * np.pi)
        half_a_box = 1.0 - 2.0 * (numbers % 2)  # the first node is half the box below the middle
        waves *= _along(gaussian * half_a_box / grid.box[axis], axis, d)
    return _transformed(waves, grid.waves, grid.nodes, -grid.box / 2.0, np.full(d, float(NODES_A_BANDWIDTH[d])))


def wider(field: Field, extent: Array, ratio: float) -> Field:
    """The field of a bandwidth that is `ratio` times as large, from the values of this one: a Gaussian more.

    `extent` is that of the data, in the new bandwidths.
    """
    d = len(field.nodes)
    density = NODES_A_BANDWIDTH[d]
    skip = density // 2 if ratio >= SMOOTH_ENOUGH else 1
    values = field.values.reshape(tuple(field.nodes))[(slice(None, None, skip),) * d]
    step = skip / field.a_bandwidth / ratio  # between these values, in new bandwidths
    wanted = np.maximum(np.ceil((extent + 2.0 * MARGIN) / step), values.shape)
    padded = tuple(fast_length(count) for count in wanted)
    box = step * padded
    nodes = tuple(fast_length(length * density) for length in box)
    sums = np.fft.rfftn(values, s=padded, axes=range(d))
    kept = [
        min((old - 1) // 2, (new - 1) // 2, int(np.ceil(SHORTEST * length / (2.0 * np.pi))))
        for old, new, length in zip(padded, nodes, box, strict=True)
    ]
    numbers = [np.arange(-most, most + 1) for most in kept[:-1]] + [np.arange(kept[-1] + 1)]
    sums = sums[np.ix_(*[some % old for some, old in zip(numbers, padded, strict=True)])]
    missing = 1.0 - 1.0 / ratio**2  # the variance to be added
    before = (box - step * values.shape) / 2.0  # room before the first value
    for axis in range(d):
        k = numbers[axis] * (2.0 * np.pi / box[axis])
        factor = np.exp(-0.5 * missing * k**2 - 1j * k * before[axis]) * (ratio / padded[axis])
        sums = sums * _along(factor, axis, d)
    first = field.first / ratio - before
    return _transformed(sums, tuple(2 * most + 1 for most in kept), nodes, first, np.array(nodes) / box)


def _along(values: np.ndarray, axis: int, d: int) -> np.ndarray:
    """Values that stand along one of d axes."""
    return values.reshape([-1 if k == axis else 1 for k in range(d)])


def _transformed(waves: Spectrum, counts: tuple[int, ...], nodes: tuple[int, ...], first: Array, a: Array) -> Field:
    """The field whose waves these are: of either sign in rising order, but for the last direction."""
    room = np.zeros((*nodes[:-1], nodes[-1] // 2 + 1), dtype=np.complex128)
    places = [wave_numbers(count) % size for count, size in zip(counts[:-1], nodes[:-1], strict=True)]
    room[np.ix_(*places, np.arange(counts[-1] // 2 + 1))] = waves
    values = np.fft.irfftn(room, s=nodes, axes=range(len(nodes)), norm="forward")
    return Field(values.ravel(), np.array(nodes, dtype=np.int64), first, a, float(LEAST_SHARE * values.max()))
