"""Serving over streams: order, deadlines, cancellation, limits, bad bytes, the end."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import evaluator_pb2, failure_pb2, system_pb2
from cbench_client._gen.cbench.v1.evaluator_pb2_grpc import EvaluatorStub
from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.host import lane
from cbench_client.host.calls import current_call
from cbench_client.host.server import Server
from cbench_client.messages import convert
from cbench_client.remote.channel import open_channel


class Latches:
    """A synchronous system: an example that names a latch waits for it, `nap` is a little work."""

    name = "latches"
    max_concurrency = 2

    def __init__(self) -> None:
        self.latches = {name: threading.Event() for name in "ab"}
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._running = 0
        self.most = 0

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        call = current_call()
        if example.get("latch") == "nap":
            time.sleep(0.001)
        latch = self.latches.get(example.get("latch", ""))
        while latch is not None and not latch.wait(0.01):
            if call.cancelled.is_set():
                self.cancelled.set()
                break
        with self._lock:
            self._running -= 1
        return {"response": call.call_id}


class AsyncLatches:
    """The same, asynchronous."""

    name = "latches"
    max_concurrency = 2

    def __init__(self) -> None:
        self.latches = {name: threading.Event() for name in "ab"}
        self.cancelled = threading.Event()

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        latch = self.latches.get(example.get("latch", ""))
        try:
            while latch is not None and not latch.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return {"response": current_call().call_id}


BOTH = pytest.mark.parametrize("kind", [Latches, AsyncLatches], ids=["sync", "async"])


@asynccontextmanager
async def streaming(*objects: Any) -> AsyncIterator[tuple[Server, Any]]:
    server = Server(list(objects))
    await asyncio.to_thread(server.start)
    try:
        async with open_channel(server.address) as channel:
            yield server, SystemStub(channel).ProcessStream()
    finally:
        await asyncio.to_thread(server.stop, 0)


def message(*calls: tuple[str, str], timeout: float | None = None) -> Any:
    request = system_pb2.ProcessStreamRequest()
    for call_id, latch in calls:
        call = request.calls.add()
        call.request.call_id = call_id
        convert.example_to_proto({"latch": latch}, call.request.example)
        if timeout is not None:
            call.timeout.FromMilliseconds(round(timeout * 1e3))
    return request


def cancel(*call_ids: str) -> Any:
    return system_pb2.ProcessStreamRequest(cancel_call_ids=call_ids)


async def outcomes(stream: Any, number: int) -> list[system_pb2.ProcessOutcome]:
    found: list[system_pb2.ProcessOutcome] = []
    while len(found) < number:
        reply = await asyncio.wait_for(stream.read(), 20)
        assert reply is not grpc.aio.EOF, f"the stream ended after {len(found)} outcomes"
        found.extend(reply.outcomes)
    return found


@BOTH
async def test_a_slow_call_does_not_delay_others_of_its_message(kind: Any) -> None:
    system = kind()
    async with streaming(system) as (_, stream):
        await stream.write(message(("slow", "a"), ("quick", "")))
        (first,) = await outcomes(stream, 1)
        system.latches["a"].set()
        (second,) = await outcomes(stream, 1)
    assert (first.call_id, second.call_id) == ("quick", "slow")
    assert second.response.fields["response"].string_value == "slow"


@BOTH
async def test_ending_the_requests_answers_what_is_held_and_ends_the_stream(kind: Any) -> None:
    system = kind()
    async with streaming(system) as (_, stream):
        await stream.write(message(("slow", "a"), ("1", ""), ("2", ""), ("3", "")))
        await stream.done_writing()
        found = await outcomes(stream, 3)
        system.latches["a"].set()
        found += await outcomes(stream, 1)
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK
    assert sorted(outcome.call_id for outcome in found) == ["1", "2", "3", "slow"]


@BOTH
async def test_calls_expire_in_the_order_of_their_deadlines_not_of_their_arrival(
    kind: Any,
) -> None:
    system = kind()
    async with streaming(system) as (_, stream):
        await stream.write(message(("patient", "a"), timeout=60))
        await stream.write(message(("second", "b"), timeout=2.0))
        await stream.write(message(("first", "b"), timeout=0.05))
        late = await outcomes(stream, 2)
        system.latches["a"].set()
        (answered,) = await outcomes(stream, 1)
    assert [outcome.call_id for outcome in late] == ["first", "second"]
    assert {outcome.failure.reason for outcome in late} == {"DEADLINE_EXCEEDED"}
    assert answered.response.fields["response"].string_value == "patient"


@BOTH
async def test_a_deadline_is_answered_at_once_and_reaches_user_code(kind: Any) -> None:
    system = kind()
    async with streaming(system) as (_, stream):
        await stream.write(message(("slow", "a"), timeout=0.05))
        (outcome,) = await outcomes(stream, 1)
        assert await asyncio.to_thread(system.cancelled.wait, 60)
    assert outcome.failure.reason == "DEADLINE_EXCEEDED"
    assert outcome.failure.origin == failure_pb2.FAILURE_ORIGIN_SYSTEM


@BOTH
async def test_a_cancelled_call_is_told_and_gets_no_outcome(kind: Any) -> None:
    system = kind()
    async with streaming(system) as (_, stream):
        await stream.write(message(("gone", "a"), ("other", "b")))
        await stream.write(cancel("gone", "never-heard-of"))
        assert await asyncio.to_thread(system.cancelled.wait, 60)
        system.latches["b"].set()
        await stream.done_writing()
        (outcome,) = await outcomes(stream, 1)
        assert await stream.read() is grpc.aio.EOF
    assert outcome.call_id == "other"


async def test_a_broken_stream_cancels_its_calls() -> None:
    system = Latches()
    async with streaming(system) as (_, stream):
        await stream.write(message(("quick", ""), ("slow", "a")))
        await outcomes(stream, 1)
        stream.cancel()
        assert await asyncio.to_thread(system.cancelled.wait, 60)


async def test_the_announced_limit_holds_for_a_thousand_calls() -> None:
    system = Latches()
    async with streaming(system) as (_, stream):
        await stream.write(message(*((str(number), "nap") for number in range(1000))))
        found = await outcomes(stream, 1000)
    assert {outcome.call_id for outcome in found} == {str(number) for number in range(1000)}
    assert not any(outcome.HasField("failure") for outcome in found)
    assert system.most == 2


async def test_a_cancellation_gets_through_a_full_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "PATIENCE_S", 0.05)
    system = Latches()
    async with streaming(system) as (_, stream):
        await stream.write(message(*((str(number), "a") for number in range(20))))
        await stream.write(cancel(*(str(number) for number in range(10))))
        refused = await outcomes(stream, 10)
        assert await asyncio.to_thread(system.cancelled.wait, 60)
    assert {outcome.failure.reason for outcome in refused} == {"RESOURCE_EXHAUSTED"}
    assert all(outcome.failure.retryable for outcome in refused)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda call: setattr(call.request, "system", "nobody"), "UNKNOWN_SYSTEM"),
        (lambda call: call.request.example.fields["x"].SetInParent(), "INVALID_ARGUMENT"),
    ],
    ids=["unknown-system", "value-without-kind"],
)
async def test_a_bad_call_fails_alone(change: Any, reason: str) -> None:
    request = message(("bad", ""), ("good", ""))
    change(request.calls[0])
    async with streaming(Latches()) as (_, stream):
        await stream.write(request)
        found = {outcome.call_id: outcome for outcome in await outcomes(stream, 2)}
    assert found["bad"].failure.reason == reason
    assert found["good"].HasField("response")


async def test_a_call_id_still_in_flight_is_refused() -> None:
    system = Latches()
    async with streaming(system) as (_, stream):
        await stream.write(message(("same", "a"), ("same", "")))
        (refused,) = await outcomes(stream, 1)
        system.latches["a"].set()
        (answered,) = await outcomes(stream, 1)
    assert refused.failure.reason == "ALREADY_EXISTS"
    assert answered.HasField("response")


async def test_an_exception_brings_its_stack() -> None:
    class Broken:
        name = "broken"

        async def process(self, example: dict[str, Any]) -> dict[str, Any]:
            raise KeyError("gone")

    async with streaming(Broken()) as (_, stream):
        await stream.write(message(("1", "")))
        (outcome,) = await outcomes(stream, 1)
    assert outcome.failure.reason == "EXCEPTION"
    assert "in process" in outcome.failure.stack_trace


async def test_bytes_that_are_no_message_end_the_stream_after_what_is_held() -> None:
    system = Latches()
    server = Server(system)
    await asyncio.to_thread(server.start)
    async with open_channel(server.address) as channel:
        stream = channel.stream_stream("/cbench.v1.System/ProcessStream")()
        await stream.write(message(("held", "a"), ("quick", "")).SerializeToString())
        await stream.read()
        await stream.write(b"\xff\xff\xff")
        system.latches["a"].set()
        reply = system_pb2.ProcessStreamResponse.FromString(await stream.read())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        again = SystemStub(channel).ProcessStream()
        await again.write(message(("after", "")))
        await outcomes(again, 1)
        again.cancel()
    await asyncio.to_thread(server.stop, 0)
    assert [outcome.call_id for outcome in reply.outcomes] == ["held"]
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_large_replies_are_spread_over_messages() -> None:
    class Large:
        name = "large"

        async def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"response": "x" * 700_000}

    async with streaming(Large()) as (_, stream):
        await stream.write(message(*((str(number), "") for number in range(8))))
        found, sizes = 0, []
        while found < 8:
            reply = await asyncio.wait_for(stream.read(), 20)
            found += len(reply.outcomes)
            sizes.append(reply.ByteSize())
    assert max(sizes) < 1_100_000


async def test_stopping_answers_what_is_held_and_then_ends_the_stream() -> None:
    system = Latches()
    async with streaming(system) as (server, stream):
        await stream.write(message(("held", "a"), ("quick", "")))
        await outcomes(stream, 1)
        stopping = asyncio.ensure_future(asyncio.to_thread(server.stop, 20))
        # Draining has begun when new calls are refused.
        async with open_channel(server.address) as channel:
            code = grpc.StatusCode.OK
            while code is grpc.StatusCode.OK:
                try:
                    await SystemStub(channel).Process(system_pb2.ProcessRequest())
                except grpc.aio.AioRpcError as error:
                    code = error.code()
        system.latches["a"].set()
        (outcome,) = await outcomes(stream, 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stream.read()
        await stopping
    assert code is grpc.StatusCode.UNAVAILABLE
    assert outcome.HasField("response")
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_pairs_are_scored_over_a_stream() -> None:
    class Picky:
        name = "picky"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"ratio": 1 / original["n"]}

    server = Server(Picky())
    await asyncio.to_thread(server.start)
    request = evaluator_pb2.ScoreStreamRequest()
    for number in (0, 1, 2):
        call = request.calls.add(call_id=str(number))
        convert.example_to_proto({"n": number}, call.request.original)
    async with open_channel(server.address) as channel:
        stream = EvaluatorStub(channel).ScoreStream()
        await stream.write(request)
        await stream.done_writing()
        found = {o.call_id: o async for reply in stream for o in reply.outcomes}
    await asyncio.to_thread(server.stop, 0)
    assert found["0"].failure.origin == failure_pb2.FAILURE_ORIGIN_EVALUATOR
    assert found["0"].failure.message.startswith("ZeroDivisionError")
    assert found["2"].response.scores["ratio"] == 0.5
