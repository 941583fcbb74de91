"""What tests of telemetry share."""

import os

import pytest

from tests.fixtures.model_server import ModelServer, server

__all__ = ["ModelServer", "server"]


@pytest.fixture
def untraced_environment() -> dict[str, str]:
    """The environment of the test, without what asks for traces."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
