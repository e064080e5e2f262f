"""The cluster that these tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.cluster import Cluster, running_cluster, why_not


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if reason := why_not():
        pytest.skip(reason)
    with running_cluster(tmp_path_factory.mktemp("slurm"), tmp_path_factory.getbasetemp()) as made:
        yield made
