"""Server reflection, by both of its names, whose code is imported when it is asked for.

Few servers are ever asked, and importing it takes as long as grpc itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc
import grpc.aio

SERVICE_NAME = "grpc.reflection.v1alpha.ServerReflection"
STABLE_NAME = "grpc.reflection.v1.ServerReflection"
"""The messages of both are the same."""


def enable_server_reflection(names: Sequence[str], server: grpc.aio.Server) -> None:
    """Let clients ask `server` for the services of these names, and for their messages."""
    server.add_generic_rpc_handlers((_Handler([*names, SERVICE_NAME, STABLE_NAME]),))


class _Call(NamedTuple):
    """What a handler is asked for."""

    method: str
    invocation_metadata: Any


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._handlers: list[Any] = []

    def service(self, handler_call_details: Any) -> Any:
        service, _, method = handler_call_details.method.lstrip("/").partition("/")
        if service not in (SERVICE_NAME, STABLE_NAME):
            return None
        if not self._handlers:
            self._load()
        asked = _Call(f"/{SERVICE_NAME}/{method}", handler_call_details.invocation_metadata)
        return self._handlers[0].service(asked)

    def _load(self) -> None:
        from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

        symbols = _Symbols(reflection_pb2.DESCRIPTOR)
        servicer = reflection.aio.ReflectionServicer(self._names, pool=symbols)
        # It adds its handlers to us instead of to the server, which has begun.
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self)

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Take handlers as a server would."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """Ignore what the generic handler knows too."""


class _Symbols:
    """The descriptors of this process, and those of the stable service; also knows members.

    The pool of protobuf finds no methods and no values of enums.
    """

    def __init__(self, unstable: Any) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool

        self._pool = descriptor_pool.Default()
        file = descriptor_pb2.FileDescriptorProto()
        unstable.CopyToProto(file)
        _rename(file)
        self._stable = descriptor_pool.DescriptorPool()
        self._stable.Add(file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileByName(self, name: str) -> Any:  # noqa: N802 - as the pool of protobuf
        """Return a file, or raise KeyError."""
        try:
            return self._pool.FindFileByName(name)
        except KeyError:
            return self._stable.FindFileByName(name)

    def FindFileContainingSymbol(self, name: str) -> Any:  # noqa: N802 - as the pool of protobuf
        """Return the file with a symbol, or raise KeyError."""
        for pool in (self._pool, self._stable):
            try:
                return pool.FindFileContainingSymbol(name)
            except KeyError:
                if (file := _file_of_member(pool, name)) is not None:
                    return file
        raise KeyError(name)


def _file_of_member(pool: Any, name: str) -> Any:
    """Return the file of a method, or of a value of an enum; None if it is neither."""
    parent, _, last = name.rpartition(".")
    for find, members in (
        (pool.FindServiceByName, "methods_by_name"),
        (pool.FindEnumTypeByName, "values_by_name"),
        (pool.FindMessageTypeByName, "enum_values_by_name"),
    ):
        try:
            found = find(parent)
        except KeyError:
            continue
        if last in getattr(found, members):
            return found.file
    return None


def _rename(message: Any) -> None:
    """Put the stable name into every text of a descriptor."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.message_type is not None:
            for each in values:
                _rename(each)
        elif field.type == field.TYPE_STRING:
            renamed = [each.replace("v1alpha", "v1") for each in values]
            if field.is_repeated:
                del value[:]
                value.extend(renamed)
            else:
                setattr(message, field.name, renamed[0])
