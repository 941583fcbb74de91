"""The reader answers for compressors, and is billed and blamed apart from them."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cbench_server.datasets.prompts.library import prompt_for
from cbench_server.datasets.prompts.prompt import Asking, Message, Prompt
from cbench_server.errors import CallFailed
from cbench_server.events import RowScored
from cbench_server.models.chat import ChatClient
from cbench_server.models.level import Level
from cbench_server.models.model import Model
from cbench_server.models.reader import Reader
from cbench_server.results import EvalRow
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.placement import Scoring
from cbench_server.systems import BUILTINS
from cbench_server.systems.caller import Call, Process, call_one
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.proxy_caller import ProxyCaller
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
    reader = ChatClient(server.url, "r", timeout=20.0, max_retries=0)
    yield reader
    await reader.close_connections()


def reader_of(client: ChatClient, *, window: int | None = None, cap: int = 32) -> Reader:
    model = Model(client, origin="reader", context_window=window)
    return Reader(model, Level(cap=cap))


ASKED = [{"role": "user", "content": "one two three four How many?"}]


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
    prompt: Prompt | None = None,
    window: int | None = None,
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
        reader=reader_of(client, window=window),
        prompts={"d": Asking(prompt)} if prompt else {},
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
    prompt = Prompt(
        template="{instruction}\n\n{context}\n{question}",
        instruction="Count.",
        system_prompt="Be brief.",
        max_tokens=16,
        stop=("\n",),
    )
    reply = await read(BUILTINS["truncate-tail"](), client, prompt=prompt)
    assert reply.processed == EXAMPLE | {"context": "one two", "response": "two"}
    assert server.requests[0] == {
        "model": "r",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Count.\n\none two\nHow many?"},
        ],
        "temperature": 0,
        "max_tokens": 16,
        "stop": ["\n"],
    }
    assert (reply.usage, reply.reader_usage) == (None, {"total_tokens": 8, "requests": 1})
    assert reply.reader_time > 0
    assert reply.system == "truncate-tail"


async def test_the_question_is_the_originals(server: Any, client: ChatClient) -> None:
    server.say("two")
    system = Returns({"context": "short", "question": "Say yes."})
    await read(system, client)
    assert server.requests[0]["messages"][-1]["content"] == "short\n\nHow many?"


async def test_without_a_question_the_context_is_the_prompt(
    server: Any, client: ChatClient
) -> None:
    server.say("hi")
    await read(BUILTINS["identity"](), client, {"id": 1, "context": "Say hi."})
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Say hi."}]


async def test_identity_with_a_reader_asks_what_the_proxy_asks(
    server: Any, client: ChatClient
) -> None:
    server.say("four")
    prompt = Prompt(template="{instruction}\n{context}\n{question}", instruction="Count.")
    await read(BUILTINS["identity"](), client, prompt=prompt)
    proxy = OpenAIProxy(server.url, "r")
    caller = ProxyCaller(proxy, Model(proxy.client, origin="system"))
    answer = await call_one(caller, Call("c", Process(EXAMPLE, asking=Asking(prompt))), 20.0)
    await caller.close()
    assert server.requests[0] == server.requests[1]
    assert answer.processed == EXAMPLE | {"response": "four"}


async def test_a_problem_that_is_its_own_context_is_read_as_the_system_left_it(
    server: Any, client: ChatClient
) -> None:
    server.say("?")
    text = "Ann has three apples and buys five more. How many has she?"
    example = {"id": 1, "context": text, "question": text}
    await read(BUILTINS["truncate-tail"](), client, example, prompt=prompt_for("gsm8k"))
    (message,) = server.requests[0]["messages"]
    assert "Ann has three apples and buys" in message["content"]
    assert "How many" not in message["content"]


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
    ("status", "wait", "reason"),
    [(401, "0", "UNAUTHENTICATED"), (429, "100", "RESOURCE_EXHAUSTED")],
)
async def test_a_reader_that_refuses_is_the_readers_failure(
    server: Any, client: ChatClient, status: int, wait: str, reason: str
) -> None:
    server.answer(status, "no", retry_after=wait)
    with pytest.raises(CallFailed) as caught:
        await reader_of(client).read(ASKED, {}, 20)
    failure = caught.value.failure
    assert (failure.origin, failure.reason, failure.attempts) == ("reader", reason, 1)


async def test_a_busy_reader_is_asked_again_and_the_requests_are_counted(
    server: Any, client: ChatClient
) -> None:
    server.answer(429, "no", retry_after="0")
    server.drop()
    server.say("four")
    row = await read(BUILTINS["identity"](), client)
    assert row.reader_usage == {"requests": 3}
    assert row.attempts == 3
    assert row.failure is None


async def test_the_time_of_a_reading_is_that_of_its_request_alone(
    server: Any, client: ChatClient
) -> None:
    server.answer(429, "no", retry_after="0.3")
    server.say("four")
    said = await reader_of(client).read(ASKED, {}, 20)
    assert said.requests == 2
    assert said.seconds < 0.3


async def test_a_reader_is_not_flooded(server: Any, client: ChatClient) -> None:
    most = 0
    at_work = 0
    lock = threading.Lock()

    def step(handler: Any) -> None:
        nonlocal most, at_work
        with lock:
            at_work += 1
            most = max(most, at_work)
        with server.one_at_a_time:
            handler.reply(200, '{"choices": [{"message": {"content": "x"}}]}')
        with lock:
            at_work -= 1

    server.one_at_a_time = threading.Lock()
    server.steps.append(step)
    reader = reader_of(client, cap=4)
    await asyncio.gather(*(reader.read(ASKED, {}, 20) for _ in range(40)))
    assert len(server.requests) == 40
    assert most <= 4


# What was cut.


def completion(content: str, finish: str = "stop", **usage: Any) -> str:
    choice = {"message": {"content": content}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": usage})


async def test_an_answer_that_ended_at_its_limit_is_marked(server: Any, client: ChatClient) -> None:
    server.answer(200, completion("and so", "length"))
    row = await read(BUILTINS["identity"](), client)
    assert (row.finish_reason, row.marks) == ("length", ("ANSWER_CUT",))


async def test_a_prompt_that_the_endpoint_cut_is_marked(server: Any, client: ChatClient) -> None:
    server.answer(200, completion("x", prompt_tokens=64))
    example = {"id": 1, "context": "word " * 500, "question": "What?"}
    row = await read(BUILTINS["identity"](), client, example)
    assert (row.finish_reason, row.marks) == ("stop", ("PROMPT_CUT",))


async def test_a_cut_is_known_by_how_the_model_usually_counts(
    server: Any, client: ChatClient
) -> None:
    reader = reader_of(client)
    for reported in (150, 160, 155, 150, 150, 152, 158, 150):
        server.answer(200, completion("x", prompt_tokens=reported))
    server.answer(200, completion("x", prompt_tokens=300))
    asked: list[Message] = [{"role": "user", "content": "some text " * 40}]
    plain = [await reader.read(asked, {}, 20, sent_tokens=100) for _ in range(8)]
    assert [said.marks for said in plain] == [()] * 8
    # Our 300 tokens would be about 450 of its own.
    longer: list[Message] = [{"role": "user", "content": "some text " * 120}]
    assert (await reader.read(longer, {}, 20, sent_tokens=300)).marks == ("PROMPT_CUT",)


async def test_a_prompt_over_the_window_is_marked_and_sent_whole(
    server: Any, client: ChatClient
) -> None:
    server.say("x")
    prompt = Prompt(template="{context} {question}", max_tokens=30)
    row = await read(BUILTINS["identity"](), client, prompt=prompt, window=35)
    assert row.marks == ("PROMPT_OVER_WINDOW",)
    assert server.requests[0]["messages"][0]["content"] == "one two three four How many?"
    assert (await read(BUILTINS["identity"](), client, prompt=prompt, window=36)).marks == ()


@pytest.mark.parametrize(("reported", "marks"), [(6, ()), (7, ("PROMPT_OVER_WINDOW",))])
async def test_a_reader_that_counts_more_tokens_than_we_do_is_believed(
    server: Any, client: ChatClient, reported: int, marks: tuple[str, ...]
) -> None:
    server.answer(200, completion("x", prompt_tokens=reported))
    prompt = Prompt(template="{context} {question}", max_tokens=30)
    row = await read(BUILTINS["identity"](), client, prompt=prompt, window=36)
    assert row.marks == marks


@pytest.mark.parametrize(
    "body",
    [
        "This model's maximum context length is 512 tokens.",
        '{"error": {"type": "exceed_context_size_error"}}',
        "prompt is too long: 9000 tokens > 8192 maximum",
    ],
)
async def test_a_prompt_that_was_refused_as_too_long_is_the_readers_failure_and_marked(
    server: Any, client: ChatClient, body: str
) -> None:
    server.answer(400, body)
    row = await read(BUILTINS["identity"](), client)
    assert row.failure is not None
    assert (row.failure.origin, row.failure.reason) == ("reader", "CONTEXT_OVERFLOW")
    assert row.marks == ("PROMPT_CUT",)


async def test_a_setting_that_a_model_refuses_can_be_left_out(server: Any) -> None:
    said = "Unsupported value: 'temperature' does not support 0."
    server.answer(400, json.dumps({"error": {"message": said}}))
    client = ChatClient(server.url, "r", max_retries=0)
    row = await read(BUILTINS["identity"](), client)
    assert row.failure is not None
    assert "--reader-option temperature=null" in row.failure.message
    await client.close_connections()
    server.say("x")
    client = ChatClient(server.url, "r", max_retries=0, extra_body={"temperature": None})
    row = await read(BUILTINS["identity"](), client)
    await client.close_connections()
    assert "temperature" not in server.requests[-1]


async def test_cached_tokens_are_kept(server: Any, client: ChatClient) -> None:
    server.answer(200, completion("x", prompt_tokens=9, prompt_tokens_details={"cached_tokens": 4}))
    row = await read(BUILTINS["identity"](), client)
    assert row.reader_usage is not None
    assert row.reader_usage["cached_prompt_tokens"] == 4


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
