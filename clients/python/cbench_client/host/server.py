"""Servers: Python objects served over gRPC, in one line."""

import asyncio
import hmac
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cbench_client.errors import CannotServe
from cbench_client.host import reflection
from cbench_client.host.background import GRACE_S, LoopThread, ending_on_signals, wait_until_done
from cbench_client.host.host import host_for
from cbench_client.host.servable import Servable, Servables
from cbench_client.host.services import Services
from cbench_client.remote.channel import MAX_MESSAGE_BYTES, address_of, is_loopback

PROTOCOL_MAJOR = 1

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Otherwise a second server on the same port would silently share its calls.
    ("grpc.so_reuseport", 0),
    # Callers keep idle connections alive by pings; the default calls that abuse.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
)

TlsFiles = tuple[str | Path, str | Path] | tuple[str | Path, str | Path, str | Path]


class Server:
    """A server in its own thread, for tests, notebooks and larger programs.

    Args:
        systems: One object, or several of any kind, told apart by their methods.
        address: `host:port` or `unix:/path`; port 0 takes a free one.
        max_concurrency: Calls in progress at once, for each object that does
            not state its own.
        tls: Paths of certificate and key, and of a client CA to demand
            certificates from callers.
        token: What callers must send as bearer token.
        unsafe: Allow a network address without TLS and token.
    """

    def __init__(
        self,
        systems: Servables = (),
        address: str = "127.0.0.1:0",
        *,
        memory_systems: Iterable[Servable] = (),
        evaluators: Iterable[Servable] = (),
        max_concurrency: int | None = None,
        tls: TlsFiles | None = None,
        token: str | None = None,
        unsafe: bool = False,
    ) -> None:
        _check_address(address, bool(tls and token), unsafe)
        self.address = address
        self._host = host_for(systems, memory_systems, evaluators, max_concurrency)
        self._credentials = None if tls is None else _credentials(tls)
        self._token = token
        self._thread = LoopThread("cbench-serve")
        self._listening: Future[str] = Future()
        self._stopping = asyncio.Event()
        self._grace = GRACE_S

    @property
    def names(self) -> list[str]:
        """The names of all that is served."""
        return self._host.names

    def start(self) -> "Server":
        """Start listening; `address` then has the real port. Raises `CannotServe`."""
        self._thread.start(self._main())
        self.address = self._listening.result()
        return self

    def stop(self, grace: float = GRACE_S) -> None:
        """Take no more calls, finish those in progress within `grace` seconds, and end."""
        self._grace = grace
        self._thread.call(self._stopping.set)
        self._thread.join(grace)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    async def _main(self) -> None:
        services = Services(self._host)
        interceptors = [_TokenCheck(self._token)] if self._token else []
        server = grpc.aio.server(options=_OPTIONS, interceptors=interceptors)
        services.add_to(server)
        status = cast(Any, health).aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(status, server)
        reflection.enable_server_reflection([*services.names, health.SERVICE_NAME], server)
        try:
            address = _bind(server, self.address, self._credentials)
            await server.start()
        except Exception as error:
            self._listening.set_exception(error)
            return
        for name in ("", *services.names):
            await status.set(name, health_pb2.HealthCheckResponse.SERVING)
        self._listening.set_result(address)
        await self._stopping.wait()
        await status.enter_graceful_shutdown()
        try:
            # Health is answered until the last call is, so that a
            # draining server is not taken for a dead one.
            await asyncio.wait_for(services.drain(), self._grace)
        except TimeoutError:
            if not services.is_idle:
                print("calls in progress did not end in time and are given up", file=sys.stderr)
        self._host.close()
        await server.stop(0.2)


def serve(
    systems: Servables = (),
    address: str = "127.0.0.1:0",
    *,
    memory_systems: Iterable[Servable] = (),
    evaluators: Iterable[Servable] = (),
    max_concurrency: int | None = None,
    tls: TlsFiles | None = None,
    token: str | None = None,
    unsafe: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, then finish the calls in progress and return.

    Takes what `Server` takes. On port 0, or with `CBENCH_HANDSHAKE=1` in the
    environment, one line on stdout says where: `cbench|1|tcp|127.0.0.1:40123`.
    From then on all that is printed goes to stderr, because stdout may not be
    read any more.
    """
    server = Server(
        systems,
        address,
        memory_systems=memory_systems,
        evaluators=evaluators,
        max_concurrency=max_concurrency,
        tls=tls,
        token=token,
        unsafe=unsafe,
    )
    ended: Future[None] = Future()
    with ending_on_signals(lambda: ended.set_result(None)):
        server.start()
        with _handshake(address, server.address):
            print(f"serving {', '.join(server.names)} on {server.address}", file=sys.stderr)
            wait_until_done(ended)
            server.stop()


@contextmanager
def _handshake(asked: str, address: str) -> Iterator[None]:
    if address_of(asked).port != 0 and os.environ.get("CBENCH_HANDSHAKE") != "1":
        yield
        return
    path = address_of(address).path
    where = f"tcp|{address}" if path is None else f"unix|{path}"
    print(f"cbench|{PROTOCOL_MAJOR}|{where}", flush=True)
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout = stdout


def _check_address(address: str, is_secured: bool, unsafe: bool) -> None:
    where = address_of(address)
    if where.path is None and where.port is None:
        raise CannotServe(f'"{address}" has no port. Give host:port, or unix:/path.')
    if not (is_loopback(address) or is_secured or unsafe):
        raise CannotServe(
            f"{address} can be reached from the network, where anybody could call what is served. "
            "Pass tls=(cert, key) and token=..., serve on 127.0.0.1, or accept it with unsafe=True."
        )


def _bind(server: grpc.aio.Server, address: str, tls: grpc.ServerCredentials | None) -> str:
    where = address_of(address)
    # gRPC takes over the socket file of a server that still runs.
    if where.path is not None and _answers(where.path):
        raise CannotServe(f"{address} is taken by another server. Stop it, or choose another path.")
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, tls)
    except RuntimeError as error:
        raise CannotServe(
            f"cannot listen on {address}: it is taken, or not an address of this machine. "
            "Choose another, or port 0 for any free one."
        ) from error
    return address if where.path is not None else f"{address.rpartition(':')[0]}:{port}"


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    try:
        cert, key, *client_ca = (Path(path).read_bytes() for path in tls)
    except OSError as error:
        raise CannotServe(f"cannot read {error.filename}: {error.strerror}.") from error
    ca = client_ca[0] if client_ca else None
    return grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=ca is not None)


class _TokenCheck(grpc.aio.ServerInterceptor):
    """Refuses calls without the token, except to ask for health."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        # A stream handler refuses at once; a unary one would wait for a message.
        self._refusal: Any = grpc.stream_stream_rpc_method_handler(_refuse)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:
        if not details.method.startswith(f"/{health.SERVICE_NAME}/"):
            given = str(dict(details.invocation_metadata or ()).get("authorization", ""))
            if not hmac.compare_digest(given.encode(), self._expected):
                return self._refusal
        return await continuation(details)


async def _refuse(_: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(
        grpc.StatusCode.UNAUTHENTICATED, "a bearer token is needed in `authorization`"
    )
