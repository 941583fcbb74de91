"""Faults of the server and the life of its process."""

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import grpc
import program
from faults.registry import fault
from grpc_health.v1 import health, health_pb2

import cbench_client
from cbench_client.host import attachment, background, server, services, session
from cbench_client.host import host as hosting


@fault
def health_is_unknown() -> None:
    tell = health.aio.HealthServicer.set

    async def shrug(self: Any, service: str, status: Any) -> None:
        await tell(self, service, health_pb2.HealthCheckResponse.UNKNOWN)

    health.aio.HealthServicer.set = shrug


@fault
def health_is_always_good() -> None:
    good = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    async def check(self: Any, request: Any, context: Any) -> Any:
        return good

    async def watch(self: Any, request: Any, context: Any) -> Any:
        yield good
        await asyncio.Event().wait()

    health.aio.HealthServicer.Check = check
    health.aio.HealthServicer.Watch = watch


@fault
def no_reflection() -> None:
    server.reflection.enable_server_reflection = lambda names, at: None


@fault
def any_method_is_answered() -> None:
    class Obliging(grpc.GenericRpcHandler):
        def service(self, details: Any) -> Any:
            async def answer(_: bytes, context: Any) -> bytes:
                return b""

            return grpc.unary_unary_rpc_method_handler(answer)

    add_to = services.Services.add_to

    def obliging(self: Any, at: Any) -> None:
        add_to(self, at)
        at.add_generic_rpc_handlers((Obliging(),))

    services.Services.add_to = obliging


@fault
def talks_on_stdout() -> None:
    main = program.main

    def chatty() -> int:
        result = main()
        os.write(1, b"goodbye\n")
        return result

    program.main = chatty


@fault
def addresses_are_shared() -> None:
    server._OPTIONS = (*server._OPTIONS[:2], ("grpc.so_reuseport", 1))


@fault
def the_network_is_trusted() -> None:
    server._check_address = lambda *arguments: None


@fault
def the_port_is_ignored() -> None:
    serve = program.serve
    program.serve = lambda offered, address, **settings: serve(offered, **settings)


@fault
def tls_is_ignored() -> None:
    serve, attach = program.serve, program.attach
    program.serve = lambda offered, address, tls, token: serve(offered, address, token=token)
    program.attach = lambda offered, target, tls, **settings: attach(offered, target, **settings)


@fault
def any_client_is_trusted() -> None:
    credentials = server._credentials
    server._credentials = lambda tls: credentials(tls[:2])


@fault
def any_authority_is_trusted() -> None:
    attach = program.attach

    def trusting(offered: Any, target: str, tls: Any, **settings: Any) -> None:
        import sys

        given = Path(sys.argv[sys.argv.index("--tls-ca") + 1])
        tls = cbench_client.Tls(ca_pem=(given.parent / "ca.pem").read_bytes())
        attach(offered, target, tls=tls, **settings)

    program.attach = trusting


@fault
def the_token_is_ignored() -> None:
    serve, attach = program.serve, program.attach
    program.serve = lambda offered, address, token, **settings: serve(offered, address, **settings)
    program.attach = lambda offered, target, token, **settings: attach(offered, target, **settings)


@fault
def no_token_is_right() -> None:
    init = server._TokenCheck.__init__
    server._TokenCheck.__init__ = lambda self, token: init(self, f"{token}{random.random()}")


@fault
def health_wants_the_token() -> None:
    intercept = server._TokenCheck.intercept_service

    async def strict(self: Any, continuation: Any, details: Any) -> Any:
        method = details.method.replace("grpc.health", "health")
        return await intercept(self, continuation, _Details(method, details.invocation_metadata))

    server._TokenCheck.intercept_service = strict


class _Details:
    def __init__(self, method: str, invocation_metadata: Any) -> None:
        self.method, self.invocation_metadata = method, invocation_metadata


@fault
def signals_are_ignored() -> None:
    for module in (background, server, attachment):
        module.ending_on_signals = _deaf


class _Deaf:
    def __enter__(self) -> None:
        import signal

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    def __exit__(self, *exc_info: object) -> None:
        return None


def _deaf(end: Any) -> _Deaf:
    return _Deaf()


class _Hasty:
    def __enter__(self) -> None:
        import signal

        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    def __exit__(self, *exc_info: object) -> None:
        return None


@fault
def it_ends_at_once() -> None:
    for module in (server, attachment):
        module.ending_on_signals = lambda end: _Hasty()


@fault
def calls_are_taken_while_draining() -> None:
    hosting.Host.is_draining = property(lambda self: False, lambda self, value: None)

    async def obliging(self: Any) -> None:
        await self._stopping.wait()
        drain = session.gateway_pb2.AttachRequest(drain=session.gateway_pb2.Drain())
        self._lane.put_message(drain.SerializeToString())
        self._lane.close()

    session.Session._drain_when_stopping = obliging
