"""The stream of a connection: many calls, and peers that break, refuse or garble it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import system_pb2 as pb
from cbench_client.errors import RemoteFailure
from tests.fixtures.peer import (
    Connect,
    Peer,
    ask,
    echo_stream,
    failure_of,
    message,
    outcome,
    question,
)


async def test_many_calls_share_one_stream_and_get_their_own_answers(
    peer: Peer, connect: Connect
) -> None:
    streams, messages = [], []

    async def counting(requests: Any, context: Any) -> AsyncIterator[bytes]:
        streams.append(1)

        async def counted() -> AsyncIterator[bytes]:
            async for data in requests:
                messages.append(data)
                yield data

        async for answer in echo_stream(counted(), context):
            yield answer

    peer.stream = counting
    connection = await connect()
    replies = await asyncio.gather(*(ask(connection, f"q{i}") for i in range(300)))
    assert [reply.processed["echo"] for reply in replies] == [f"q{i}" for i in range(300)]
    assert len(streams) == 1
    assert len(messages) < 300
    assert all(reply.latency > 0 for reply in replies)


async def test_messages_stay_near_a_megabyte_and_large_examples_go_alone(
    peer: Peer, connect: Connect
) -> None:
    sizes: list[int] = []

    async def measuring(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            sizes.append(len(data))
            calls = pb.ProcessStreamRequest.FromString(data).calls
            yield message(*(outcome(c.request.call_id, via="stream") for c in calls))

    peer.stream = measuring
    connection = await connect()
    small = [ask(connection, f"{i}" + "x" * 400_000) for i in range(8)]
    large = ask(connection, "y" * 2_000_000)
    *replies, alone = await asyncio.gather(*small, large)
    assert {reply.processed["via"] for reply in replies} == {"stream"}
    assert alone.processed["via"] == "unary"
    assert max(sizes) <= 1024 * 1024


async def test_a_call_that_expires_is_cancelled_on_the_wire_and_others_go_on(
    peer: Peer, connect: Connect
) -> None:
    cancelled: asyncio.Queue[str] = asyncio.Queue()

    async def hanging(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            request = pb.ProcessStreamRequest.FromString(data)
            for call_id in request.cancel_call_ids:
                cancelled.put_nowait(call_id)
            answered = [c for c in request.calls if question(c) != "hang"]
            if answered:
                yield message(*(outcome(c.request.call_id, echo=question(c)) for c in answered))

    peer.stream = hanging
    connection = await connect()
    # The later call has the earlier deadline.
    other = asyncio.create_task(failure_of(ask(connection, "hang", timeout=30)))
    await ask(connection, "between")
    short = connection.process("echo", {"question": "hang"}, call_id="short", timeout=0.05)
    failure = await failure_of(short)
    assert (failure.origin, failure.reason) == ("system", "DEADLINE_EXCEEDED")
    assert not failure.retryable
    assert await asyncio.wait_for(cancelled.get(), 10) == "short"
    assert (await ask(connection, "more")).processed["echo"] == "more"
    other.cancel()
    assert await asyncio.wait_for(cancelled.get(), 10) == "call-hang"


async def test_a_stream_that_breaks_fails_its_calls_as_retryable_and_the_next_opens_another(
    peer: Peer, connect: Connect
) -> None:
    async def breaking(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            calls = pb.ProcessStreamRequest.FromString(data).calls
            if any(question(c) == "die" for c in calls):
                await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
            yield message(*(outcome(c.request.call_id, echo=question(c)) for c in calls))

    peer.stream = breaking
    connection = await connect()
    failures = await asyncio.gather(*(failure_of(ask(connection, t)) for t in ("die", "a", "b")))
    assert {(f.origin, f.reason, f.retryable) for f in failures} == {
        ("transport", "UNAVAILABLE", True)
    }
    assert len({id(f) for f in failures}) == 3
    assert (await ask(connection, "again")).processed["echo"] == "again"


async def test_a_stream_that_ends_politely_with_calls_open_is_a_transport_failure(
    peer: Peer, connect: Connect
) -> None:
    async def closing(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            return
        yield b""

    peer.stream = closing
    failure = await failure_of(ask(await connect(), "hi"))
    assert (failure.origin, failure.retryable) == ("transport", True)


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "RESOURCE_EXHAUSTED"])
async def test_a_server_that_refuses_the_stream_is_asked_one_by_one(
    peer: Peer, connect: Connect, code: str
) -> None:
    attempts = []

    async def refusing(requests: Any, context: Any) -> AsyncIterator[bytes]:
        attempts.append(1)
        await context.abort(grpc.StatusCode[code], "no streams here")
        yield b""

    peer.stream = refusing
    connection = await connect()
    replies = await asyncio.gather(*(ask(connection, f"q{i}") for i in range(5)))
    assert {reply.processed["via"] for reply in replies} == {"unary"}
    assert (await ask(connection, "later")).processed["via"] == "unary"
    assert len(attempts) == 1


async def test_one_bad_answer_in_a_batch_fails_alone(peer: Peer, connect: Connect) -> None:
    def spoiled(call_id: str) -> bytes:
        data = outcome(call_id, text="MARK").SerializeToString()
        return data.replace(b"MARK", b"\xff\xfe\xff\xfe")

    async def lying(requests: Any, context: Any) -> AsyncIterator[bytes]:
        waiting: list[pb.ProcessCall] = []
        async for data in requests:
            waiting += pb.ProcessStreamRequest.FromString(data).calls
            if len(waiting) < 5:
                continue
            batch = b""
            for call in waiting:
                call_id = call.request.call_id
                if question(call) == "bad":
                    piece = spoiled(call_id)
                    batch += b"\x0a" + bytes([len(piece)]) + piece
                else:
                    batch += message(outcome(call_id, echo=question(call)))
            # A field this client does not know stands between.
            yield batch + b"\x7d\x00\x00\x00\x00" + b"\x78\x01"

    peer.stream = lying
    connection = await connect()
    calls = [ask(connection, text) for text in ("a", "b", "bad", "c", "d")]
    a, b, bad, c, d = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(bad, RemoteFailure)
    assert (bad.origin, bad.reason, bad.retryable) == ("system", "UNDECODABLE_RESPONSE", False)
    assert [r.processed["echo"] for r in (a, b, c, d)] == ["a", "b", "c", "d"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\xff" * 40,
        b"\x0a\x05\x0a\x03\xff\xff\xff",
        b"\x0b",
        b"\x0a\x02\x12\x09",
    ],
    ids=["too-long", "endless-number", "unreadable-id", "wire-type", "no-id"],
)
async def test_garbage_fails_the_open_calls_for_asking_again_alone(
    peer: Peer, connect: Connect, garbage: bytes
) -> None:
    async def lying(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            yield garbage

    peer.stream = lying
    connection = await connect()
    failure = await failure_of(ask(connection, "hi"))
    assert (failure.reason, failure.retryable) == ("STREAM_GARBLED", True)
    assert (await ask(connection, "hi", alone=True)).processed["via"] == "unary"


async def test_duplicates_and_strangers_among_the_outcomes_are_ignored(
    peer: Peer, connect: Connect
) -> None:
    async def babbling(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                call_id = call.request.call_id
                yield message(outcome("stranger", echo="?"), outcome(call_id, echo="first"))
                yield message(outcome(call_id, echo="second"), outcome(call_id, echo="third"))

    peer.stream = babbling
    connection = await connect()
    for text in ("a", "b", "c"):
        assert (await ask(connection, text)).processed["echo"] == "first"
