"""The model that proxies and readers talk to."""

from tests.fixtures.model_server import ModelServer, clean_environment, server

__all__ = ["ModelServer", "clean_environment", "server"]
