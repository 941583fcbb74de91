"""SystemConnection against real servers: what it describes, sends, gives up and closes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cbench_client._gen.cbench.v1 import system_pb2 as pb
from cbench_client.errors import Unencodable
from cbench_client.remote.calls import WholeCall
from cbench_client.remote.connection import SystemConnection
from tests.fixtures.peer import (
    Connect,
    Peer,
    ask,
    failure_of,
    message,
    outcome,
)


async def test_a_system_is_described(connect: Connect) -> None:
    [described] = await (await connect()).describe()
    assert (described.name, described.version, described.sdk) == ("echo", "7", "test/1")
    assert described.streams
    assert not described.converses
    assert described.max_concurrency is None


async def test_options_and_the_deadline_travel_with_the_call(peer: Peer, connect: Connect) -> None:
    seen: list[pb.ProcessCall] = []

    async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                seen.append(call)
                yield message(outcome(call.request.call_id))

    peer.stream = stream
    await ask(await connect(), "hi", timeout=12.5, options={"rate": 2})
    [call] = seen
    assert call.request.options["rate"].int_value == 2
    assert call.timeout.ToMilliseconds() == 12_500
    assert call.request.call_id == "call-hi"


async def test_an_example_that_cannot_cross_is_refused_by_name(connect: Connect) -> None:
    connection = await connect()
    with pytest.raises(Unencodable, match='"context"'):
        await connection.process("echo", {"context": {1, 2}}, call_id="c", timeout=5)
    assert (await ask(connection, "next")).processed["echo"] == "next"


async def test_a_call_id_in_flight_is_refused_a_second_time(peer: Peer, connect: Connect) -> None:
    async def hanging(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            pass
        yield b""

    peer.stream = hanging
    connection = await connect()
    calls = [asyncio.ensure_future(failure_of(ask(connection, "same"))) for _ in range(2)]
    done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [call.result().reason for call in done] == ["ALREADY_EXISTS"]


async def test_calls_of_one_batch_with_the_same_id_are_told_apart(connect: Connect) -> None:
    connection = await connect()
    ends: asyncio.Queue[Any] = asyncio.Queue()
    twins = [WholeCall("twin", {"id": n, "question": f"q{n}"}) for n in range(2)]
    connection.start_many(
        "echo",
        twins,
        timeout=20.0,
        answered=lambda replies: ends.put_nowait(replies[0]),
        failed=lambda call, error: ends.put_nowait((call, error.reason)),
    )
    refused, reply = [await asyncio.wait_for(ends.get(), 10) for _ in twins]
    assert refused == (twins[1], "ALREADY_EXISTS")
    assert (reply.call, reply.processed["echo"]) == (twins[0], "q0")


async def test_a_call_on_its_own_that_is_given_up_ends_at_the_server_and_is_not_told(
    peer: Peer, connect: Connect
) -> None:
    arrived, ended = asyncio.Event(), asyncio.Event()
    answer = peer.process

    async def hanging(data: bytes, context: Any) -> bytes:
        if b"held" not in data:
            return await answer(data, context)
        arrived.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return b""

    peer.process = hanging
    connection = await connect()
    told: list[Any] = []
    connection.start_many(
        "echo",
        [WholeCall("one", {"id": 1, "question": "held"})],
        timeout=50.0,
        answered=told.append,
        failed=lambda call, error: told.append(error),
        alone=True,
    )
    await asyncio.wait_for(arrived.wait(), 60)
    connection.give_up("one")
    # The id is free at once, and the end of the first call is not taken for that of the second.
    reply = await connection.process(
        "echo", {"id": 1, "question": "free"}, call_id="one", timeout=20.0, alone=True
    )
    assert reply.processed["question"] == "free"
    await asyncio.wait_for(ended.wait(), 60)
    assert told == []


async def test_closing_fails_what_is_in_flight(peer: Peer, connect: Connect) -> None:
    arrived = asyncio.Event()

    async def hanging(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for _ in requests:
            arrived.set()
        yield b""

    peer.stream = hanging
    connection = await connect()
    call = asyncio.create_task(failure_of(ask(connection, "hi")))
    await asyncio.wait_for(arrived.wait(), 60)
    await connection.close()
    assert (await call).origin == "transport"


async def test_a_conversation_is_held(peer: Peer, connect: Connect) -> None:
    async def converse(data: bytes, context: Any) -> bytes:
        request = pb.ProcessConversationRequest.FromString(data)
        response = pb.ProcessConversationResponse()
        for turn in request.turns:
            response.replies.add(role="assistant", content=f"{request.call_id}: {turn.content}!")
        response.usage.completion_tokens = 3
        return response.SerializeToString()

    peer.converse = converse
    connection = await connect()
    turns = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    reply = await connection.converse("echo", {"id": 4}, turns, call_id="c", timeout=10)
    assert [turn["content"] for turn in reply.replies] == ["c: a!", "c: b!"]
    assert reply.usage == {"completion_tokens": 3}


async def test_a_system_that_goes_and_comes_back_is_noticed(peer: Peer, connect: Connect) -> None:
    connection = await connect()
    assert await connection.wait_connected(60)
    assert connection.is_connected
    await peer.stop()
    assert (await failure_of(ask(connection, "hi", alone=True))).retryable
    assert not await connection.wait_connected(0.3)
    assert not connection.is_connected
    await peer.start()
    assert await connection.wait_connected(60)
    assert (await ask(connection, "back")).processed["echo"] == "back"


async def test_a_server_that_reports_itself_unwell_is_not_connected(peer: Peer) -> None:
    servicer = health.aio.HealthServicer()
    status = health_pb2.HealthCheckResponse
    await servicer.set("cbench.v1.System", status.NOT_SERVING)
    await peer.start(lambda server: health_pb2_grpc.add_HealthServicer_to_server(servicer, server))
    connection = SystemConnection(peer.target)
    assert not await connection.wait_connected(0.5)
    await servicer.set("cbench.v1.System", status.SERVING)
    assert await connection.wait_connected(60)
    await connection.close()
