"""The common part of all objects that stand for remote ones."""

import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from cbench_client.errors import RemoteFailure, Unencodable, Unreachable
from cbench_client.messages import convert
from cbench_client.remote.channel import Tls, check_token
from cbench_client.remote.connection import SystemConnection
from cbench_client.remote.loops import PerLoop, run, with_retries
from cbench_client.remote.unary import UnaryConnection

_DESCRIBE_TIMEOUT = 5.0

C = TypeVar("C", SystemConnection, UnaryConnection)
T = TypeVar("T")


class Peer(Generic[C]):
    """A target, a name, and a connection for each event loop."""

    _kind = "system"

    def __init__(
        self,
        target: str,
        name: str | None,
        timeout: float,
        tls: Tls | bool | None,
        token: str | None,
    ) -> None:
        self.target, self._served = split_target(target)
        self.timeout = timeout
        check_token(self.target, tls, token)
        self._tls = tls
        self._token = token
        self._name = name
        self._version: str | None = None
        self._connections: PerLoop[C] = PerLoop(self._open)
        # Those on which Describe has answered.
        self._met: weakref.WeakSet[C] = weakref.WeakSet()

    @property
    def name(self) -> str:
        """The name given, else the one the process gives it."""
        if self._name is None and self._served is None:
            run(self._connect())
        return self._name or self._served or ""

    @property
    def version(self) -> str:
        """The version the process states."""
        if self._version is None:
            run(self._connect())
        return self._version or ""

    def close(self) -> None:
        """Close every connection."""
        self._connections.close()

    async def aclose(self) -> None:
        """Close the connection of the running loop."""
        await self._connections.close_here()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _open(self) -> C:
        """Make a connection for the running loop."""
        raise NotImplementedError

    async def _offers(self, connection: C) -> Mapping[str, str]:
        """Ask what is served: versions by name."""
        raise NotImplementedError

    async def connect(self) -> None:
        """Reach the process now, not at the first call. Raises `Unreachable`."""
        await self._connect()

    async def _connect(self) -> C:
        connection = self._connections.get()
        if connection not in self._met:
            offers = await self._offers(connection)
            self._served = choose(self.target, self._kind, self._served, self._name, offers)
            self._version = offers.get(self._served, "")
            self._met.add(connection)
        return connection


def split_target(target: str) -> tuple[str, str | None]:
    """Take `host:port/NAME` apart."""
    match = re.fullmatch(r"(.*:\d+)/([^/]+)", target)
    if match is None or target.startswith("unix"):
        return target, None
    return match[1], match[2]


def choose(
    target: str, kind: str, served: str | None, name: str | None, offers: Mapping[str, str]
) -> str:
    """Find which of the things offered is meant. Raises `Unreachable` naming them."""
    names = ", ".join(sorted(offers))
    if served is not None:
        if served in offers or served.replace("_", "-") in offers:
            return served
        raise Unreachable(f'{target} serves no {kind} "{served}". It serves: {names}.')
    if len(offers) == 1:
        return next(iter(offers))
    if name in offers:
        return str(name)
    raise Unreachable(
        f"{target} serves several {kind}s: {names}. Name one, as in {target}/{min(offers)}."
    )


async def versions(connection: UnaryConnection, response_type: Any, field: str) -> dict[str, str]:
    """Ask what is served: versions by name."""
    offers = getattr(await describe(connection, response_type, field), field)
    return {offer.name: offer.version for offer in offers}


async def describe(connection: UnaryConnection, response_type: Any, field: str) -> Any:
    """Ask what is served."""
    data = await connection.describe(_DESCRIBE_TIMEOUT)
    try:
        described = response_type.FromString(data)
    except DecodeError:
        raise Unreachable(
            f"{connection.target} answered Describe with bytes that cannot be decoded. "
            "Does it serve another version of the protocol?"
        ) from None
    if not getattr(described, field):
        raise Unreachable(f"{connection.target} answers, but offers nothing. Register it there.")
    return described


async def ask(
    connection: UnaryConnection, method: str, request: Message, response_type: Any, timeout: float
) -> Any:
    """Call a method, with retries, and decode what it answers."""
    encoded = request.SerializeToString()
    data = await with_retries(lambda seconds, _: connection.call(method, encoded, seconds), timeout)
    return decoded(connection.target, lambda: response_type.FromString(data))


def decoded(target: str, decode: Callable[[], T]) -> T:
    """Decode an answer. Raises `RemoteFailure` if that is impossible."""
    try:
        return decode()
    except (DecodeError, Unencodable) as error:
        why = f": {error}" if isinstance(error, Unencodable) else "."
        raise RemoteFailure(
            f"{target} sent an answer that cannot be decoded{why}",
            reason="UNDECODABLE_RESPONSE",
        ) from None


def present(response: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Take the optional fields that are set, and the usage, out of a response."""
    reply = {name: getattr(response, name) for name in names if response.HasField(name)}
    if response.HasField("usage"):
        reply["usage"] = convert.usage_from_proto(response.usage)
    return reply
