"""Attaching to a daemon, here a small gateway that speaks the protocol."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.errors import NotServable, Refused
from cbench_client.host import link
from cbench_client.host.attachment import Attachment
from cbench_client.host.calls import current_call
from cbench_client.messages import convert
from tests.fixtures.gateway import PATIENCE_S, Daemon, Gateway, started
from tests.fixtures.ports import held_port
from tests.fixtures.serving import Notes


@pytest.fixture
async def daemon() -> AsyncIterator[Daemon]:
    gateway, address = Gateway(), f"127.0.0.1:{held_port()}"
    server = await started(gateway, address)
    yield Daemon(gateway, address)
    await server.stop(0)


class Echo:
    """Echoes; an example with `wait` is held until `go`."""

    name = "echo"

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.go = threading.Event()
        self.cancelled = threading.Event()

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        call = current_call()
        if "wait" in example:
            self.entered.release()
            while not self.go.wait(0.01):
                if call.cancelled.is_set():
                    self.cancelled.set()
                    break
        return {**example, "response": call.call_id}

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=PATIENCE_S)


class Scores:
    name = "scores"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"one": 1.0}


def call(call_id: str, timeout: float | None = None, **example: Any) -> gateway_pb2.Call:
    message = gateway_pb2.Call(call_id=call_id)
    convert.example_to_proto(example, message.process.example)
    if timeout is not None:
        message.timeout.FromMilliseconds(round(timeout * 1e3))
    return message


async def stopped(attachment: Attachment, grace: float = 0) -> None:
    await asyncio.to_thread(attachment.stop, grace)


async def test_hello_offers_everything_and_calls_of_each_kind_are_answered(daemon: Daemon) -> None:
    offered = [Echo(), Notes, Scores()]
    attachment = Attachment(offered, daemon.address, max_in_flight=9).start()
    session = await daemon.gateway.session()
    work = [call("1", question="q"), gateway_pb2.Call(call_id="2"), gateway_pb2.Call(call_id="3")]
    work[1].score.SetInParent()
    convert.turns_to_proto([{"content": "hello"}], work[2].ingest.turns)
    await session.send(calls=work)
    results = {result.call_id: result for result in [await session.result() for _ in work]}
    question = gateway_pb2.Call(call_id="4")
    question.query.question = "?"
    await session.send(calls=[question])
    answer = await session.result()
    await stopped(attachment)
    hello = session.hello
    assert [info.name for info in hello.systems] == ["echo"]
    assert [info.name for info in hello.memory_systems] == ["notes"]
    assert [info.name for info in hello.evaluators] == ["scores"]
    assert hello.max_in_flight == 9
    assert results["1"].process.fields["response"].string_value == "1"
    assert results["2"].score.scores["one"] == 1.0
    assert results["3"].HasField("ingest")
    assert answer.query.response == "hello"


async def test_a_repeated_ingest_is_known_by_its_call(daemon: Daemon) -> None:
    attachment = Attachment(Notes, daemon.address).start()
    session = await daemon.gateway.session()
    ingest = gateway_pb2.Call(call_id="same")
    convert.turns_to_proto([{"content": "once"}], ingest.ingest.turns)
    question = gateway_pb2.Call(call_id="q")
    question.query.question = "?"
    for work in (ingest, ingest, question):
        await session.send(calls=[work])
        result = await session.result()
    await stopped(attachment)
    assert result.query.response == "once"


async def test_failures_travel_as_results(daemon: Daemon) -> None:
    attachment = Attachment(Echo(), daemon.address).start()
    session = await daemon.gateway.session()
    unknown = call("unknown")
    unknown.process.system = "nobody"
    await session.send(calls=[unknown, gateway_pb2.Call(call_id="empty")])
    await session.send(calls=[call("late", timeout=0.05, wait=1)])
    results = {result.call_id: result for result in [await session.result() for _ in range(3)]}
    await stopped(attachment)
    assert results["unknown"].failure.reason == "UNKNOWN_SYSTEM"
    assert results["empty"].failure.reason == "UNIMPLEMENTED"
    assert results["late"].failure.reason == "DEADLINE_EXCEEDED"


async def test_a_cancellation_reaches_user_code_and_gets_no_result(daemon: Daemon) -> None:
    echo = Echo()
    attachment = Attachment(echo, daemon.address).start()
    session = await daemon.gateway.session()
    await session.send(calls=[call("gone", wait=1)])
    await echo.begun()
    await session.send(cancel_call_ids=["gone"])
    assert await asyncio.to_thread(echo.cancelled.wait, PATIENCE_S)
    await session.send(calls=[call("next")])
    result = await session.result()
    await stopped(attachment)
    assert result.call_id == "next"


async def test_more_calls_than_announced_are_refused_as_retryable(daemon: Daemon) -> None:
    echo = Echo()
    attachment = Attachment(echo, daemon.address, max_in_flight=2).start()
    session = await daemon.gateway.session()
    await session.send(calls=[call(str(number), wait=1) for number in range(3)])
    refused = await session.result()
    echo.go.set()
    await stopped(attachment)
    assert (refused.call_id, refused.failure.reason) == ("2", "RESOURCE_EXHAUSTED")
    assert refused.failure.retryable


async def test_a_dropped_connection_is_renewed_and_its_call_asked_again(daemon: Daemon) -> None:
    echo = Echo()
    attachment = Attachment(echo, daemon.address).start()
    first = await daemon.gateway.session()
    await first.send(calls=[call("same", wait=1)])
    await echo.begun()
    first.drop()
    second = await daemon.gateway.session()
    assert await asyncio.to_thread(echo.cancelled.wait, PATIENCE_S)
    await second.send(calls=[call("same")])
    result = await second.result()
    await stopped(attachment)
    assert result.process.fields["response"].string_value == "same"
    assert first.results.empty()


async def test_a_daemon_that_restarts_is_attached_to_again() -> None:
    gateway, address = Gateway(), f"127.0.0.1:{held_port()}"
    server = await started(gateway, address)
    attachment = Attachment(Echo(), address).start()
    await gateway.session()
    await server.stop(0)
    server = await started(gateway, address)
    session = await gateway.session()
    await session.send(calls=[call("after")])
    result = await session.result()
    await stopped(attachment)
    await server.stop(0)
    assert result.call_id == "after"


async def test_a_name_still_held_by_our_dead_connection_is_tried_again(daemon: Daemon) -> None:
    attachment = Attachment(Echo(), daemon.address).start()
    first = await daemon.gateway.session()
    daemon.gateway.refusals = [grpc.StatusCode.ALREADY_EXISTS] * 2
    first.drop()
    await daemon.gateway.session()
    await stopped(attachment)
    assert daemon.gateway.attempts == 4


async def test_a_name_held_for_too_long_is_a_refusal(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "STALE_NAME_S", 0.0)
    attachment = Attachment(Echo(), daemon.address).start()
    first = await daemon.gateway.session()
    daemon.gateway.refusals = [grpc.StatusCode.ALREADY_EXISTS]
    first.drop()
    with pytest.raises(Refused, match="echo"):
        await asyncio.to_thread(attachment.ended.result, PATIENCE_S)


@pytest.mark.parametrize(
    "code",
    [
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.INVALID_ARGUMENT,
    ],
    ids=lambda code: code.name,
)
async def test_a_refusal_is_raised_and_not_repeated(daemon: Daemon, code: grpc.StatusCode) -> None:
    daemon.gateway.refusals = [code]
    attachment = Attachment(Echo(), daemon.address).start()
    with pytest.raises(Refused, match="not you") as caught:
        await asyncio.to_thread(attachment.wait_attached, PATIENCE_S)
    assert caught.value.code == code.name
    assert daemon.gateway.attempts == 1


async def test_a_daemon_that_is_not_there_yet_is_waited_for(daemon: Daemon) -> None:
    daemon.gateway.refusals = [grpc.StatusCode.UNAVAILABLE] * 3
    attachment = Attachment(Echo(), daemon.address).start()
    assert await asyncio.to_thread(attachment.wait_attached, PATIENCE_S) == "a-1"
    await stopped(attachment)
    assert daemon.gateway.attempts == 4


async def test_stopping_drains_answers_what_is_held_and_ends_the_stream(daemon: Daemon) -> None:
    echo = Echo()
    attachment = Attachment(echo, daemon.address).start()
    session = await daemon.gateway.session()
    await session.send(calls=[call("held", wait=1)])
    await echo.begun()
    stopping = asyncio.ensure_future(stopped(attachment, PATIENCE_S))
    await asyncio.wait_for(session.drained.wait(), PATIENCE_S)
    await session.send(calls=[call("late")])
    refused = await session.result()
    echo.go.set()
    answered = await session.result()
    await asyncio.wait_for(session.ended.wait(), PATIENCE_S)
    await stopping
    attachment.ended.result(0)
    assert (refused.call_id, refused.failure.reason) == ("late", "UNAVAILABLE")
    assert answered.process.fields["response"].string_value == "held"


async def test_a_daemon_that_drains_is_answered_and_attached_to_again(daemon: Daemon) -> None:
    echo = Echo()
    attachment = Attachment(echo, daemon.address).start()
    session = await daemon.gateway.session()
    await session.send(calls=[call("held", wait=1)], drain=gateway_pb2.Drain(reason="update"))
    await echo.begun()
    echo.go.set()
    result = await session.result()
    await asyncio.wait_for(session.ended.wait(), PATIENCE_S)
    again = await daemon.gateway.session()
    await again.send(calls=[call("next")])
    await again.result()
    await stopped(attachment)
    assert result.call_id == "held"


async def test_many_results_travel_together(daemon: Daemon) -> None:
    class Quick:
        name = "quick"

        async def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"response": current_call().call_id}

    attachment = Attachment(Quick(), daemon.address).start()
    session = await daemon.gateway.session()
    await session.send(calls=[call(str(number)) for number in range(200)])
    found = [await session.result() for _ in range(200)]
    await stopped(attachment)
    answers = {result.call_id: result.process.fields["response"].string_value for result in found}
    assert answers == {str(number): str(number) for number in range(200)}


PROGRAM = """
import sys
from cbench_client.host.attachment import attach

class Echo:
    name = "echo"
    def process(self, example):
        return example

attach(Echo(), sys.argv[1])
"""


async def test_sigterm_drains_and_the_process_ends_normally(daemon: Daemon) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, daemon.address], stderr=subprocess.PIPE, text=True
    )
    try:
        session = await daemon.gateway.session()
        os.kill(process.pid, signal.SIGTERM)
        await asyncio.wait_for(session.ended.wait(), PATIENCE_S)
        assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
    assert session.drained.is_set()


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(NotServable, match="echo"):
        Attachment([Echo(), Echo()])
