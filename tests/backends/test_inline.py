"""Tasks in this thread: as with workers, but at once."""

from __future__ import annotations

import pytest

from parallel_mix.backends.inline import InlineBackend
from parallel_mix.errors import Stopped, TaskError
from tests.backends.test_contract import Constant, add, fail_on_three, plus_context


def test_results_failures_and_stops_are_those_of_workers() -> None:
    with InlineBackend() as backend:
        backend.share(Constant(10))
        assert list(backend.map(plus_context, [1, 2, 3])) == [(0, 11), (1, 12), (2, 13)]
        assert list(backend.map(plus_context, [])) == []
        assert backend.map_reduce(plus_context, [1, 2, 3], add) == 36
        with pytest.raises(TaskError, match=r"Task 3 failed on .*three is too many"):
            list(backend.map(fail_on_three, list(range(10))))
        backend.stop.signum = 15
        with pytest.raises(Stopped):
            list(backend.map(plus_context, [1]))
