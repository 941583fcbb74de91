"""Serving systems and evaluators: unary calls, health, reflection, addresses."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cbench_client._gen.cbench.v1 import evaluator_pb2, failure_pb2, system_pb2
from cbench_client._gen.cbench.v1.evaluator_pb2_grpc import EvaluatorStub
from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.errors import RemoteFailure
from cbench_client.host.calls import current_call
from cbench_client.host.offers import NotServable
from cbench_client.host.server import CannotServe, Server
from cbench_client.messages import convert
from cbench_client.remote.channel import open_channel


class Echo:
    """Returns what it gets.

    And says so.
    """

    name = "echo"
    version = "1.2"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "hello"}


class AsyncEcho:
    name = "async-echo"
    max_concurrency = 7

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {**example, "response": "hello"}


def system(process: Callable[..., Any], **attributes: Any) -> Any:
    """Build a system called `s` from one function."""
    return type("S", (), {"name": "s", "process": staticmethod(process), **attributes})()


@asynccontextmanager
async def serving(*objects: Any, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
    server = Server(list(objects), **options)
    await asyncio.to_thread(server.start)
    try:
        async with open_channel(server.address) as channel:
            yield channel
    finally:
        await asyncio.to_thread(server.stop, 0)


def request(example: dict[str, Any] | None = None, **fields: Any) -> system_pb2.ProcessRequest:
    return system_pb2.ProcessRequest(example=convert.example_to_proto(example or {}), **fields)


def failure_in(error: grpc.aio.AioRpcError) -> failure_pb2.Failure:
    trailers = dict(error.trailing_metadata())
    return failure_pb2.Failure.FromString(trailers["cbench-failure-bin"])


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


class Held:
    """A synchronous system whose calls wait to be let go."""

    name = "held"
    max_concurrency = 1

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Event()
        self.cancelled = threading.Event()
        self.deadlines: list[float | None] = []
        self.running = 0
        self.most = 0

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        call = current_call()
        self.deadlines.append(call.remaining)
        self.running += 1
        self.most = max(self.most, self.running)
        self.entered.release()
        while not self.go.wait(0.01):
            if call.cancelled.is_set():
                self.cancelled.set()
                self.go.wait(30)
        self.running -= 1
        return {"response": call.call_id}

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=10)


async def test_a_deadline_and_a_cancellation_reach_synchronous_code() -> None:
    held = Held()
    async with serving(held) as channel:
        call = SystemStub(channel).Process(request(call_id="a"), timeout=60)
        await held.begun()
        call.cancel()
        assert await asyncio.to_thread(held.cancelled.wait, 10)
        held.go.set()
    assert held.deadlines[0] is not None
    assert 0 < held.deadlines[0] < 120


async def test_a_cancellation_reaches_asynchronous_code() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def process(example: dict[str, Any]) -> dict[str, Any]:
        entered.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return example

    async with serving(system(process)) as channel:
        call = SystemStub(channel).Process(request())
        assert await asyncio.to_thread(entered.wait, 10)
        call.cancel()
        assert await asyncio.to_thread(cancelled.wait, 10)


async def test_a_cancelled_thread_keeps_its_place_until_it_returns() -> None:
    held = Held()
    async with serving(held) as channel:
        stub = SystemStub(channel)
        first = stub.Process(request(call_id="a"))
        await held.begun()
        first.cancel()
        assert await asyncio.to_thread(held.cancelled.wait, 10)
        second = asyncio.ensure_future(stub.Process(request(call_id="a")))
        held.go.set()
        assert (await second).fields["response"].string_value == "a"
    assert held.most == 1


async def test_a_call_id_still_in_flight_is_refused() -> None:
    held = Held()
    async with serving(held) as channel:
        stub = SystemStub(channel)
        first = asyncio.ensure_future(stub.Process(request(call_id="a")))
        await held.begun()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Process(request(call_id="a"))
        held.go.set()
        await first
        await stub.Process(request(call_id="a"))
    assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS


async def test_calls_beyond_the_limit_wait_and_beyond_the_queue_are_refused() -> None:
    held = Held()
    async with serving(held) as channel:
        stub = SystemStub(channel)
        calls = [asyncio.ensure_future(stub.Process(request())) for _ in range(6)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        held.go.set()
        results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [result for result in results if isinstance(result, grpc.aio.AioRpcError)]
    assert [error.code() for error in refused] == [grpc.StatusCode.RESOURCE_EXHAUSTED]
    assert failure_in(refused[0]).retryable
    assert held.most == 1


async def test_fifty_megabytes_go_through() -> None:
    text = "x" * 50_000_000
    async with serving(system(lambda example: {"response": example["context"] + "y"})) as channel:
        reply = await SystemStub(channel).Process(request({"context": text}))
    assert reply.fields["response"].string_value == text + "y"


async def test_a_result_too_large_for_a_message_is_a_failure() -> None:
    async with serving(system(lambda example: {"response": "x" * 140_000_000})) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SystemStub(channel).Process(request())
    assert failure_in(caught.value).reason == "RESULT_TOO_LARGE"


class Length:
    """Compares lengths."""

    name = "length"
    version = "3"
    scores = ("same_length",)
    required_fields = ("answer",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, Any]:
        same = len(original["answer"]) == len(processed["response"])
        return {"same_length": float(same), "other": None}


class Judge:
    name = "judge"

    async def assess(self, original: Any, processed: Any, options: dict[str, Any]) -> Any:
        if options.get("broken"):
            raise ConnectionError("the judge is down")
        return {"scores": {"f1": 0.5}, "details": {"model": options["model"]}}


def pair(**fields: Any) -> evaluator_pb2.ScoreRequest:
    message = evaluator_pb2.ScoreRequest(**fields)
    convert.example_to_proto({"answer": "abc"}, message.original)
    convert.example_to_proto({"response": "xyz"}, message.processed)
    return message


async def test_an_evaluator_scores_and_describes_itself() -> None:
    async with serving(Length()) as channel:
        stub = EvaluatorStub(channel)
        reply = await stub.Score(pair())
        described = await stub.Describe(evaluator_pb2.EvaluatorDescribeRequest())
    assert dict(reply.scores) == {"same_length": 1.0}
    (info,) = described.evaluators
    assert (info.name, info.version, info.scores[0].name) == ("length", "3", "same_length")
    assert list(info.required_fields) == ["answer"]


async def test_an_assessment_brings_its_details() -> None:
    async with serving(Length(), Judge()) as channel:
        options = {"model": convert.value_to_proto("m")}
        reply = await EvaluatorStub(channel).Score(pair(evaluator="judge", options=options))
    assert dict(reply.scores) == {"f1": 0.5}
    assert reply.details["model"].string_value == "m"


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("length", {"model": "m"}, grpc.StatusCode.INVALID_ARGUMENT),
        ("judge", {"broken": True}, grpc.StatusCode.INTERNAL),
        ("judgment", {}, grpc.StatusCode.NOT_FOUND),
    ],
    ids=["takes-no-options", "broken", "unknown"],
)
async def test_an_evaluator_refuses(
    name: str, options: dict[str, Any], code: grpc.StatusCode
) -> None:
    values = {key: convert.value_to_proto(value) for key, value in options.items()}
    async with serving(Length(), Judge()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await EvaluatorStub(channel).Score(pair(evaluator=name, options=values))
    assert caught.value.code() is code
    assert failure_in(caught.value).origin == failure_pb2.FAILURE_ORIGIN_EVALUATOR


async def test_health_knows_the_services_served() -> None:
    async with serving(Echo()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "cbench.v1.System"):
            reply = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="cbench.v1.Evaluator"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_the_services_served() -> None:
    async with serving(Echo(), Length()) as channel:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        reply = await call.read()
        await call.done_writing()
    names = {service.name for service in reply.list_services_response.service}
    assert {"cbench.v1.System", "cbench.v1.Evaluator", "grpc.health.v1.Health"} <= names


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([Echo(), Echo()], 'two systems are called "echo"'),
        ([Echo], "Echo is a class"),
        ([object()], "cannot be served"),
        ([], "nothing to serve"),
        ([system(lambda example: example, name="a/b")], "a/b"),
        ([system(lambda example: example, name="")], "name"),
        ([system(lambda example: example, max_concurrency=0)], "max_concurrency"),
    ],
    ids=["twice", "class", "object", "nothing", "slash", "empty", "limit"],
)
def test_what_cannot_be_served_is_refused_at_once(objects: list[Any], text: str) -> None:
    with pytest.raises(NotServable, match=text):
        Server(objects)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0.0.0.0:0", "unsafe=True"),
        ("[::]:0", "unsafe=True"),
        ("127.0.0.1", "no port"),
    ],
    ids=["every-interface", "ipv6", "no-port"],
)
def test_an_address_that_is_not_safe_or_whole_is_refused(address: str, text: str) -> None:
    with pytest.raises(CannotServe, match=text):
        Server(Echo(), address)


def test_a_taken_port_is_named() -> None:
    with Server(Echo()) as first, pytest.raises(CannotServe, match=first.address):
        Server(AsyncEcho(), first.address).start()


def test_a_taken_socket_is_named(tmp_path: Any) -> None:
    address = f"unix:{tmp_path}/s.sock"
    with Server(Echo(), address), pytest.raises(CannotServe, match="s.sock"):
        Server(AsyncEcho(), address).start()
