"""Several daemons of one store, named with commas: the first that answers is used."""

import threading
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from cbench_client.remote.channel import Tls, open_sync_channel

# How long one of several may take to answer before the next is asked.
_PATIENCE_SECONDS = 10.0


def addresses_of(target: str) -> list[str]:
    """Return the addresses of a target, in the order in which they are preferred."""
    if not isinstance(target, str):
        raise TypeError(
            f'{target!r} is no address; it is a text such as "127.0.0.1:50051", and several '
            "daemons of one store are named in one text, with commas."
        )
    return [each.strip() for each in target.split(",") if each.strip()] or [target]


class Daemons:
    """Channels to the daemons of one target. May be shared by threads."""

    def __init__(self, target: str, tls: Tls | bool | None, token: str | None) -> None:
        self.addresses = addresses_of(target)
        self._channels: list[Any] = [
            open_sync_channel(address, tls=tls, token=token) for address in self.addresses
        ]
        self._lock = threading.Lock()
        # A single one is used as it is.
        self._place: int | None = 0 if len(self.addresses) == 1 else None

    @property
    def address(self) -> str:
        """The address that is in use, or would be tried first."""
        return self.addresses[self._place or 0]

    @property
    def channel(self) -> Any:
        """The channel to the first daemon that answers, until that one is lost."""
        with self._lock:
            if self._place is None:
                self._place = self._first_answering()
            # If none answers, what is said of the first is said to the caller.
            return self._channels[self._place or 0]

    def is_another_there(self) -> bool:
        """Note that the daemon in use is lost; tell whether another answers in its place."""
        if len(self.addresses) == 1:
            return False
        with self._lock:
            self._place = self._first_answering()
            return self._place is not None

    def close(self) -> None:
        """Close every channel."""
        for channel in self._channels:
            channel.close()

    def _first_answering(self) -> int | None:
        for place, channel in enumerate(self._channels):
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            try:
                health = check(health_pb2.HealthCheckRequest(), timeout=_PATIENCE_SECONDS)
            except (grpc.RpcError, ValueError):  # ValueError where it is closed
                continue
            if health.status == health_pb2.HealthCheckResponse.SERVING:
                return place
        return None
