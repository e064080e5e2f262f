"""How ascents and kernels are cut into the blocks that workers are given: every row is in one of them."""

from __future__ import annotations

import numpy as np
import pytest

from parallel_mix.backends.serial import SerialBackend
from parallel_mix.models.core.sources import HeldRows
from parallel_mix.models.hmac.climbing import KERNEL_BLOCK, MOST_KERNEL_BLOCKS, kernel_blocks
from parallel_mix.models.hmac.levels import fit_hmac
from parallel_mix.models.hmac.result import HmacSettings

WHOLE_BLOCKS = [1, 2, 5, MOST_KERNEL_BLOCKS, 3 * MOST_KERNEL_BLOCKS]


@pytest.mark.parametrize("n", [1, 2, *(k * KERNEL_BLOCK + more for k in WHOLE_BLOCKS for more in (-1, 0, 1, 2))])
def test_blocks_of_kernels_hold_every_row_once(n: int) -> None:
    """Also a last row that is a block by itself."""
    blocks = kernel_blocks(n)
    rows = np.concatenate([np.arange(start, stop) for start, stop in blocks])
    np.testing.assert_array_equal(rows, np.arange(n))
    sizes = [stop - start for start, stop in blocks]
    assert len(set(sizes[:-1])) <= 1
    assert len(blocks) <= MOST_KERNEL_BLOCKS


@pytest.mark.parametrize("approach", [1, 2])
@pytest.mark.parametrize("n", [KERNEL_BLOCK, KERNEL_BLOCK + 1, 2 * KERNEL_BLOCK + 1])
def test_a_last_row_far_from_all_others_is_a_cluster_by_itself(n: int, approach: int) -> None:
    X = np.random.default_rng(0).normal(0.0, 0.1, (n, 2))
    X[-1] = 8.0
    with SerialBackend(threads=1) as backend:
        result = fit_hmac(HeldRows(X), HmacSettings(bandwidths=(1.0,), approach=approach), backend)
    level = result.levels[0]
    assert list(level.sizes) == [n - 1, 1]
    assert list(np.flatnonzero(level.labels == 1)) == [n - 1]
    density = np.exp(level.outward(result.frame).log_density)[1]
    assert density == pytest.approx(1 / (n * 2 * np.pi)), "one kernel's share at its own centre"
