"""Answers that a connection gets: failures, statuses, nonsense, large ones."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import system_pb2 as pb
from tests.fixtures.peer import (
    Connect,
    Peer,
    ask,
    failure_of,
    message,
    outcome,
)


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
    assert "answered with a larger message than is taken here" in str(failure)


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ("SERVER: Received message larger than max (9 vs. 4)", "does not take a message that"),
        ("gRPC message exceeds maximum size 4194304: 5000000", "does not take a message that"),
        ("SERVER: Sent message larger than max (9 vs. 4)", "than it may send"),
        ("trying to send message larger than max (9 vs. 4)", "than it may send"),
    ],
    ids=["core", "java", "core-answer", "go-answer"],
)
async def test_it_is_said_which_message_is_too_large(
    peer: Peer, connect: Connect, details: str, told: str
) -> None:
    async def process(data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, details)
        return b""

    peer.process = process
    failure = await failure_of(ask(await connect(), "hi", alone=True))
    assert failure.reason == "MESSAGE_TOO_LARGE"
    assert told in str(failure)


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
