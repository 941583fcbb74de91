"""Server reflection whose code is imported when it is asked for, in both of its versions.

Few servers are ever asked, and importing it takes as long as grpc itself.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio

SERVICE_NAME = "grpc.reflection.v1alpha.ServerReflection"
V1_SERVICE_NAME = "grpc.reflection.v1.ServerReflection"


def enable_server_reflection(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Let clients ask `server` for the services of these names, and for their messages."""
    server.add_generic_rpc_handlers((_Handler([*names, SERVICE_NAME, V1_SERVICE_NAME]),))


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._handlers: list[Any] = []

    def service(self, handler_call_details: Any) -> Any:
        # The versions differ in their names only.
        service, _, method = handler_call_details.method.lstrip("/").rpartition("/")
        if service not in (SERVICE_NAME, V1_SERVICE_NAME):
            return None
        if not self._handlers:
            self._load()
        return self._handlers[0].service(SimpleNamespace(method=f"/{SERVICE_NAME}/{method}"))

    def _load(self) -> None:
        from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

        servicer = reflection.aio.ReflectionServicer(self._names, _Symbols())
        # It adds its handlers to us instead of to the server, which has begun.
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self)

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Take handlers as a server would."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Ignore what the generic handler knows too."""


class _Symbols:
    """The pool of descriptors, in which methods are found as well, and v1 of reflection itself."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, text_format
        from grpc_reflection.v1alpha import reflection_pb2

        self._pool: Any = descriptor_pool.Default()
        self._v1: Any = descriptor_pool.DescriptorPool()
        file = descriptor_pb2.FileDescriptorProto()
        reflection_pb2.DESCRIPTOR.CopyToProto(file)
        as_text = text_format.MessageToString(file).replace("v1alpha", "v1")
        self._v1.Add(text_format.Parse(as_text, descriptor_pb2.FileDescriptorProto()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileByName(self, name: str) -> Any:  # noqa: N802 - gRPC's own code calls it
        try:
            return self._pool.FindFileByName(name)
        except KeyError:
            return self._v1.FindFileByName(name)

    def FindFileContainingSymbol(self, symbol: str) -> Any:  # noqa: N802 - likewise
        for pool in (self._pool, self._v1):
            for find in (pool.FindFileContainingSymbol, lambda name, pool=pool: _owner(pool, name)):
                try:
                    return find(symbol)
                except KeyError:
                    continue
        raise KeyError(symbol)


def _owner(pool: Any, symbol: str) -> Any:
    """Return the file of a method, which a pool does not find by itself."""
    service, _, method = symbol.rpartition(".")
    return pool.FindServiceByName(service).methods_by_name[method].containing_service.file
