"""The peer that connections are made to."""

from tests.fixtures.peer import connect, peer

__all__ = ["connect", "peer"]
