"""The model that judges ask."""

from tests.fixtures.model_server import clean_environment, server

__all__ = ["clean_environment", "server"]
