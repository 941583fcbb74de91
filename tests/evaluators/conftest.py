"""The model that tests/systems talks to, for judges."""

from tests.systems.conftest import clean_environment, server

__all__ = ["clean_environment", "server"]
