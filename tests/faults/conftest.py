"""A daemon and its client for each test that asks, and chance that comes from one seed."""

import os
import random

import pytest

from tests.e2e.conftest import client as client
from tests.e2e.conftest import daemon as daemon

SEED = os.environ.get("CBENCH_FAULTS_SEED", "1")


def pytest_report_header() -> str:
    return f"faults: seed {SEED}; again with: make faults SEED={SEED}"


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """What decides when and where a fault falls: the same for a seed, whatever runs before."""
    return random.Random(f"{SEED} {request.node.nodeid}")
