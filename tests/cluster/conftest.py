"""A cluster for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clusters import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path / "cluster")
    yield found
    found.close()
