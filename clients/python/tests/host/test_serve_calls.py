"""Calls in progress: deadlines, cancellation, limits, sizes."""

import asyncio
import threading
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1.system_pb2_grpc import SystemStub
from cbench_client.host.calls import current_call
from tests.fixtures.serving import failure_in, request, serving, system


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
        assert await asyncio.to_thread(self.entered.acquire, timeout=60)


async def test_a_deadline_and_a_cancellation_reach_synchronous_code() -> None:
    held = Held()
    async with serving(held) as channel:
        call = SystemStub(channel).Process(request(call_id="a"), timeout=60)
        await held.begun()
        call.cancel()
        assert await asyncio.to_thread(held.cancelled.wait, 60)
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
        assert await asyncio.to_thread(entered.wait, 60)
        call.cancel()
        assert await asyncio.to_thread(cancelled.wait, 60)


async def test_a_cancelled_thread_keeps_its_place_until_it_returns() -> None:
    held = Held()
    async with serving(held) as channel:
        stub = SystemStub(channel)
        first = stub.Process(request(call_id="a"))
        await held.begun()
        first.cancel()
        assert await asyncio.to_thread(held.cancelled.wait, 60)
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
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED, timeout=60)
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
