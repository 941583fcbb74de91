"""Memory systems in another process, dialled by the daemon."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from cbench_client import Tls
from cbench_client._gen.cbench.v1 import memory_pb2
from cbench_client.errors import ClientError, RemoteFailure, Unencodable, Unreachable
from cbench_client.unary import UnaryConnection
from cbench_server.errors import CallFailed, InvalidSpec, SystemUnreachable, UnknownName
from cbench_server.results import Failure
from cbench_server.rpc import memory_messages as messages
from cbench_server.rpc.convert import description_from_info
from cbench_server.rpc.remote_caller import call_failed
from cbench_server.systems.caller import SystemDescription
from cbench_server.systems.memory_caller import (
    IngestReply,
    MemoryCaller,
    QueryReply,
    Question,
    Turn,
)

SERVICE = "cbench.v1.MemorySystem"
_DESCRIBE_SECONDS = 5.0
T = TypeVar("T")


async def remote_memory(
    target: str, served_name: str, tls: Tls | None, token: str | None
) -> list[MemoryCaller]:
    """Reach the memory systems served at a target, or the one named."""
    try:
        connection = UnaryConnection(target, SERVICE, tls=tls, token=token)
    except ClientError as error:
        raise InvalidSpec(str(error)) from error
    try:
        described = await _describe(connection)
    finally:
        await connection.close()
    names = [info.name for info in described.systems]
    if served_name and served_name not in names:
        unknown = UnknownName("served memory system", served_name, names)
        raise SystemUnreachable(f"at {target} there is {unknown}")
    return [
        RemoteMemoryCaller(
            UnaryConnection(target, SERVICE, tls=tls, token=token),
            description_from_info(info, target, described.sdk),
        )
        for info in described.systems
        if served_name in ("", info.name)
    ]


async def _describe(connection: UnaryConnection) -> memory_pb2.MemorySystemDescribeResponse:
    try:
        data = await connection.describe(_DESCRIBE_SECONDS)
    except Unreachable as error:
        raise SystemUnreachable(str(error)) from error
    try:
        described = memory_pb2.MemorySystemDescribeResponse.FromString(data)
    except DecodeError as error:
        raise SystemUnreachable(
            f"{connection.target} answered Describe with bytes that cannot be decoded. "
            f"Does it serve another version of {SERVICE}?"
        ) from error
    if not described.systems:
        raise SystemUnreachable(f"{connection.target} answers, but serves no memory system.")
    return described


class RemoteMemoryCaller:
    """Calls one memory system over a connection of its own."""

    def __init__(self, connection: UnaryConnection, description: SystemDescription) -> None:
        self.description = description
        self._connection = connection
        self._name = description.name
        self._has_stood = False
        self._drops = 0
        self.wait_connected = connection.wait_connected
        self.close = connection.close

    @property
    def era(self) -> str:
        """How often the connection was found gone: a process that restarts cannot keep it."""
        # After a loss the channel rests until it is used, so asking before each use misses none.
        if self._has_stood and not self._connection.is_connected:
            self._has_stood = False
            self._drops += 1
        return str(self._drops)

    async def reset(self, scope: str, *, call_id: str, timeout: float) -> None:
        """Make one attempt."""
        await self._call(
            "Reset",
            messages.reset_request(self._name, scope),
            timeout,
            lambda data, latency: None,
        )

    async def ingest(
        self, scope: str, turns: list[Turn], *, call_id: str, timeout: float
    ) -> IngestReply:
        """Make one attempt."""
        return await self._call(
            "Ingest",
            messages.ingest_request(self._name, scope, turns, call_id),
            timeout,
            lambda data, latency: messages.ingest_reply(
                memory_pb2.IngestResponse.FromString(data), latency
            ),
        )

    async def query(
        self, scope: str, question: Question, *, call_id: str, timeout: float
    ) -> QueryReply:
        """Make one attempt."""
        return await self._call(
            "Query",
            messages.query_request(self._name, scope, question, call_id),
            timeout,
            lambda data, latency: messages.query_reply(
                memory_pb2.QueryResponse.FromString(data), latency
            ),
        )

    async def _call(
        self,
        method: str,
        request: Message,
        timeout: float,
        decode: Callable[[bytes, float], T],
    ) -> T:
        _ = self.era
        started = time.monotonic()
        try:
            data = await self._connection.call(method, request.SerializeToString(), timeout)
        except RemoteFailure as error:
            raise call_failed(error) from error
        self._has_stood = True
        try:
            return decode(data, time.monotonic() - started)
        except (DecodeError, Unencodable) as error:
            raise _undecodable(self._connection.target, error) from error


def _undecodable(target: str, error: Any) -> CallFailed:
    message = f"{target} sent an answer that cannot be decoded: {error}"
    return CallFailed(Failure("system", "UNDECODABLE_RESPONSE", message))
