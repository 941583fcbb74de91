"""Python systems of every shape are called, copied for, and contained when they fail."""

import asyncio
import copy
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems import BUILTINS, crew
from cbench_server.systems.caller import Answer, Call, Process, call_one
from cbench_server.systems.in_process import InProcessCaller, copy_plain
from cbench_server.systems.openai_proxy import OpenAIProxy

EXAMPLE = {"id": 1, "context": "c", "answers": ["a", "b"]}
CHAT = {"id": 1, "context": "c", "multi_turn": True, "turns": [{"role": "user", "content": "hi"}]}


class Calls:
    """A system that does what the function says."""

    name = "calls"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.process = function


async def ask(caller: InProcessCaller, example: dict[str, Any], timeout: float = 20.0) -> Answer:
    return await call_one(caller, Call("c", Process(example)), timeout)


async def failure_of(caller: InProcessCaller, timeout: float = 20.0) -> Failure:
    with pytest.raises(CallFailed) as caught:
        await ask(caller, EXAMPLE, timeout)
    return caught.value.failure


async def test_a_plain_process_runs_in_a_thread_of_its_crew() -> None:
    system = Calls(lambda example: {**example, "response": threading.current_thread().name})
    reply = await ask(InProcessCaller(system), EXAMPLE)
    assert reply.processed["response"] == "cbench-calls"
    assert reply.latency >= 0
    assert reply.usage is None


async def test_async_systems_are_awaited_on_the_loop() -> None:
    async def process(example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": threading.current_thread().name}

    class Twin(Calls):
        aprocess = staticmethod(process)

    for system in (Calls(process), Twin(lambda example: {"response": "the wrong one"})):
        caller = InProcessCaller(system)
        reply = await ask(caller, EXAMPLE)
        assert reply.processed["response"] == threading.current_thread().name


@pytest.mark.parametrize(("length", "is_on_loop"), [(10, True), (100_000, False)])
async def test_inline_systems_run_on_the_loop_while_contexts_are_short(
    length: int, is_on_loop: bool
) -> None:
    system = Calls(lambda example: {"thread": threading.get_ident()})
    caller = InProcessCaller(system, inline=True)
    reply = await ask(caller, {"id": 1, "context": "x" * length})
    assert (reply.processed["thread"] == threading.get_ident()) is is_on_loop


async def test_a_system_cannot_change_the_original() -> None:
    def vandal(example: dict[str, Any]) -> dict[str, Any]:
        example["answers"].append("mine")
        return {"response": "mine"}

    original = copy.deepcopy(EXAMPLE)
    await ask(InProcessCaller(Calls(vandal)), original)
    assert original == EXAMPLE


async def test_a_system_that_reuses_its_dict_does_not_change_earlier_answers() -> None:
    shared: dict[str, Any] = {"seen": []}

    def process(example: dict[str, Any]) -> dict[str, Any]:
        shared["seen"].append(example["id"])
        return shared

    caller = InProcessCaller(Calls(process))
    replies = [await ask(caller, {"id": n}) for n in (1, 2)]
    assert [reply.processed["seen"] for reply in replies] == [[1], [1, 2]]


async def test_an_exception_becomes_a_failure_with_its_trace() -> None:
    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no luck \udcff")

    failure = await failure_of(InProcessCaller(Calls(broken)))
    assert (failure.origin, failure.reason) == ("system", "EXCEPTION")
    assert failure.message == "ValueError: no luck ?"
    assert "in broken" in failure.stack_trace
    assert not failure.retryable


@pytest.mark.parametrize("inline", [True, False])
async def test_exceptions_that_would_end_a_loop_or_a_future_are_contained(inline: bool) -> None:
    async def leaves(example: dict[str, Any]) -> dict[str, Any]:
        sys.exit(3)

    for function, name in [
        (lambda example: next(iter([])), "StopIteration"),
        (lambda example: sys.exit(3), "SystemExit: 3"),
        (leaves, "SystemExit: 3"),
    ]:
        caller = InProcessCaller(Calls(function), inline=inline)
        assert (await failure_of(caller)).message == name


async def test_an_error_as_long_as_a_context_is_cut() -> None:
    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("x" * 1_000_000)

    failure = await failure_of(InProcessCaller(Calls(broken)))
    assert len(failure.message) < 2_000
    assert len(failure.stack_trace) < 10_000


async def test_a_failed_call_passes_as_it_is() -> None:
    told = Failure("transport", "UNAVAILABLE", "gone", retryable=True)

    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise CallFailed(told)

    assert await failure_of(InProcessCaller(Calls(broken))) == told


@pytest.mark.parametrize(("returned", "name"), [(None, "NoneType"), ("text", "str"), ([], "list")])
async def test_what_is_no_dict_is_named(returned: Any, name: str) -> None:
    caller = InProcessCaller(Calls(lambda example: returned))
    failure = await failure_of(caller)
    assert (failure.reason, name in failure.message) == ("BAD_RETURN", True)


async def test_a_dict_that_holds_itself_is_a_bad_return() -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    caller = InProcessCaller(Calls(lambda example: endless))
    assert (await failure_of(caller)).reason == "BAD_RETURN"


async def test_a_thread_that_hangs_runs_into_the_deadline() -> None:
    release = threading.Event()
    caller = InProcessCaller(Calls(lambda example: release.wait(60)))
    failure = await failure_of(caller, timeout=0.05)
    release.set()
    assert (failure.origin, failure.reason) == ("system", "DEADLINE_EXCEEDED")
    assert '"calls" did not answer within 0.05s' in failure.message


async def test_a_late_call_fails_alone_and_its_thread_is_replaced() -> None:
    release = threading.Event()

    def process(example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == 0:
            release.wait(60)
        return example

    caller = InProcessCaller(Calls(process), workers=1)
    ended: dict[int, Any] = {}
    all_ended = asyncio.Event()

    def note(number: int, outcome: Any) -> None:
        ended[number] = outcome
        if len(ended) == 3:
            all_ended.set()

    def answered(answers: list[Answer]) -> None:
        for answer in answers:
            note(answer.processed["id"], answer)

    caller.start_many(
        [Call(f"c{number}", Process({"id": number, "context": ""})) for number in range(3)],
        0.2,
        answered,
        lambda call, error: note(call.work.example["id"], error),
    )
    await asyncio.wait_for(all_ended.wait(), 20)
    release.set()
    await caller.close()
    assert isinstance(ended[0], CallFailed)
    assert ended[0].failure.reason == "DEADLINE_EXCEEDED"
    # Their time counts from when a thread took them up, not from when they were queued.
    assert [type(ended[number]) for number in (1, 2)] == [Answer, Answer]


async def test_calls_that_no_thread_can_take_up_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "MAX_LEFT", 2)
    release = threading.Event()
    caller = InProcessCaller(Calls(lambda example: release.wait(60)), workers=1)
    failures = await asyncio.gather(*(failure_of(caller, timeout=0.1) for _ in range(4)))
    release.set()
    assert {failure.reason for failure in failures} == {"DEADLINE_EXCEEDED"}
    assert sum("never returned" in failure.message for failure in failures) == 2


async def test_a_coroutine_that_ignores_being_cancelled_cannot_hold_its_row() -> None:
    release = asyncio.Event()
    returned = asyncio.Event()

    async def stubborn(example: dict[str, Any]) -> dict[str, Any]:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        returned.set()
        return example

    caller = InProcessCaller(Calls(stubborn))
    assert (await failure_of(caller, timeout=0.05)).reason == "DEADLINE_EXCEEDED"
    release.set()
    await asyncio.wait_for(returned.wait(), 20)


async def test_a_timeout_inside_the_system_is_its_exception() -> None:
    async def impatient(example: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return example

    failure = await failure_of(InProcessCaller(Calls(impatient)))
    assert (failure.reason, failure.message) == ("EXCEPTION", "TimeoutError")


async def test_cancelling_the_call_cancels_the_system() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def process(example: dict[str, Any]) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return example

    caller = InProcessCaller(Calls(process))
    task = asyncio.create_task(ask(caller, EXAMPLE, 60))
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 20)


class Talks:
    """A system that answers turn by turn."""

    name = "talks"

    def __init__(self, replies: Any) -> None:
        self.replies = replies

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "single"}

    def process_conversation(self, turns: list[dict[str, Any]]) -> Any:
        return self.replies


async def test_a_conversation_gives_the_last_reply_and_all_of_them() -> None:
    usage = {"total_tokens": 4}
    system = Talks([{"content": "one"}, {"content": None}, {"content": "3", "api_usage": usage}])
    reply = await ask(InProcessCaller(system), CHAT)
    assert reply.processed == CHAT | {
        "response": "3",
        "turn_responses": ["one", "", "3"],
        "api_usage": usage,
    }
    assert reply.usage == usage


async def test_no_replies_are_an_empty_response() -> None:
    caller = InProcessCaller(Talks([]))
    reply = await ask(caller, CHAT)
    assert reply.processed == CHAT | {"response": "", "turn_responses": []}


@pytest.mark.parametrize("replies", ["text", None, ["text"]])
async def test_replies_of_the_wrong_shape_are_a_bad_return(replies: Any) -> None:
    caller = InProcessCaller(Talks(replies))
    with pytest.raises(CallFailed, match="process_conversation returned") as caught:
        await ask(caller, CHAT)
    assert caught.value.failure.reason == "BAD_RETURN"


@pytest.mark.parametrize(
    "example", [CHAT | {"multi_turn": False}, {"id": 1, "context": "c", "multi_turn": True}]
)
async def test_other_examples_are_processed_as_usual(example: dict[str, Any]) -> None:
    caller = InProcessCaller(Talks([]))
    reply = await ask(caller, example)
    assert reply.processed == {"response": "single"}


async def test_a_proxys_conversation_keeps_its_usage(server: Any) -> None:
    server.say("Hello", total_tokens=2)
    caller = InProcessCaller(OpenAIProxy(server.url), location=server.url)
    example = CHAT | {"turns": [{"role": "user", "content": "hi"}] * 2}
    reply = await ask(caller, example)
    await caller.close()
    assert reply.processed["turn_responses"] == ["Hello", "Hello"]
    assert reply.usage == {"total_tokens": 4}


@pytest.mark.parametrize("usage", [{}, None, "many"])
async def test_usage_that_says_nothing_is_none(usage: Any) -> None:
    caller = InProcessCaller(Calls(lambda example: {"api_usage": usage}))
    assert (await ask(caller, EXAMPLE)).usage is None


async def test_a_system_is_described_once_and_always_connected() -> None:
    system = BUILTINS["identity"]()
    caller = InProcessCaller(system, location="builtin")
    assert caller.description.name == "identity"
    assert (caller.description.version, caller.description.location) == ("1", "builtin")
    assert await caller.wait_connected(0)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
)


@given(plain)
def test_a_copy_equals_what_it_copies_and_shares_no_list_or_dict(value: Any) -> None:
    copied = copy_plain(value)
    assert copied == value
    assert type(copied) is type(value)
    assert not (containers(copied) & containers(value))


def containers(value: Any) -> set[int]:
    """The identities of all lists and dicts inside."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(containers, value))
    if isinstance(value, tuple):
        return set[int]().union(*map(containers, value))
    return set()
