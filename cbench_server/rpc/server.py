"""One gRPC server with all our services, health and reflection, bound and secured."""

import asyncio
import ipaddress
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cbench_client._gen.cbench.v1 import (
    bench_pb2,
    bench_pb2_grpc,
    evaluator_pb2,
    evaluator_pb2_grpc,
    gateway_pb2,
    gateway_pb2_grpc,
)
from cbench_client.host import reflection
from cbench_server.rpc.bench_service import BenchService
from cbench_server.rpc.call_shares import CallShares
from cbench_server.rpc.certificates import CannotListen, Certificates
from cbench_server.rpc.door import Door, Served
from cbench_server.rpc.evaluator_service import EvaluatorService
from cbench_server.rpc.gateway_service import GatewayService
from cbench_server.rpc.health_service import HealthService
from cbench_server.rpc.keyring import Keyring

log = logging.getLogger(__name__)

MAX_STREAMS_PER_CONNECTION = 250
"""Calls over one connection; further ones wait at the client until others end."""
HANDSHAKE_SECONDS = 5
"""A connection that has not said what it speaks by then is closed."""
PING_STRIKES = 60
"""Pings within 5 s of another, and without anything else between, that a connection may send."""
UNREAD_BYTES = 256 * 1024
"""What is taken of a call before our code reads it, and of a stream ahead of it."""
IDLE_SECONDS = 300
"""A connection without a call for so long is closed; clients make it again by themselves."""

_SOCKETS = ("unix:", "unix-abstract:")
# gRPC would take 99999 for 34463.
_LAST_PORT = 65_535


@dataclass(frozen=True)
class ServerSecurity:
    """Who may connect, and how."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    unsafe: bool = False


class RpcServer:
    """The daemon's gRPC side."""

    def __init__(
        self,
        bench: BenchService,
        evaluator: EvaluatorService,
        gateway: GatewayService,
        security: ServerSecurity,
        keyring: Keyring,
        *,
        max_message_bytes: int,
        max_calls: int,
        max_connections: int,
        served: Served | None = None,
    ) -> None:
        self._security = security
        self._keyring = keyring
        self._gateway = gateway
        self._watching: asyncio.Task[None] | None = None
        self._server = grpc.aio.server(
            # gRPC's own limit of calls would count those of strangers too.
            interceptors=[Door(keyring, CallShares(max_calls, lambda: keyring.is_shared), served)],
            options=[
                ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
                ("grpc.max_allowed_incoming_connections", max_connections),
                ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
                ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_send_message_length", max_message_bytes),
                # Two daemons on one port would each get some of the calls.
                ("grpc.so_reuseport", 0),
                # gRPC would take more and more of what nobody has read yet, without a bound.
                ("grpc.http2.bdp_probe", 0),
                ("grpc.http2.lookahead_bytes", UNREAD_BYTES),
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.http2.max_ping_strikes", PING_STRIKES),
            ],
        )
        self._names = [
            bench_pb2.DESCRIPTOR.services_by_name["Bench"].full_name,
            evaluator_pb2.DESCRIPTOR.services_by_name["Evaluator"].full_name,
            gateway_pb2.DESCRIPTOR.services_by_name["Gateway"].full_name,
        ]
        self._health = HealthService(self._names)
        add: list[tuple[Any, Any]] = [
            (bench_pb2_grpc.add_BenchServicer_to_server, bench),
            (evaluator_pb2_grpc.add_EvaluatorServicer_to_server, evaluator),
            (gateway_pb2_grpc.add_GatewayServicer_to_server, gateway),
            (health_pb2_grpc.add_HealthServicer_to_server, self._health),
        ]
        for add_to_server, servicer in add:
            add_to_server(servicer, self._server)
        reflection.enable_server_reflection([*self._names, health.SERVICE_NAME], self._server)

    async def start(self, address: str) -> str:
        """Listen, and return the address with the port that was chosen."""
        check_exposure(address, self._security, has_tokens=self._keyring.is_locked)
        try:
            if self._security.cert:
                files = (self._security.cert, self._security.key, self._security.client_ca)
                port = self._server.add_secure_port(address, Certificates(*files).credentials())
            else:
                port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise CannotListen(
                f"cannot listen on {address}: the port is taken, or the address is not of this "
                "machine. Stop what listens there, or choose another with --address."
            ) from error
        if address.startswith("unix:"):
            # Whoever can open the socket can call.
            os.chmod(address.removeprefix("unix:").removeprefix("//"), 0o600)
        if self._security.unsafe and not _is_local(address):
            log.warning("%s is open to other machines: --unsafe-allow-remote", address)
        await self._server.start()
        self._watching = asyncio.create_task(self._keyring.keep_watch())
        if address.startswith("unix:"):
            return address
        return f"{address.rpartition(':')[0]}:{port}"

    async def refuse_new_work(self) -> None:
        """Say so to health checks, and to processes that attach."""
        self._gateway.is_closing = True
        self._health.set(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def stop(self, grace: float) -> None:
        """Finish calls, at most `grace` seconds, and stop listening."""
        await self._server.stop(grace)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


def check_exposure(address: str, security: ServerSecurity, *, has_tokens: bool) -> None:
    """Refuse what is no address, and to listen beyond the loopback without TLS and a token."""
    if not address.startswith(_SOCKETS) and not _has_port(address):
        raise CannotListen(
            f'"{address}" is not an address to listen at; write it as HOST:PORT or unix:/PATH.'
        )
    if _is_local(address) or security.unsafe:
        return
    missing = [
        name
        for name, given in (
            ("TLS (--tls-cert, --tls-key)", security.cert),
            ("a token (--token-file)", has_tokens),
        )
        if not given
    ]
    if missing:
        raise CannotListen(
            f"{address} can be reached from other machines, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Set what is missing, listen on "
            "127.0.0.1, or pass --unsafe-allow-remote if the network is trusted."
        )


def _has_port(address: str) -> bool:
    port = address.rpartition(":")[2]
    return ":" in address and port.isdecimal() and int(port) <= _LAST_PORT


def _is_local(address: str) -> bool:
    if address.startswith(_SOCKETS):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
