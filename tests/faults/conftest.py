"""A daemon and its client for each test that asks, and chance that comes from one seed."""

from tests.e2e.conftest import client as client
from tests.e2e.conftest import daemon as daemon
from tests.fixtures.chance import SEED
from tests.fixtures.chance import chance as chance


def pytest_report_header() -> str:
    return f"faults: seed {SEED}; again with: make faults SEED={SEED}"
