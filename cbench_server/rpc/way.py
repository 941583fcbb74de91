"""The way to what is served at a target: its address, and how the connection is secured."""

from typing import NamedTuple

from cbench_client import Tls
from cbench_client.errors import ClientError
from cbench_client.remote.connection import SystemConnection
from cbench_server.errors import InvalidSpec
from cbench_server.spec import SystemRef


class Way(NamedTuple):
    """The way to what is served at a target."""

    address: str
    """The one that was judged, as a target for gRPC."""
    tls: Tls | None
    token: str | None

    def open(self) -> SystemConnection:
        """Open a connection."""
        try:
            return SystemConnection(self.address, tls=self.tls, token=self.token)
        except ClientError as error:
            raise InvalidSpec(str(error)) from error

    def told(self, error: Exception, ref: SystemRef) -> str:
        """Return what went wrong, with the target as it was written."""
        return str(error).replace(self.address, ref.target)
