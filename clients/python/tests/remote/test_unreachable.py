"""Every way not to reach a server, each with its one sentence."""

import asyncio
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import system_pb2 as pb
from cbench_client.bench.client import BenchClient
from cbench_client.errors import ClientError, InsecureToken, Refused, Unreachable
from cbench_client.remote.channel import Tls, address_of, is_loopback, open_channel
from cbench_client.remote.connection import SystemConnection
from tests.fixtures.ports import held_port

DESCRIBED = pb.SystemDescribeResponse(systems=[pb.SystemInfo(name="echo")]).SerializeToString()


def sentence(error: ClientError) -> str:
    """Check the form every message has, and return it."""
    text = str(error)
    assert "\n" not in text
    assert "Traceback" not in text
    assert "StatusCode" not in text
    assert len(text) < 400
    return text


async def refusal(
    target: str,
    timeout: float = 5.0,
    error: type[ClientError] = Unreachable,
    **security: Any,
) -> str:
    connection = SystemConnection(target, **security)
    with pytest.raises(error) as caught:
        await connection.describe(timeout)
    await connection.close()
    return sentence(caught.value)


class Certificates:
    """An authority, a certificate of its making for the loopback, and a stranger's authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("authority", "stranger"):
            self._run(
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "2", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem",
            )  # fmt: skip
        (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        self._run(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr",
        )  # fmt: skip
        self._run(
            "x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
            "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem",
        )  # fmt: skip

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def __getitem__(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    return Certificates(tmp_path_factory.mktemp("certificates"))


Serve = Callable[..., Any]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start gRPC servers that answer Describe, each by its own rules."""
    servers: list[Any] = []

    async def start(
        describe: Any = None,
        credentials: grpc.ServerCredentials | None = None,
        service: str = "cbench.v1.System",
    ) -> str:
        async def answer(data: bytes, context: Any) -> bytes:
            return DESCRIBED

        server = grpc.aio.server()
        methods = {"Describe": grpc.unary_unary_rpc_method_handler(describe or answer)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
        if credentials is None:
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        await server.stop(None)


@pytest.fixture
def talker() -> Iterator[Callable[[bytes | None], str]]:
    """Start listeners that greet with some bytes and hang up, or with None say nothing."""
    listeners: list[socket.socket] = []
    held: list[socket.socket] = []

    def start(greeting: bytes | None) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                if greeting is None:
                    held.append(peer)
                else:
                    peer.sendall(greeting)
                    peer.close()

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for sock in (*listeners, *held):
        sock.close()


@pytest.fixture
def http_server() -> Iterator[str]:
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def test_nothing_listens() -> None:
    target = f"127.0.0.1:{held_port()}"
    text = await refusal(target)
    assert text.startswith(f"nothing listens at {target}.")
    assert "Start it" in text


async def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    assert "nothing listens at unix:" in await refusal(f"unix:{tmp_path}/none.sock")


async def test_a_host_that_does_not_exist() -> None:
    assert 'there is no host "no-such-host.invalid"' in await refusal("no-such-host.invalid:50051")


async def test_a_target_without_a_port() -> None:
    assert "names no port" in await refusal("localhost")


async def test_an_http_1_server(http_server: str) -> None:
    assert f"{http_server} is an HTTP/1 server" in await refusal(http_server)


async def test_a_port_that_speaks_something_else(talker: Callable[[bytes | None], str]) -> None:
    target = talker(b"SSH-2.0-OpenSSH_9.9\r\n")
    assert f"something listens at {target}, but it does not speak gRPC" in await refusal(target)


async def test_a_port_that_says_nothing(talker: Callable[[bytes | None], str]) -> None:
    target = talker(None)
    assert "says nothing a gRPC server would" in await refusal(target, timeout=0.3)


async def test_a_server_that_does_not_answer_in_time(serve: Serve) -> None:
    async def hang(data: bytes, context: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    target = await serve(hang)
    assert f"{target} did not answer within 0.3s" in await refusal(target, timeout=0.3)


async def test_a_plaintext_client_at_a_tls_server(serve: Serve, certificates: Certificates) -> None:
    pair = (certificates["server.key"], certificates["server.pem"])
    target = await serve(credentials=grpc.ssl_server_credentials([pair]))
    assert f"{target} speaks TLS and this connection does not" in await refusal(target)


async def test_a_tls_client_at_a_plaintext_server(serve: Serve, certificates: Certificates) -> None:
    target = await serve()
    text = await refusal(target, tls=Tls(ca_pem=certificates["authority.pem"]))
    assert f"{target} does not speak TLS" in text


async def test_a_certificate_of_an_unknown_authority(
    serve: Serve, certificates: Certificates
) -> None:
    pair = (certificates["server.key"], certificates["server.pem"])
    target = await serve(credentials=grpc.ssl_server_credentials([pair]))
    for tls in (True, Tls(ca_pem=certificates["stranger.pem"])):
        text = await refusal(target, tls=tls)
        assert f"the certificate of {target} is not accepted" in text
        assert "ca_pem" in text


async def test_a_certificate_for_another_name(serve: Serve, certificates: Certificates) -> None:
    pair = (certificates["server.key"], certificates["server.pem"])
    target = await serve(credentials=grpc.ssl_server_credentials([pair]))
    tls = Tls(ca_pem=certificates["authority.pem"], server_name="elsewhere.example")
    assert "server_name" in await refusal(target, tls=tls)


async def test_a_server_that_wants_a_client_certificate(
    serve: Serve, certificates: Certificates
) -> None:
    pair = (certificates["server.key"], certificates["server.pem"])
    demanding = grpc.ssl_server_credentials(
        [pair], certificates["authority.pem"], require_client_auth=True
    )
    target = await serve(credentials=demanding)
    text = await refusal(target, tls=Tls(ca_pem=certificates["authority.pem"]))
    assert "cert_pem" in text
    tls = Tls.from_files(
        certificates.folder / "authority.pem",
        certificates.folder / "server.pem",
        certificates.folder / "server.key",
    )
    connection = SystemConnection(target, tls=tls)
    assert [system.name for system in await connection.describe()] == ["echo"]
    await connection.close()


async def test_a_ca_that_is_no_certificate(serve: Serve) -> None:
    assert "holds no certificate" in await refusal(await serve(), tls=Tls(ca_pem=b"nonsense"))


async def needs_token(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
    if dict(context.invocation_metadata() or ()).get("authorization") != "Bearer right":
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you")
    return DESCRIBED


async def test_a_missing_and_a_wrong_token_are_told_apart(serve: Serve) -> None:
    target = await serve(needs_token)
    assert f"{target} wants a token and none was given" in await refusal(target, error=Refused)
    assert f"{target} refused the token" in await refusal(target, token="wrong", error=Refused)
    connection = SystemConnection(target, token="right")
    assert len(await connection.describe()) == 1
    await connection.close()


async def test_a_token_for_something_else_is_a_refusal_with_its_reason(serve: Serve) -> None:
    async def forbids(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the token is for reading")
        raise AssertionError

    told = await refusal(await serve(forbids), token="right", error=Refused)
    assert "refused: the token is for reading." in told


async def test_a_grpc_server_of_another_kind(serve: Serve) -> None:
    target = await serve(service="some.Other")
    assert "it does not serve cbench.v1.System" in await refusal(target)


async def test_a_server_that_describes_nothing_or_nonsense(serve: Serve) -> None:
    async def nothing(data: bytes, context: Any) -> bytes:
        return b""

    async def nonsense(data: bytes, context: Any) -> bytes:
        return b"\xff\xff\xff"

    assert "serves no system" in await refusal(await serve(nothing))
    assert "cannot be decoded" in await refusal(await serve(nonsense))


async def test_a_server_that_fails_to_describe_is_quoted_in_one_line(serve: Serve) -> None:
    async def failing(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(grpc.StatusCode.INTERNAL, "it broke\nTraceback: very long")
        return b""

    assert "INTERNAL: it broke" in await refusal(await serve(failing))


async def test_the_bench_client_uses_the_same_words(serve: Serve, http_server: str) -> None:
    def words(target: str, **security: Any) -> str:
        with BenchClient(target, **security) as client, pytest.raises(Unreachable) as caught:
            client.get("some-run")
        with BenchClient(target, **security) as client, pytest.raises(Unreachable) as watching:
            next(client.watch("some-run"))
        assert str(caught.value) == str(watching.value)
        return sentence(caught.value)

    assert "HTTP/1 server" in await asyncio.to_thread(words, http_server)
    assert "nothing listens" in await asyncio.to_thread(words, f"127.0.0.1:{held_port()}")
    assert "does not speak TLS" in await asyncio.to_thread(words, await serve(), tls=True)
    assert "does not serve cbench.v1.Bench" in await asyncio.to_thread(words, await serve())


async def test_a_token_never_travels_in_the_clear_over_a_network() -> None:
    with pytest.raises(InsecureToken, match="unencrypted"):
        open_channel("bench.example:443", token="secret")
    with pytest.raises(InsecureToken, match="tls=True"):
        BenchClient("10.0.0.7:50051", token="secret")


@pytest.mark.parametrize(
    ("target", "address", "loopback"),
    [
        ("localhost:1", ("localhost", 1, None), True),
        ("127.0.0.9:1", ("127.0.0.9", 1, None), True),
        ("[::1]:1", ("::1", 1, None), True),
        ("ipv6:[::1]:1", ("::1", 1, None), True),
        ("ipv4:10.1.2.3:1", ("10.1.2.3", 1, None), False),
        ("dns:///h.example:1", ("h.example", 1, None), False),
        ("dns://8.8.8.8/h.example:1", ("h.example", 1, None), False),
        ("localhost.example:1", ("localhost.example", 1, None), False),
        ("h.example", ("h.example", None, None), False),
        ("unix:/tmp/s", ("", None, "/tmp/s"), True),
        ("unix:///tmp/s", ("", None, "/tmp/s"), True),
        ("unix-abstract:s", ("", None, "\0s"), True),
        ("what:ever:this:is", ("what:ever:this:is", None, None), False),
    ],
)
def test_a_target_is_taken_apart(target: str, address: Any, loopback: bool) -> None:
    assert tuple(address_of(target)) == address
    assert is_loopback(target) is loopback
