"""One gRPC server with all our services, health and reflection, bound and secured."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio

from cbench_client._gen.cbench.v1 import (
    bench_pb2,
    bench_pb2_grpc,
    evaluator_pb2,
    evaluator_pb2_grpc,
    gateway_pb2,
    gateway_pb2_grpc,
)
from cbench_client.host import reflection
from cbench_server.errors import CbenchError
from cbench_server.rpc.auth import TokenInterceptor
from cbench_server.rpc.bench_service import BenchService
from cbench_server.rpc.evaluator_service import EvaluatorService
from cbench_server.rpc.gateway_service import GatewayService
from cbench_server.rpc.status import StatusInterceptor


class CannotListen(CbenchError):
    """The daemon cannot serve at that address."""

    reason = "CANNOT_LISTEN"


@dataclass(frozen=True)
class ServerSecurity:
    """Who may connect, and how."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    tokens: Sequence[str] = ()
    unsafe: bool = False


class RpcServer:
    """The daemon's gRPC side."""

    def __init__(
        self,
        bench: BenchService,
        evaluator: EvaluatorService,
        gateway: GatewayService,
        security: ServerSecurity,
        *,
        max_message_bytes: int,
        max_calls: int,
    ) -> None:
        interceptors: list[Any] = [StatusInterceptor()]
        if security.tokens:
            interceptors.insert(0, TokenInterceptor(security.tokens))
        self._security = security
        self._gateway = gateway
        self._server = grpc.aio.server(
            interceptors=interceptors,
            maximum_concurrent_rpcs=max_calls,
            options=[
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_send_message_length", max_message_bytes),
                # Two daemons on one port would each get some of the calls.
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        self._health = aio.HealthServicer()
        add: list[tuple[Any, Any]] = [
            (bench_pb2_grpc.add_BenchServicer_to_server, bench),
            (evaluator_pb2_grpc.add_EvaluatorServicer_to_server, evaluator),
            (gateway_pb2_grpc.add_GatewayServicer_to_server, gateway),
            (health_pb2_grpc.add_HealthServicer_to_server, self._health),
        ]
        for add_to_server, servicer in add:
            add_to_server(servicer, self._server)
        self._names = [
            bench_pb2.DESCRIPTOR.services_by_name["Bench"].full_name,
            evaluator_pb2.DESCRIPTOR.services_by_name["Evaluator"].full_name,
            gateway_pb2.DESCRIPTOR.services_by_name["Gateway"].full_name,
        ]
        reflection.enable_server_reflection([*self._names, health.SERVICE_NAME], self._server)

    async def start(self, address: str) -> str:
        """Listen, and return the address with the port that was chosen."""
        check_exposure(address, self._security)
        try:
            if self._security.cert:
                port = self._server.add_secure_port(address, _credentials(self._security))
            else:
                port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise CannotListen(
                f"cannot listen on {address}: the port is taken, or the address is not of this "
                "machine. Stop what listens there, or choose another with --address."
            ) from error
        await self._server.start()
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        if address.startswith("unix:"):
            return address
        return f"{address.rpartition(':')[0]}:{port}"

    async def refuse_new_work(self) -> None:
        """Say so to health checks, and to processes that attach."""
        self._gateway.is_closing = True
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def stop(self, grace: float) -> None:
        """Finish calls, at most `grace` seconds, and stop listening."""
        await self._server.stop(grace)

    async def _set_health(self, status: Any) -> None:
        for name in ("", *self._names):
            await self._health.set(name, status)


def check_exposure(address: str, security: ServerSecurity) -> None:
    """Refuse to listen beyond the loopback without TLS and a token."""
    if _is_local(address) or security.unsafe:
        return
    missing = [
        name
        for name, given in (
            ("TLS (--tls-cert, --tls-key)", security.cert),
            ("a token (--token-file)", security.tokens),
        )
        if not given
    ]
    if missing:
        raise CannotListen(
            f"{address} can be reached from other machines, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Set what is missing, listen on "
            "127.0.0.1, or pass --unsafe-allow-remote if the network is trusted."
        )


def _is_local(address: str) -> bool:
    if address.startswith(("unix:", "unix-abstract:")):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _credentials(security: ServerSecurity) -> grpc.ServerCredentials:
    files: dict[str, Any] = {}
    for name in ("cert", "key", "client_ca"):
        path = getattr(security, name)
        try:
            files[name] = Path(path).read_bytes() if path else None
        except OSError as error:
            raise CannotListen(f"cannot read {path}: {error.strerror}.") from error
    return grpc.ssl_server_credentials(
        [(files["key"], files["cert"])],
        root_certificates=files["client_ca"],
        require_client_auth=files["client_ca"] is not None,
    )
