"""The cluster that these tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, running_cluster, why_not

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in several processes, one of them has the cluster."""
    for item in items:
        if HERE in item.path.parents and {"cluster", "hosts"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("slurm"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if reason := why_not():
        pytest.skip(reason)
    with running_cluster(tmp_path_factory.mktemp("slurm"), tmp_path_factory.getbasetemp()) as made:
        yield made
