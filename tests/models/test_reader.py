"""The reader answers for compressors, and is billed and blamed apart from them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cbench_server.errors import CallFailed
from cbench_server.events import RowScored
from cbench_server.models.chat import ChatClient
from cbench_server.models.reader import Reader
from cbench_server.results import EvalRow
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.placement import Scoring
from cbench_server.systems import BUILTINS
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.tokens import get_tokenizer

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


class OneExample:
    """A source of one example."""

    def __init__(self, example: dict[str, Any]) -> None:
        self._spooled = SpooledExample(0, "d", 0, example, "")

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return [] if start else [self._spooled]

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return set()


async def read(
    system: Any,
    client: ChatClient,
    example: dict[str, Any] = EXAMPLE,
    *,
    system_prompt: str = "",
    timeout: float = 20.0,
) -> EvalRow:
    """Run one example through a system and a reader, and return its row."""
    caller = InProcessCaller(system)
    plan = Plan(
        run_id="r",
        callers=[caller],
        datasets={"d": DatasetPlan([])},
        tokenizer=get_tokenizer("whitespace"),
        row_timeout=timeout,
        reader=Reader(client, system_prompt),
    )
    rows: list[EvalRow] = []
    async for batch in Pipeline(plan, OneExample(example), Scoring()).events():
        rows += [event.row for event in batch if isinstance(event, RowScored)]
    await caller.close()
    (row,) = rows
    return row


async def test_the_reader_answers_from_the_processed_context(
    server: Any, client: ChatClient
) -> None:
    server.say("two", total_tokens=8)
    reply = await read(BUILTINS["truncate-tail"](), client, system_prompt="Be brief.")
    assert reply.processed == EXAMPLE | {"context": "one two", "response": "two"}
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "one two"},
        {"role": "user", "content": "How many?"},
    ]
    assert (reply.usage, reply.reader_usage) == (None, {"total_tokens": 8})
    assert reply.reader_time > 0
    assert reply.system == "truncate-tail"


async def test_the_question_is_the_originals(server: Any, client: ChatClient) -> None:
    server.say("two")
    system = Returns({"context": "short", "question": "Say yes."})
    await read(system, client)
    assert server.requests[0]["messages"][-1]["content"] == "How many?"


async def test_without_a_question_the_context_is_the_prompt(
    server: Any, client: ChatClient
) -> None:
    server.say("hi")
    await read(BUILTINS["identity"](), client, {"id": 1, "context": "Say hi."})
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Say hi."}]


async def test_identity_with_a_reader_asks_what_the_proxy_asks(
    server: Any, client: ChatClient
) -> None:
    server.echo_messages()
    row = await read(BUILTINS["identity"](), client)
    proxy = OpenAIProxy(server.url)
    answered = await proxy.aprocess(EXAMPLE)
    await proxy.close_connections()
    assert row.processed is not None
    assert json.loads(row.processed["response"]) == json.loads(answered["response"])


@pytest.mark.parametrize(
    "processed",
    [{"context": "c", "response": "done"}, {"context": "c", "response": None}, {"note": "none"}],
    ids=["response", "null-response", "no-context"],
)
async def test_a_system_that_answered_or_left_no_context_is_not_read(
    server: Any, client: ChatClient, processed: dict[str, Any]
) -> None:
    reply = await read(Returns(processed), client)
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
        await Reader(client).read("context", "question", 20)
    failure = caught.value.failure
    assert (failure.origin, failure.reason) == ("reader", reason)
    assert (failure.retryable, failure.attempts) == (retryable, attempts)


async def test_a_reader_that_hangs_runs_into_the_deadline(server: Any, client: ChatClient) -> None:
    server.hang()
    failure = (await read(BUILTINS["identity"](), client, timeout=0.2)).failure
    assert failure is not None
    assert "reader did not answer" in failure.message
    assert (failure.origin, failure.reason) == ("reader", "DEADLINE_EXCEEDED")


async def test_a_system_that_fails_is_not_read(server: Any, client: ChatClient) -> None:
    failure = (await read(BUILTINS["identity"](), client, {"id": 1})).failure
    assert failure is not None
    assert failure.origin == "system"
    assert server.requests == []
