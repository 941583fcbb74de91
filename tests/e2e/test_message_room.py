"""Room for messages: large ones of one client wait for each other, and leave nothing behind."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import evaluator_pb2
from cbench_server.limits import LARGE_MESSAGE, MAX_MESSAGES_AT_ONCE
from cbench_server.rpc.grants import digest_of
from tests.fixtures.floods import memory_peak

from .processes import DaemonProcess, Process, examples

RUN = "/cbench.v1.Bench/GetRun"
SCORE = "/cbench.v1.Evaluator/Score"
UPLOAD = "/cbench.v1.Bench/UploadExamples"
GREEDY = [("authorization", "Bearer greedy")]
UNLIMITED = [("grpc.max_send_message_length", -1)]
MB = 1_000_000


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{name} run {digest_of(name)}\n" for name in ("greedy", "honest")))
    tokens.chmod(0o600)
    with DaemonProcess(tmp_path / "home", f"--token-file={tokens}") as process:
        yield process


def pair(characters: int, evaluator: str = "answer-quality") -> bytes:
    request = evaluator_pb2.ScoreRequest(evaluator=evaluator)
    request.original.fields["answer"].string_value = "Paris"
    request.processed.fields["response"].string_value = "Paris " * (characters // 6)
    return request.SerializeToString()


async def silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def memory(pid: int) -> int:
    """Return the memory that a process has now, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 // MB


async def test_large_messages_of_one_client_wait_for_each_other(daemon: DaemonProcess) -> None:
    large = pair(12 * MB)
    assert len(large) > LARGE_MESSAGE
    async with grpc.aio.insecure_channel(daemon.address, UNLIMITED) as channel:
        score = channel.unary_unary(SCORE)
        await score(pair(6), metadata=GREEDY, timeout=60)
        before = memory_peak(daemon.pid)
        for answer in [score(large, metadata=GREEDY, timeout=100) for _ in range(40)]:
            scored = evaluator_pb2.ScoreResponse.FromString(await answer)
            assert scored.scores["recall"] == 1.0
    # Forty at once are 480 MB as they come, and several times that while they are worked on.
    assert memory_peak(daemon.pid) - before < 8 * MAX_MESSAGES_AT_ONCE * 12


@pytest.mark.parametrize("evaluator", ["answer-quality", "no-such-evaluator"])
async def test_large_messages_leave_nothing_behind_on_their_connection(
    daemon: DaemonProcess, evaluator: str
) -> None:
    async with grpc.aio.insecure_channel(daemon.address, UNLIMITED) as channel:
        score = channel.unary_unary(SCORE)
        seen = []
        for _ in range(3):
            for _ in range(16):
                call = score(pair(4 * MB, evaluator), metadata=GREEDY, timeout=100)
                expected = "OK" if evaluator == "answer-quality" else "NOT_FOUND"
                assert (await call.code()).name == expected
            seen.append(memory(daemon.pid))
    # Each sixteen are 64 MB, and stayed as such.
    assert seen[-1] - seen[0] < 64, seen


@pytest.mark.parametrize("method", [RUN, UPLOAD])
async def test_whoever_sends_nothing_keeps_out_nobody_else(
    daemon: DaemonProcess, method: str
) -> None:
    async with grpc.aio.insecure_channel(daemon.address) as channel:
        open_one = channel.stream_unary(method)
        held = [open_one(silence(), metadata=GREEDY) for _ in range(4 * MAX_MESSAGES_AT_ONCE)]
        await asyncio.gather(*[call.wait_for_connection() for call in held])

        def is_served() -> Any:
            with BenchClient(daemon.address, token="honest") as client:
                client.upload(examples(2))
                return list(client.list())

        assert await asyncio.to_thread(is_served) == []
        for call in held:
            call.cancel()


async def test_a_call_that_never_sends_its_message_is_refused(tmp_path: Path) -> None:
    # A daemon as it is, but for the time, which is a minute.
    program = (
        "import sys; from cbench_server.rpc import message_room; "
        "message_room.MESSAGE_SECONDS = 1; "
        "from cbench_server.daemon import main; sys.exit(main())"
    )
    flags = ["--address", "127.0.0.1:0", "--home", str(tmp_path / "home")]
    with Process([sys.executable, "-c", program, *flags], {"CBENCH_HANDSHAKE": "1"}) as daemon:
        async with grpc.aio.insecure_channel(daemon.address) as channel:
            call = channel.stream_unary(RUN)(silence(), timeout=60)
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "within 1 s" in await call.details()


async def test_a_call_with_two_messages_is_refused_where_it_may_have_one(
    daemon: DaemonProcess,
) -> None:
    async with grpc.aio.insecure_channel(daemon.address) as channel:
        call = channel.stream_unary(RUN)(iter([b"", b""]), metadata=GREEDY, timeout=60)
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "more than the one message" in await call.details()
    with pytest.raises(Refused), BenchClient(daemon.address, token="honest") as client:
        client.get("nope")
