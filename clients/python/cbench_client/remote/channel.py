"""Channels to other processes: sizes, keepalive, TLS and the bearer token in one place."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio

from cbench_client.errors import InsecureToken

MAX_MESSAGE_BYTES = 128 * 1024 * 1024

Options = Sequence[tuple[str, Any]]

_OPTIONS: Options = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # In spite of its name this is how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
    # Retries are the caller's, who knows the deadline and the call id.
    ("grpc.enable_retries", 0),
    # A shared pool would hand a new channel the backoff of an old one.
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True)
class Tls:
    """How to secure a connection. Nothing given means the usual public authorities.

    `ca_pem` holds the certificates to trust, `cert_pem` and `key_pem` this
    side's own for mutual TLS, and `server_name` the name to expect in the
    server's certificate where it differs from the target's.
    """

    ca_pem: bytes | None = None
    cert_pem: bytes | None = None
    key_pem: bytes | None = None
    server_name: str | None = None

    @classmethod
    def from_files(
        cls,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        server_name: str | None = None,
    ) -> "Tls":
        """Read the PEM files named."""
        ca_pem, cert_pem, key_pem = (
            None if path is None else Path(path).read_bytes() for path in (ca, cert, key)
        )
        return cls(ca_pem, cert_pem, key_pem, server_name)

    def credentials(self) -> grpc.ChannelCredentials:
        """Build what gRPC wants."""
        return grpc.ssl_channel_credentials(self.ca_pem, self.key_pem, self.cert_pem)


def tls_of(tls: Tls | bool | None) -> Tls | None:
    """Read the short forms: True is `Tls()`, False is plaintext."""
    if isinstance(tls, Tls):
        return tls
    return Tls() if tls else None


class Address(NamedTuple):
    """Where a target leads. A socket has a `path`, everything else a host and a port."""

    host: str = ""
    port: int | None = None
    path: str | None = None


def address_of(target: str) -> Address:
    """Take a gRPC target such as `localhost:1`, `dns:///h:1` or `unix:/s` apart."""
    for scheme in ("unix-abstract:", "unix://", "unix:"):
        if target.startswith(scheme):
            start = "\0" if scheme == "unix-abstract:" else ""
            return Address(path=start + target.removeprefix(scheme))
    rest = re.sub(r"^(dns:(//[^/]*/)?|ipv4:|ipv6:)", "", target)
    match = re.fullmatch(r"\[(.*)\](?::(\d+))?|([^:]*)(?::(\d+))?", rest)
    if match is None:
        return Address(host=rest)
    port = match[2] or match[4]
    return Address(match[1] or match[3] or "", int(port) if port else None)


def is_loopback(target: str) -> bool:
    """Whether a target cannot leave this machine."""
    address = address_of(target)
    if address.path is not None or address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False


def check_token(target: str, tls: Tls | bool | None, token: str | None) -> None:
    """Refuse to send a token in the clear over a network."""
    if token and tls_of(tls) is None and not is_loopback(target):
        raise InsecureToken(
            f"a token for {target} would travel unencrypted over the network.", advice="USE_TLS"
        )


def open_channel(
    target: str,
    *,
    tls: Tls | bool | None = None,
    token: str | None = None,
    options: Options = (),
) -> grpc.aio.Channel:
    """Open a channel for the running loop; `options` add to or replace ours."""
    check_token(target, tls, token)
    settings, secure = _settings(tls_of(tls), options)
    if secure is None:
        channel = grpc.aio.insecure_channel(target, settings)
    else:
        channel = grpc.aio.secure_channel(target, secure, settings)
    return _TokenChannel(channel, token) if token else channel


def open_sync_channel(
    target: str,
    *,
    tls: Tls | bool | None = None,
    token: str | None = None,
    options: Options = (),
) -> grpc.Channel:
    """Open a channel for threads; otherwise as `open_channel`."""
    check_token(target, tls, token)
    settings, secure = _settings(tls_of(tls), options)
    if secure is None:
        channel = grpc.insecure_channel(target, settings)
    else:
        channel = grpc.secure_channel(target, secure, settings)
    return _SyncTokenChannel(channel, token) if token else channel


def _settings(
    tls: Tls | None, options: Options
) -> tuple[list[tuple[str, Any]], grpc.ChannelCredentials | None]:
    merged = dict(_OPTIONS)
    if tls is not None and tls.server_name:
        merged["grpc.ssl_target_name_override"] = tls.server_name
    merged.update(options)
    return list(merged.items()), None if tls is None else tls.credentials()


class _TokenCall:
    """A method that sends the token each time it is called."""

    def __init__(self, method: Any, token: str) -> None:
        self._method = method
        self._metadata = ("authorization", f"Bearer {token}")

    def __call__(self, *args: Any, metadata: Any = None, **kwargs: Any) -> Any:
        return self._method(*args, metadata=(*(metadata or ()), self._metadata), **kwargs)

    def with_call(self, *args: Any, metadata: Any = None, **kwargs: Any) -> Any:
        return self._method.with_call(*args, metadata=(*(metadata or ()), self._metadata), **kwargs)

    def future(self, *args: Any, metadata: Any = None, **kwargs: Any) -> Any:
        return self._method.future(*args, metadata=(*(metadata or ()), self._metadata), **kwargs)


class _Methods:
    """Hands out the methods of a channel, each with the token.

    gRPC's own way, call credentials, refuses plaintext even on the loopback,
    and an interceptor puts a task and a queue around every streamed message.
    """

    def __init__(self, channel: Any, token: str) -> None:
        self._channel = channel
        self._token = token

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _TokenCall(self._channel.unary_unary(*args, **kwargs), self._token)

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _TokenCall(self._channel.unary_stream(*args, **kwargs), self._token)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        return _TokenCall(self._channel.stream_unary(*args, **kwargs), self._token)

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        return _TokenCall(self._channel.stream_stream(*args, **kwargs), self._token)


class _TokenChannel(_Methods, grpc.aio.Channel):
    async def __aenter__(self) -> "_TokenChannel":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        state: grpc.ChannelConnectivity = self._channel.get_state(try_to_connect)
        return state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        await self._channel.channel_ready()


class _SyncTokenChannel(_Methods, grpc.Channel):
    def __enter__(self) -> "_SyncTokenChannel":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def subscribe(self, callback: Any, try_to_connect: bool | None = False) -> None:
        self._channel.subscribe(callback, try_to_connect)

    def unsubscribe(self, callback: Any) -> None:
        self._channel.unsubscribe(callback)
