"""Python systems of every shape are called, copied for, and contained when they fail."""

import asyncio
import copy
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems import BUILTINS
from cbench_server.systems.in_process import InProcessCaller, copy_plain
from cbench_server.systems.openai_proxy import OpenAIProxy

EXAMPLE = {"id": 1, "context": "c", "answers": ["a", "b"]}
CHAT = {"id": 1, "context": "c", "multi_turn": True, "turns": [{"role": "user", "content": "hi"}]}


class Calls:
    """A system that does what the function says."""

    name = "calls"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.process = function


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


async def failure_of(caller: InProcessCaller, timeout: float = 20.0) -> Failure:
    with pytest.raises(CallFailed) as caught:
        await caller.call(EXAMPLE, call_id="c", timeout=timeout)
    return caught.value.failure


async def test_a_plain_process_runs_in_the_executor(executor: ThreadPoolExecutor) -> None:
    system = Calls(lambda example: {**example, "response": threading.current_thread().name})
    reply = await InProcessCaller(system, executor=executor).call(EXAMPLE, call_id="c", timeout=20)
    assert reply.processed["response"].startswith("ThreadPoolExecutor")
    assert reply.latency >= 0
    assert reply.usage is None


async def test_async_systems_are_awaited_on_the_loop(executor: ThreadPoolExecutor) -> None:
    async def process(example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": threading.current_thread().name}

    class Twin(Calls):
        aprocess = staticmethod(process)

    for system in (Calls(process), Twin(lambda example: {"response": "the wrong one"})):
        caller = InProcessCaller(system, executor=executor)
        reply = await caller.call(EXAMPLE, call_id="c", timeout=20)
        assert reply.processed["response"] == threading.current_thread().name


@pytest.mark.parametrize(("length", "is_on_loop"), [(10, True), (100_000, False)])
async def test_inline_systems_run_on_the_loop_while_contexts_are_short(
    executor: ThreadPoolExecutor, length: int, is_on_loop: bool
) -> None:
    system = Calls(lambda example: {"thread": threading.get_ident()})
    caller = InProcessCaller(system, executor=executor, inline=True)
    reply = await caller.call({"id": 1, "context": "x" * length}, call_id="c", timeout=20)
    assert (reply.processed["thread"] == threading.get_ident()) is is_on_loop


async def test_a_system_cannot_change_the_original(executor: ThreadPoolExecutor) -> None:
    def vandal(example: dict[str, Any]) -> dict[str, Any]:
        example["answers"].append("mine")
        return {"response": "mine"}

    original = copy.deepcopy(EXAMPLE)
    await InProcessCaller(Calls(vandal), executor=executor).call(original, call_id="c", timeout=20)
    assert original == EXAMPLE


async def test_a_system_that_reuses_its_dict_does_not_change_earlier_answers(
    executor: ThreadPoolExecutor,
) -> None:
    shared: dict[str, Any] = {"seen": []}

    def process(example: dict[str, Any]) -> dict[str, Any]:
        shared["seen"].append(example["id"])
        return shared

    caller = InProcessCaller(Calls(process), executor=executor)
    replies = [await caller.call({"id": n}, call_id="c", timeout=20) for n in (1, 2)]
    assert [reply.processed["seen"] for reply in replies] == [[1], [1, 2]]


async def test_an_exception_becomes_a_failure_with_its_trace(executor: ThreadPoolExecutor) -> None:
    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no luck \udcff")

    failure = await failure_of(InProcessCaller(Calls(broken), executor=executor))
    assert (failure.origin, failure.reason) == ("system", "EXCEPTION")
    assert failure.message == "ValueError: no luck ?"
    assert "in broken" in failure.stack_trace
    assert not failure.retryable


@pytest.mark.parametrize("inline", [True, False])
async def test_exceptions_that_would_end_a_loop_or_a_future_are_contained(
    executor: ThreadPoolExecutor, inline: bool
) -> None:
    async def leaves(example: dict[str, Any]) -> dict[str, Any]:
        sys.exit(3)

    for function, name in [
        (lambda example: next(iter([])), "StopIteration"),
        (lambda example: sys.exit(3), "SystemExit: 3"),
        (leaves, "SystemExit: 3"),
    ]:
        caller = InProcessCaller(Calls(function), executor=executor, inline=inline)
        assert (await failure_of(caller)).message == name


async def test_an_error_as_long_as_a_context_is_cut(executor: ThreadPoolExecutor) -> None:
    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("x" * 1_000_000)

    failure = await failure_of(InProcessCaller(Calls(broken), executor=executor))
    assert len(failure.message) < 2_000
    assert len(failure.stack_trace) < 10_000


async def test_a_failed_call_passes_as_it_is(executor: ThreadPoolExecutor) -> None:
    told = Failure("transport", "UNAVAILABLE", "gone", retryable=True)

    def broken(example: dict[str, Any]) -> dict[str, Any]:
        raise CallFailed(told)

    assert await failure_of(InProcessCaller(Calls(broken), executor=executor)) == told


@pytest.mark.parametrize(("returned", "name"), [(None, "NoneType"), ("text", "str"), ([], "list")])
async def test_what_is_no_dict_is_named(
    executor: ThreadPoolExecutor, returned: Any, name: str
) -> None:
    caller = InProcessCaller(Calls(lambda example: returned), executor=executor)
    failure = await failure_of(caller)
    assert (failure.reason, name in failure.message) == ("BAD_RETURN", True)


async def test_a_dict_that_holds_itself_is_a_bad_return(executor: ThreadPoolExecutor) -> None:
    endless: dict[str, Any] = {}
    endless["self"] = endless
    caller = InProcessCaller(Calls(lambda example: endless), executor=executor)
    assert (await failure_of(caller)).reason == "BAD_RETURN"


async def test_a_thread_that_hangs_runs_into_the_deadline(executor: ThreadPoolExecutor) -> None:
    release = threading.Event()
    caller = InProcessCaller(Calls(lambda example: release.wait(60)), executor=executor)
    failure = await failure_of(caller, timeout=0.05)
    release.set()
    assert (failure.origin, failure.reason) == ("system", "DEADLINE_EXCEEDED")
    assert '"calls" did not answer within 0.05s' in failure.message


async def test_a_coroutine_that_ignores_being_cancelled_cannot_hold_its_row(
    executor: ThreadPoolExecutor,
) -> None:
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

    caller = InProcessCaller(Calls(stubborn), executor=executor)
    assert (await failure_of(caller, timeout=0.05)).reason == "DEADLINE_EXCEEDED"
    release.set()
    await asyncio.wait_for(returned.wait(), 20)


async def test_a_timeout_inside_the_system_is_its_exception(executor: ThreadPoolExecutor) -> None:
    async def impatient(example: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return example

    failure = await failure_of(InProcessCaller(Calls(impatient), executor=executor))
    assert (failure.reason, failure.message) == ("EXCEPTION", "TimeoutError")


async def test_cancelling_the_call_cancels_the_system(executor: ThreadPoolExecutor) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def process(example: dict[str, Any]) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return example

    caller = InProcessCaller(Calls(process), executor=executor)
    task = asyncio.create_task(caller.call(EXAMPLE, call_id="c", timeout=60))
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


async def test_a_conversation_gives_the_last_reply_and_all_of_them(
    executor: ThreadPoolExecutor,
) -> None:
    usage = {"total_tokens": 4}
    system = Talks([{"content": "one"}, {"content": None}, {"content": "3", "api_usage": usage}])
    reply = await InProcessCaller(system, executor=executor).call(CHAT, call_id="c", timeout=20)
    assert reply.processed == CHAT | {
        "response": "3",
        "turn_responses": ["one", "", "3"],
        "api_usage": usage,
    }
    assert reply.usage == usage


async def test_no_replies_are_an_empty_response(executor: ThreadPoolExecutor) -> None:
    caller = InProcessCaller(Talks([]), executor=executor)
    reply = await caller.call(CHAT, call_id="c", timeout=20)
    assert reply.processed == CHAT | {"response": "", "turn_responses": []}


@pytest.mark.parametrize("replies", ["text", None, ["text"]])
async def test_replies_of_the_wrong_shape_are_a_bad_return(
    executor: ThreadPoolExecutor, replies: Any
) -> None:
    caller = InProcessCaller(Talks(replies), executor=executor)
    with pytest.raises(CallFailed, match="process_conversation returned") as caught:
        await caller.call(CHAT, call_id="c", timeout=20)
    assert caught.value.failure.reason == "BAD_RETURN"


@pytest.mark.parametrize(
    "example", [CHAT | {"multi_turn": False}, {"id": 1, "context": "c", "multi_turn": True}]
)
async def test_other_examples_are_processed_as_usual(
    executor: ThreadPoolExecutor, example: dict[str, Any]
) -> None:
    caller = InProcessCaller(Talks([]), executor=executor)
    reply = await caller.call(example, call_id="c", timeout=20)
    assert reply.processed == {"response": "single"}


async def test_a_proxys_conversation_keeps_its_usage(
    executor: ThreadPoolExecutor, server: Any
) -> None:
    server.say("Hello", total_tokens=2)
    caller = InProcessCaller(OpenAIProxy(server.url), executor=executor, location=server.url)
    example = CHAT | {"turns": [{"role": "user", "content": "hi"}] * 2}
    reply = await caller.call(example, call_id="c", timeout=20)
    await caller.close()
    assert reply.processed["turn_responses"] == ["Hello", "Hello"]
    assert reply.usage == {"total_tokens": 4}


@pytest.mark.parametrize("usage", [{}, None, "many"])
async def test_usage_that_says_nothing_is_none(executor: ThreadPoolExecutor, usage: Any) -> None:
    caller = InProcessCaller(Calls(lambda example: {"api_usage": usage}), executor=executor)
    assert (await caller.call(EXAMPLE, call_id="c", timeout=20)).usage is None


async def test_a_system_is_described_once_and_always_connected(
    executor: ThreadPoolExecutor,
) -> None:
    system = BUILTINS["identity"]()
    caller = InProcessCaller(system, executor=executor, location="builtin")
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
