"""Server reflection whose code is imported when it is asked for.

Few servers are ever asked, and importing it takes as long as grpc itself.
"""

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

SERVICE_NAME = "grpc.reflection.v1alpha.ServerReflection"


def enable_server_reflection(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Let clients ask `server` for the services of these names, and for their messages."""
    server.add_generic_rpc_handlers((_Handler([*names, SERVICE_NAME]),))


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._handlers: list[Any] = []

    def service(self, handler_call_details: Any) -> Any:
        if not handler_call_details.method.startswith(f"/{SERVICE_NAME}/"):
            return None
        if not self._handlers:
            self._load()
        return self._handlers[0].service(handler_call_details)

    def _load(self) -> None:
        from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

        servicer = reflection.aio.ReflectionServicer(self._names)
        # It adds its handlers to us instead of to the server, which has begun.
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self)

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Take handlers as a server would."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Ignore what the generic handler knows too."""
