"""Memory systems in other processes, dialled by the daemon."""

import time
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from cbench_client import Tls
from cbench_client._gen.cbench.v1 import memory_pb2
from cbench_client.errors import ClientError, Refused, RemoteFailure, Unencodable, Unreachable
from cbench_client.remote.description import SystemDescription as ServedSystem
from cbench_client.remote.description import read_info
from cbench_client.remote.unary import UnaryConnection
from cbench_server.errors import CallFailed, InvalidSpec, SystemUnreachable, UnknownName
from cbench_server.results import Failure
from cbench_server.rpc.memory_messages import METHODS, answer_of, request_of
from cbench_server.rpc.remote import call_failed
from cbench_server.spec import Options, SystemRef
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    CallTasks,
    Failed,
    SystemDescription,
)

SERVICE = "cbench.v1.MemorySystem"
_DESCRIBE_SECONDS = 5.0


async def served_memories(
    address: str, tls: Tls | None, token: str | None, target: str, served_name: str = ""
) -> list[ServedSystem]:
    """Ask an address, which is called `target`, for its memory systems, or for the one named."""
    connection = _open(address, tls, token)
    try:
        described = await _describe(connection)
    finally:
        await connection.close()
    names = [info.name for info in described.systems]
    if served_name and served_name not in names:
        unknown = UnknownName("served memory system", served_name, names)
        raise SystemUnreachable(f"at {target} there is {unknown}")
    return [
        read_info(info, described.sdk)
        for info in described.systems
        if served_name in ("", info.name)
    ]


def memory_caller(
    ref: SystemRef,
    system: ServedSystem,
    address: str,
    tls: Tls | None,
    token: str | None,
    options: Options,
) -> "RemoteMemoryCaller":
    """Return what calls a memory system, under the name that its reference gives."""
    description = SystemDescription(
        name=ref.name or system.name,
        version=system.version,
        description=system.description,
        max_concurrency=system.max_concurrency,
        location=ref.target,
        sdk=system.sdk,
    )
    connection = _open(address, tls, token)
    return RemoteMemoryCaller(connection, system.name, description, options)


def _open(target: str, tls: Tls | None, token: str | None) -> UnaryConnection:
    try:
        return UnaryConnection(target, SERVICE, tls=tls, token=token)
    except ClientError as error:
        raise InvalidSpec(str(error)) from error


async def _describe(connection: UnaryConnection) -> memory_pb2.MemorySystemDescribeResponse:
    try:
        data = await connection.describe(_DESCRIBE_SECONDS)
    except (Unreachable, Refused) as error:
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
    """Calls one memory system over its own connection."""

    ahead = 0
    capacity: int | None = None
    replicas = None

    def __init__(
        self,
        connection: UnaryConnection,
        served_name: str,
        description: SystemDescription,
        options: Options,
    ) -> None:
        self.description = description
        self._options = options
        self._connection = connection
        self._served_name = served_name
        self._calls = CallTasks()
        self._has_stood = False
        self._drops = 0
        self.wait_connected = connection.wait_connected

    @property
    def era(self) -> str:
        """How often the connection was found gone: a process that restarts cannot keep it."""
        self._note_loss()
        return str(self._drops)

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands."""
        return self._note_loss()

    def _note_loss(self) -> bool:
        # After a loss the channel rests until somebody asks, so all who ask have to note it.
        is_connected = self._connection.is_connected
        if self._has_stood and not is_connected:
            self._has_stood = False
            self._drops += 1
        return is_connected

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        era = self.era
        for call in calls:
            self._calls.start(call, self._call(call, timeout, era), answered, failed)

    async def _call(self, call: Call, timeout: float, era: str) -> Answer:
        if self.era != era:
            # Between the two turns of the loop. Who comes instead would answer from nothing.
            message = f"the connection to {self._connection.target} broke off."
            raise CallFailed(Failure("transport", "UNAVAILABLE", message, retryable=True))
        method, response = METHODS[type(call.work)]
        request = request_of(call, self._served_name, self._options).SerializeToString()
        started = time.monotonic()
        try:
            data = await self._connection.call(method, request, timeout, call.trace)
        except RemoteFailure as error:
            raise call_failed(error) from error
        latency = time.monotonic() - started
        self._has_stood = True
        try:
            return answer_of(call, response.FromString(data), latency)
        except (DecodeError, Unencodable) as error:
            message = f"{self._connection.target} sent an answer that cannot be decoded: {error}"
            raise CallFailed(Failure("system", "UNDECODABLE_RESPONSE", message)) from error

    def widen(self, calls: int) -> None:
        """Do nothing: it queues no calls by itself."""

    def give_up(self, call: Call) -> None:
        """See Caller."""
        self._calls.give_up(call)

    async def close(self) -> None:
        """Close the connection."""
        self._calls.close()
        await self._connection.close()
