"""The reader answers for compressors, and is billed and blamed apart from them."""

import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cbench_server.errors import CallFailed
from cbench_server.systems import BUILTINS
from cbench_server.systems.chat import ChatClient
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.reader import ReaderCaller

EXAMPLE = {"id": 1, "context": "one two three four", "question": "How many?"}


class Returns:
    """A system that returns what it was made with."""

    name = "returns"

    def __init__(self, processed: dict[str, Any]) -> None:
        self.processed = processed

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return self.processed


@pytest.fixture
async def client(server: Any) -> AsyncIterator[ChatClient]:
    reader = ChatClient(server.url, "r", timeout=20.0, max_retries=1, retry_base_delay=0.001)
    yield reader
    await reader.close_connections()


def reading(system: Any, client: ChatClient, **settings: Any) -> ReaderCaller:
    caller = InProcessCaller(system, executor=ThreadPoolExecutor(1))
    return ReaderCaller(caller, client, **settings)


async def test_the_reader_answers_from_the_processed_context(
    server: Any, client: ChatClient
) -> None:
    server.say("two", total_tokens=8)
    caller = reading(BUILTINS["truncate-tail"](), client, system_prompt="Be brief.")
    reply = await caller.call(EXAMPLE, call_id="c", timeout=20)
    assert reply.processed == EXAMPLE | {"context": "one two", "response": "two"}
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "one two"},
        {"role": "user", "content": "How many?"},
    ]
    assert (reply.usage, reply.reader_usage) == (None, {"total_tokens": 8})
    assert reply.reader_time > 0
    assert caller.description.name == "truncate-tail"


async def test_the_question_is_the_originals(server: Any, client: ChatClient) -> None:
    server.say("two")
    system = Returns({"context": "short", "question": "Say yes."})
    await reading(system, client).call(EXAMPLE, call_id="c", timeout=20)
    assert server.requests[0]["messages"][-1]["content"] == "How many?"


async def test_without_a_question_the_context_is_the_prompt(
    server: Any, client: ChatClient
) -> None:
    server.say("hi")
    caller = reading(BUILTINS["identity"](), client)
    await caller.call({"id": 1, "context": "Say hi."}, call_id="c", timeout=20)
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Say hi."}]


async def test_identity_with_a_reader_asks_what_the_proxy_asks(
    server: Any, client: ChatClient
) -> None:
    server.echo_messages()
    read = await reading(BUILTINS["identity"](), client).call(EXAMPLE, call_id="c", timeout=20)
    proxy = OpenAIProxy(server.url)
    answered = await proxy.aprocess(EXAMPLE)
    await proxy.close_connections()
    assert json.loads(read.processed["response"]) == json.loads(answered["response"])


@pytest.mark.parametrize(
    "processed",
    [{"context": "c", "response": "done"}, {"context": "c", "response": None}, {"note": "none"}],
    ids=["response", "null-response", "no-context"],
)
async def test_a_system_that_answered_or_left_no_context_is_not_read(
    server: Any, client: ChatClient, processed: dict[str, Any]
) -> None:
    reply = await reading(Returns(processed), client).call(EXAMPLE, call_id="c", timeout=20)
    assert (reply.processed, reply.reader_time) == (processed, 0.0)
    assert server.requests == []


@pytest.mark.parametrize(
    ("status", "reason", "retryable", "attempts"),
    [(401, "UNAUTHENTICATED", False, 1), (429, "RESOURCE_EXHAUSTED", True, 2)],
)
async def test_a_reader_that_refuses_is_the_readers_failure(
    server: Any, client: ChatClient, status: int, reason: str, retryable: bool, attempts: int
) -> None:
    server.answer(status, "no", retry_after="0")
    with pytest.raises(CallFailed) as caught:
        await reading(BUILTINS["identity"](), client).call(EXAMPLE, call_id="c", timeout=20)
    failure = caught.value.failure
    assert (failure.origin, failure.reason) == ("reader", reason)
    assert (failure.retryable, failure.attempts) == (retryable, attempts)


async def test_a_reader_that_hangs_runs_into_the_deadline(server: Any, client: ChatClient) -> None:
    server.hang()
    with pytest.raises(CallFailed, match="reader did not answer") as caught:
        await reading(BUILTINS["identity"](), client).call(EXAMPLE, call_id="c", timeout=0.2)
    assert caught.value.failure.origin == "reader"
    assert caught.value.failure.reason == "DEADLINE_EXCEEDED"


async def test_a_system_that_fails_is_not_read(server: Any, client: ChatClient) -> None:
    with pytest.raises(CallFailed) as caught:
        await reading(BUILTINS["identity"](), client).call({"id": 1}, call_id="c", timeout=20)
    assert caught.value.failure.origin == "system"
    assert server.requests == []
