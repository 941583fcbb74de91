"""The models that the chat client and the readers talk to: scripted ones, and a small real one."""

from tests.fixtures.local_model import local_model
from tests.fixtures.model_server import ModelServer, clean_environment, server

__all__ = ["ModelServer", "clean_environment", "local_model", "server"]
