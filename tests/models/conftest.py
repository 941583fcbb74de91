"""The model that the chat client and the readers talk to."""

from tests.fixtures.model_server import ModelServer, clean_environment, server

__all__ = ["ModelServer", "clean_environment", "server"]
