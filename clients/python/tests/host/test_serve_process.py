"""Serving from a process of its own: the handshake line, signals, TLS and tokens."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.errors import CannotServe
from cbench_client.host.server import Server
from cbench_client.messages import convert
from cbench_client.remote.channel import Tls, open_channel
from tests.fixtures.certificates import make_certificates

PROGRAM = """
import sys, time
from pathlib import Path
from cbench_client.host.server import serve

class Waits:
    name = "waits"
    def process(self, example):
        print("user code prints")
        if "until" in example:
            Path(example["entered"]).touch()
            while not Path(example["until"]).exists():
                time.sleep(0.01)
        return {"response": "done"}

serve(Waits(), sys.argv[1])
print("after")
"""


class Echo:
    name = "echo"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example


@contextmanager
def started(address: str, **environment: str) -> Iterator[tuple[Any, str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 30)
        assert ready, "no handshake within 30 s"
        yield process, process.stdout.readline().rstrip("\n")
    finally:
        process.kill()
        process.communicate()


async def exists(path: Path) -> None:
    async with asyncio.timeout(20):
        while not path.exists():
            await asyncio.sleep(0.01)


async def test_port_zero_prints_one_line_and_nothing_else_before_the_end() -> None:
    with started("127.0.0.1:0") as (process, line):
        assert line.startswith("cbench|1|tcp|127.0.0.1:")
        async with open_channel(line.rpartition("|")[2]) as channel:
            reply = await SystemStub(channel).Process(system_pb2.ProcessRequest())
        process.send_signal(signal.SIGTERM)
        stdout, stderr = await asyncio.to_thread(process.communicate, timeout=30)
    assert reply.fields["response"].string_value == "done"
    assert stdout == "after\n"
    assert "user code prints" in stderr
    assert process.returncode == 0


async def test_a_socket_is_announced_when_asked_for(tmp_path: Path) -> None:
    with started(f"unix:{tmp_path}/s.sock", CBENCH_HANDSHAKE="1") as (_, line):
        assert line == f"cbench|1|unix|{tmp_path}/s.sock"
        async with open_channel(f"unix:{tmp_path}/s.sock") as channel:
            await SystemStub(channel).Process(system_pb2.ProcessRequest())


async def test_sigterm_finishes_what_is_in_progress_and_exits_normally(tmp_path: Path) -> None:
    entered, until = tmp_path / "entered", tmp_path / "until"
    request = system_pb2.ProcessRequest()
    convert.example_to_proto({"until": str(until), "entered": str(entered)}, request.example)
    with started("127.0.0.1:0") as (process, line):
        async with open_channel(line.rpartition("|")[2]) as channel:
            call = asyncio.ensure_future(SystemStub(channel).Process(request))
            await exists(entered)
            process.send_signal(signal.SIGTERM)
            health = health_pb2_grpc.HealthStub(channel)
            status = health_pb2.HealthCheckResponse.SERVING
            while status == health_pb2.HealthCheckResponse.SERVING:
                status = (await health.Check(health_pb2.HealthCheckRequest())).status
            until.touch()
            reply = await call
        assert await asyncio.to_thread(process.wait, 30) == 0
    assert status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert reply.fields["response"].string_value == "done"


async def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    entered, never = tmp_path / "entered", tmp_path / "never"
    request = system_pb2.ProcessRequest()
    convert.example_to_proto({"until": str(never), "entered": str(entered)}, request.example)
    with started("127.0.0.1:0") as (process, line):
        async with open_channel(line.rpartition("|")[2]) as channel:
            call = asyncio.ensure_future(SystemStub(channel).Process(request))
            await exists(entered)
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            while "once more" not in await asyncio.to_thread(process.stderr.readline):
                assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait, 15)
            with pytest.raises(grpc.aio.AioRpcError):
                await call
    assert code == 128 + signal.SIGTERM


async def test_a_token_is_demanded_everywhere_but_for_health() -> None:
    server = Server(Echo(), token="secret")
    await asyncio.to_thread(server.start)
    codes = []
    for token in (None, "wrong", "secret"):
        async with open_channel(server.address, token=token) as channel:
            await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            stub = SystemStub(channel)
            calls = [stub.Process(system_pb2.ProcessRequest()), stub.ProcessStream()]
            if token == "secret":
                await calls[1].done_writing()
            codes.append([(await call.code()).name for call in calls])
    await asyncio.to_thread(server.stop, 0)
    assert codes == [["UNAUTHENTICATED"] * 2, ["UNAUTHENTICATED"] * 2, ["OK"] * 2]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "client")


async def called(address: str, tls: Tls | None) -> grpc.StatusCode:
    async with open_channel(address, tls=tls) as channel:
        call = SystemStub(channel).Process(system_pb2.ProcessRequest(), timeout=20)
        return grpc.StatusCode(await call.code())


async def test_tls_refuses_plaintext_and_strangers(certificates: Path) -> None:
    files = (certificates / "server.crt", certificates / "server.key")
    server = Server(Echo(), tls=files)
    await asyncio.to_thread(server.start)
    trusting = Tls.from_files(ca=certificates / "server.crt")
    mistaken = Tls.from_files(ca=certificates / "client.crt")
    codes = [await called(server.address, tls) for tls in (trusting, mistaken, None)]
    await asyncio.to_thread(server.stop, 0)
    assert codes[0] is grpc.StatusCode.OK
    assert set(codes[1:]) == {grpc.StatusCode.UNAVAILABLE}


async def test_a_client_ca_demands_certificates_of_callers(certificates: Path) -> None:
    names = ("server.crt", "server.key", "client.crt")
    cert, key, client_ca = (certificates / name for name in names)
    server = Server(Echo(), tls=(cert, key, client_ca))
    await asyncio.to_thread(server.start)
    known = Tls.from_files(cert, client_ca, certificates / "client.key")
    codes = [await called(server.address, tls) for tls in (known, Tls.from_files(cert))]
    await asyncio.to_thread(server.stop, 0)
    assert codes == [grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE]


def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotServe, match="nowhere.crt"):
        Server(Echo(), tls=(tmp_path / "nowhere.crt", tmp_path / "nowhere.key"))


def test_a_network_address_is_served_with_tls_and_token(certificates: Path) -> None:
    files = (certificates / "server.crt", certificates / "server.key")
    with Server(Echo(), "0.0.0.0:0", tls=files, token="secret") as server:
        assert not server.address.endswith(":0")
