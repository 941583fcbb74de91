"""Serving systems: unary calls, what they return and what their failures tell."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import failure_pb2, system_pb2
from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.errors import RemoteFailure
from cbench_client.messages import convert
from tests.fixtures.serving import AsyncEcho, Echo, failure_in, request, serving, system

EXAMPLE = {
    "id": 2**53 + 1,
    "dataset": "d",
    "context": "été 東京 \U0001f600",
    "none": None,
    "big": 2**63 - 1,
    "nested": [{"a": [1, 1.0, True, b"\x00\xff"]}, []],
    "nan": float("inf"),
}


@pytest.mark.parametrize("echo", [Echo(), AsyncEcho()], ids=["sync", "async"])
async def test_an_example_comes_back_as_it_was_sent(echo: Any) -> None:
    async with serving(echo) as channel:
        reply = await SystemStub(channel).Process(request(EXAMPLE))
    assert convert.processed_from_proto(reply, EXAMPLE) == {**EXAMPLE, "response": "hello"}
    assert "context" in reply.carried_fields


async def test_a_dict_changed_in_place_is_not_taken_for_unchanged() -> None:
    def shorten(example: dict[str, Any]) -> dict[str, Any]:
        example["context"] = example["context"][:2]
        return example

    async with serving(system(shorten)) as channel:
        reply = await SystemStub(channel).Process(request({"context": "abcdef"}))
    assert convert.processed_from_proto(reply, {"context": "abcdef"}) == {"context": "ab"}


async def test_describe_tells_names_versions_limits_and_capabilities() -> None:
    talker = system(lambda example: example, process_conversation=lambda self, turns: turns)
    async with serving(Echo(), AsyncEcho(), talker) as channel:
        reply = await SystemStub(channel).Describe(system_pb2.SystemDescribeRequest())
    echo, other, talking = reply.systems
    assert (echo.name, echo.version, echo.description) == ("echo", "1.2", "Returns what it gets.")
    assert not echo.HasField("max_concurrency")
    assert other.max_concurrency == 7
    assert list(other.capabilities) == [system_pb2.CAPABILITY_STREAM]
    assert system_pb2.CAPABILITY_CONVERSATION in talking.capabilities
    assert reply.sdk.startswith("cbench-python/")


async def test_a_plain_function_is_a_system_called_like_it() -> None:
    def shout(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["question"].upper()}

    async with serving(shout) as channel:
        reply = await SystemStub(channel).Process(request({"question": "why"}, system="shout"))
    assert reply.fields["response"].string_value == "WHY"


async def test_usage_and_options_cross() -> None:
    def process(example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        return {"response": str(options["rate"]), "api_usage": {"prompt_tokens": 3}}

    options = {"rate": convert.value_to_proto(0.5)}
    async with serving(system(process)) as channel:
        reply = await SystemStub(channel).Process(request(options=options))
    assert reply.fields["response"].string_value == "0.5"
    assert reply.usage.prompt_tokens == 3


async def test_a_conversation_gets_its_replies() -> None:
    def converse(self: Any, turns: list[dict[str, Any]]) -> list[Any]:
        return [{"content": turn["content"].upper()} for turn in turns]

    talker = system(lambda example: example, process_conversation=converse)
    message = system_pb2.ProcessConversationRequest()
    convert.turns_to_proto([{"role": "user", "content": "hi"}], message.turns)
    async with serving(talker) as channel:
        reply = await SystemStub(channel).ProcessConversation(message)
    assert [(turn.role, turn.content) for turn in reply.replies] == [("assistant", "HI")]


async def test_a_system_without_conversations_says_so() -> None:
    async with serving(Echo()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            message = system_pb2.ProcessConversationRequest()
            await SystemStub(channel).ProcessConversation(message)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def raise_value_error(example: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no such luck")


def exit_at_once(example: dict[str, Any]) -> dict[str, Any]:
    raise SystemExit(3)


async def exit_on_the_loop(example: dict[str, Any]) -> dict[str, Any]:
    raise SystemExit(3)


async def cancel_itself(example: dict[str, Any]) -> dict[str, Any]:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("process", "reason", "text"),
    [
        (raise_value_error, "EXCEPTION", "ValueError: no such luck"),
        (exit_at_once, "EXCEPTION", "SystemExit: 3"),
        (exit_on_the_loop, "EXCEPTION", "SystemExit: 3"),
        (cancel_itself, "EXCEPTION", "CancelledError"),
        (lambda example: 17, "BAD_RETURN", "int"),
        (lambda example: exit_on_the_loop(example), "BAD_RETURN", "coroutine"),
        (lambda example: {"bad": {1, 2}}, "UNENCODABLE_VALUE", '"bad"'),
        (lambda example: {"bad": 2**64}, "UNENCODABLE_VALUE", '"bad"'),
        (lambda example: {"bad": "\ud800"}, "UNENCODABLE_VALUE", '"bad"'),
        (lambda example: {"api_usage": {"prompt_tokens": 2**70}}, "UNENCODABLE_VALUE", "sent"),
    ],
    ids=[
        "exception",
        "exit",
        "async-exit",
        "async-cancel",
        "not-a-dict",
        "coroutine",
        "set",
        "big-int",
        "surrogate",
        "usage",
    ],
)
async def test_bad_user_code_is_a_failure_and_the_server_lives(
    process: Callable[..., Any], reason: str, text: str
) -> None:
    async with serving(system(process), Echo()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request(system="s"))
        await SystemStub(channel).Process(request(system="echo"))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    failure = failure_in(caught.value)
    assert (failure.reason, failure.origin) == (reason, failure_pb2.FAILURE_ORIGIN_SYSTEM)
    assert text in failure.message
    assert not failure.retryable


async def test_a_stack_trace_shows_the_users_frames_and_not_ours() -> None:
    async with serving(system(raise_value_error)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request())
    trace = failure_in(caught.value).stack_trace
    assert "raise_value_error" in trace
    assert "host/host.py" not in trace
    assert "threads.py" not in trace


async def test_a_long_exception_still_arrives() -> None:
    def process(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("é" * 100_000)

    async with serving(system(process)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request())
    assert failure_in(caught.value).reason == "EXCEPTION"


async def test_user_code_may_ask_for_a_retry() -> None:
    def process(example: dict[str, Any]) -> dict[str, Any]:
        raise RemoteFailure("busy", reason="RATE_LIMITED", retryable=True, retry_delay=2.5)

    async with serving(system(process)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    failure = failure_in(caught.value)
    assert (failure.reason, failure.retryable) == ("RATE_LIMITED", True)
    assert failure.retry_delay.ToMilliseconds() == 2500


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [(math.nan, None), (-1.0, None), (math.inf, 365 * 86_400), (1e300, 365 * 86_400)],
)
async def test_a_delay_that_is_none_costs_no_failure_its_words(
    delay: float, seconds: int | None
) -> None:
    def process(example: dict[str, Any]) -> dict[str, Any]:
        raise RemoteFailure("busy", reason="RATE_LIMITED", retryable=True, retry_delay=delay)

    async with serving(system(process)) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request())
    failure = failure_in(caught.value)
    assert (failure.message, failure.reason) == ("busy", "RATE_LIMITED")
    assert failure.HasField("retry_delay") == (seconds is not None)
    assert failure.retry_delay.ToSeconds() == (seconds or 0)


async def test_a_value_without_a_kind_is_refused_by_its_name() -> None:
    message = request()
    message.example.fields["empty"].SetInParent()
    async with serving(Echo()) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="empty") as caught:
            await SystemStub(channel).Process(message)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_bytes_that_are_no_request_get_a_status() -> None:
    async with serving(Echo()) as channel:
        process = channel.unary_unary("/cbench.v1.System/Process")
        with pytest.raises(grpc.aio.AioRpcError, match="ProcessRequest") as caught:
            await process(b"\xff\xff\xff")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_unknown_system_is_answered_with_those_served() -> None:
    async with serving(Echo(), AsyncEcho()) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="echo, async-echo") as caught:
            await SystemStub(channel).Process(request(system="ecko"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert failure_in(caught.value).reason == "UNKNOWN_SYSTEM"


async def test_no_name_is_refused_where_several_are_served() -> None:
    async with serving(Echo(), AsyncEcho()) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="echo, async-echo") as caught:
            await SystemStub(channel).Process(request())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
