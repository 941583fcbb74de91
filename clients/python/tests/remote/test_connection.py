"""SystemConnection against real servers that echo, hang, die and lie."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from cbench_client._gen.cbench.v1 import system_pb2 as pb
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_client.messages.convert import processed_to_proto
from cbench_client.remote.calls import ProcessReply, WholeCall
from cbench_client.remote.connection import SystemConnection
from tests.fixtures.ports import held_port

Handler = Callable[..., Any]


def outcome(call_id: str, **fields: Any) -> pb.ProcessOutcome:
    result = pb.ProcessOutcome(call_id=call_id)
    result.response.SetInParent()
    processed_to_proto(fields, None, result.response)
    return result


def message(*outcomes: pb.ProcessOutcome) -> bytes:
    return pb.ProcessStreamResponse(outcomes=outcomes).SerializeToString()


def question(call: pb.ProcessCall) -> str:
    return call.request.example.fields["question"].string_value


async def echo_process(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
    request = pb.ProcessRequest.FromString(data)
    response = pb.ProcessResponse()
    for name, value in request.example.fields.items():
        response.fields[name].CopyFrom(value)
    response.fields["via"].string_value = "unary"
    return response.SerializeToString()


async def echo_stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    async for data in requests:
        calls = pb.ProcessStreamRequest.FromString(data).calls
        yield message(*(outcome(c.request.call_id, echo=question(c), via="stream") for c in calls))


class Peer:
    """A server whose System methods deal in bytes, so that it can lie."""

    def __init__(self) -> None:
        self.process: Handler = echo_process
        self.stream: Handler | None = echo_stream
        self.describe: bytes = pb.SystemDescribeResponse(
            sdk="test/1",
            systems=[
                pb.SystemInfo(name="echo", version="7", capabilities=[pb.CAPABILITY_STREAM]),
            ],
        ).SerializeToString()
        self.converse: Handler | None = None
        self.server: Any = None
        self.port = held_port()

    async def start(self, *extra: Callable[[Any], None]) -> None:
        async def describe(data: bytes, context: Any) -> bytes:
            return self.describe

        async def process(data: bytes, context: Any) -> bytes:
            return await self.process(data, context)

        async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
            assert self.stream is not None
            async for answer in self.stream(requests, context):
                yield answer

        handlers = {
            "Describe": grpc.unary_unary_rpc_method_handler(describe),
            "Process": grpc.unary_unary_rpc_method_handler(process),
        }
        if self.stream is not None:
            handlers["ProcessStream"] = grpc.stream_stream_rpc_method_handler(stream)
        if self.converse is not None:
            handlers["ProcessConversation"] = grpc.unary_unary_rpc_method_handler(self.converse)
        self.server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", 128 << 20),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ]
        )
        service = grpc.method_handlers_generic_handler("cbench.v1.System", handlers)
        self.server.add_generic_rpc_handlers([service])
        for add in extra:
            add(self.server)
        self.server.add_insecure_port(self.target)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop(None)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    yield peer
    if peer.server is not None:
        await peer.stop()


@pytest.fixture
async def connect(peer: Peer) -> AsyncIterator[Callable[[], Awaitable[SystemConnection]]]:
    opened: list[SystemConnection] = []

    async def open_one() -> SystemConnection:
        if peer.server is None:
            await peer.start()
        connection = SystemConnection(peer.target)
        opened.append(connection)
        await connection.describe()
        return connection

    yield open_one
    for connection in opened:
        await connection.close()


Connect = Callable[[], Awaitable[SystemConnection]]


def ask(
    connection: SystemConnection, text: str, timeout: float = 20.0, **rest: Any
) -> Awaitable[ProcessReply]:
    example = {"id": 1, "question": text}
    return connection.process("echo", example, call_id=f"call-{text}", timeout=timeout, **rest)


async def failure_of(call: Awaitable[Any]) -> RemoteFailure:
    with pytest.raises(RemoteFailure) as caught:
        await call
    return caught.value


async def test_a_system_is_described(connect: Connect) -> None:
    [described] = await (await connect()).describe()
    assert (described.name, described.version, described.sdk) == ("echo", "7", "test/1")
    assert described.streams
    assert not described.converses
    assert described.max_concurrency is None


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


async def test_what_was_carried_and_used_comes_back(peer: Peer, connect: Connect) -> None:
    async def process(data: bytes, context: Any) -> bytes:
        response = pb.ProcessResponse(carried_fields=["id", "question"])
        response.fields["ratio"].double_value = float("nan")
        response.usage.prompt_tokens = 5
        return response.SerializeToString()

    peer.process = process
    reply = await ask(await connect(), "hi", alone=True)
    assert reply.processed["id"] == 1
    assert reply.processed["question"] == "hi"
    assert reply.processed["ratio"] != reply.processed["ratio"]
    assert reply.usage == {"prompt_tokens": 5}


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


async def test_a_failure_of_the_system_is_told_as_it_was(peer: Peer, connect: Connect) -> None:
    async def failing(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                failed = pb.ProcessOutcome(call_id=call.request.call_id)
                failed.failure.reason = "OUT_OF_MEMORY"
                failed.failure.message = "no room"
                failed.failure.retryable = True
                failed.failure.retry_delay.FromMilliseconds(1500)
                yield message(failed)

    peer.stream = failing
    failure = await failure_of(ask(await connect(), "hi"))
    assert (failure.reason, str(failure), failure.retryable) == ("OUT_OF_MEMORY", "no room", True)
    assert failure.retry_delay == 1.5


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


@pytest.mark.parametrize("alone", [True, False], ids=["unary", "stream"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda response: response.fields["x"].SetInParent(),
        lambda response: response.carried_fields.append("nothing-of-that-name"),
    ],
    ids=["value-without-kind", "carried-unknown"],
)
async def test_an_answer_without_meaning_is_undecodable(
    peer: Peer, connect: Connect, alone: bool, spoil: Callable[[pb.ProcessResponse], None]
) -> None:
    async def process(data: bytes, context: Any) -> bytes:
        response = pb.ProcessResponse()
        spoil(response)
        return response.SerializeToString()

    async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                result = outcome(call.request.call_id)
                spoil(result.response)
                yield message(result)

    peer.process, peer.stream = process, stream
    failure = await failure_of(ask(await connect(), "hi", alone=alone))
    assert (failure.origin, failure.reason) == ("system", "UNDECODABLE_RESPONSE")


async def test_an_outcome_that_is_neither_response_nor_failure_is_undecodable(
    peer: Peer, connect: Connect
) -> None:
    async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                yield message(pb.ProcessOutcome(call_id=call.request.call_id))

    peer.stream = stream
    assert (await failure_of(ask(await connect(), "hi"))).reason == "UNDECODABLE_RESPONSE"


async def test_bytes_that_are_no_response_are_undecodable(peer: Peer, connect: Connect) -> None:
    async def process(data: bytes, context: Any) -> bytes:
        return b"\xff\xff\xff not protobuf"

    peer.process = process
    failure = await failure_of(ask(await connect(), "hi", alone=True))
    assert (failure.origin, failure.reason) == ("system", "UNDECODABLE_RESPONSE")


@pytest.mark.parametrize(
    ("code", "origin", "retryable"),
    [
        ("UNAVAILABLE", "transport", True),
        ("RESOURCE_EXHAUSTED", "system", True),
        ("ALREADY_EXISTS", "system", True),
        ("INVALID_ARGUMENT", "system", False),
        ("INTERNAL", "system", False),
        ("NOT_FOUND", "system", False),
        ("UNIMPLEMENTED", "system", False),
    ],
)
async def test_a_status_says_who_failed_and_whether_to_ask_again(
    peer: Peer, connect: Connect, code: str, origin: str, retryable: bool
) -> None:
    async def process(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(
            grpc.StatusCode[code], "as it happens", (("grpc-retry-pushback-ms", "250"),)
        )
        return b""

    peer.process = process
    failure = await failure_of(ask(await connect(), "hi", alone=True))
    assert (failure.origin, failure.reason, failure.retryable) == (origin, code, retryable)
    assert failure.retry_delay == 0.25
    assert "as it happens" in str(failure)


async def test_the_reason_a_server_gives_is_kept(peer: Peer, connect: Connect) -> None:
    async def process(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(grpc.StatusCode.INTERNAL, "broke", (("cbench-reason", "MODEL_MELTED"),))
        return b""

    peer.process = process
    assert (await failure_of(ask(await connect(), "hi", alone=True))).reason == "MODEL_MELTED"


async def test_a_unary_call_that_hangs_ends_at_its_deadline(peer: Peer, connect: Connect) -> None:
    async def process(data: bytes, context: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    peer.process = process
    failure = await failure_of(ask(await connect(), "hi", timeout=0.1, alone=True))
    assert (failure.origin, failure.reason) == ("system", "DEADLINE_EXCEEDED")
    assert not failure.retryable


async def test_a_message_beyond_the_limit_is_not_asked_for_again(
    peer: Peer, connect: Connect
) -> None:
    async def process(data: bytes, context: Any) -> bytes:
        return b"\x00" * (129 << 20)

    peer.process = process
    failure = await failure_of(ask(await connect(), "hi", alone=True))
    assert (failure.reason, failure.retryable) == ("MESSAGE_TOO_LARGE", False)


@pytest.mark.parametrize("alone", [True, False], ids=["unary", "stream"])
async def test_a_forty_megabyte_answer_arrives(peer: Peer, connect: Connect, alone: bool) -> None:
    text = "é" * 20_000_000

    async def process(data: bytes, context: Any) -> bytes:
        return outcome("", text=text).response.SerializeToString()

    async def stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
        async for data in requests:
            for call in pb.ProcessStreamRequest.FromString(data).calls:
                yield message(outcome(call.request.call_id, text=text))

    peer.process, peer.stream = process, stream
    reply = await ask(await connect(), "hi", alone=alone)
    assert reply.processed["text"] == text


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
    await asyncio.wait_for(arrived.wait(), 10)
    connection.give_up("one")
    # The id is free at once, and the end of the first call is not taken for that of the second.
    reply = await connection.process(
        "echo", {"id": 1, "question": "free"}, call_id="one", timeout=20.0, alone=True
    )
    assert reply.processed["question"] == "free"
    await asyncio.wait_for(ended.wait(), 10)
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
    await asyncio.wait_for(arrived.wait(), 10)
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
    assert await connection.wait_connected(10)
    assert connection.is_connected
    await peer.stop()
    assert (await failure_of(ask(connection, "hi", alone=True))).retryable
    assert not await connection.wait_connected(0.3)
    assert not connection.is_connected
    await peer.start()
    assert await connection.wait_connected(10)
    assert (await ask(connection, "back")).processed["echo"] == "back"


async def test_a_server_that_reports_itself_unwell_is_not_connected(peer: Peer) -> None:
    servicer = health.aio.HealthServicer()
    status = health_pb2.HealthCheckResponse
    await servicer.set("cbench.v1.System", status.NOT_SERVING)
    await peer.start(lambda server: health_pb2_grpc.add_HealthServicer_to_server(servicer, server))
    connection = SystemConnection(peer.target)
    assert not await connection.wait_connected(0.5)
    await servicer.set("cbench.v1.System", status.SERVING)
    assert await connection.wait_connected(10)
    await connection.close()
