"""Tasks in this thread: what is not in the contract of all."""

from __future__ import annotations

import pytest

from parallel_mix.backends.inline import InlineBackend
from tests.backends.test_contract import Constant


def interrupted(context: int, task: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_is_no_failure_of_the_task() -> None:
    with InlineBackend() as backend:
        backend.share(Constant(0))
        with pytest.raises(KeyboardInterrupt):
            list(backend.map(interrupted, [1]))
