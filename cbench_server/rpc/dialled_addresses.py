"""Addresses that a daemon dials for its clients, as its operator wants it."""

from collections.abc import Iterable

from cbench_client.remote.channel import is_loopback
from cbench_server.models.dialling import Dialling, set_dialling


def set_dialled(allow: Iterable[str], deny: Iterable[str], listens_at: str) -> None:
    """Set what is dialled; sockets of this machine only for clients that are on it."""
    set_dialling(Dialling.of(allow, deny, has_sockets=is_loopback(listens_at)))
