"""What a daemon sends to an attached process: calls, those given up, and that it drains."""

import asyncio
from typing import Any

import pytest

from cbench_client._gen.cbench.v1 import gateway_pb2, system_pb2
from cbench_server.rpc.attachments import Attachment


def attached(max_in_flight: int) -> Attachment:
    offered = [system_pb2.SystemInfo(name="here")]
    return Attachment(gateway_pb2.Hello(systems=offered, max_in_flight=max_in_flight))


def start(attachment: Attachment, *call_ids: str) -> None:
    for call_id in call_ids:
        attachment.start(gateway_pb2.Call(call_id=call_id), call_id, 60, lambda _: None)


async def said(attachment: Attachment) -> list[Any]:
    """What the next message says, in the order in which a process acts upon it."""
    data = await attachment.next_message()
    assert data is not None
    message = gateway_pb2.AttachResponse.FromString(data)
    called = [call.call_id for call in message.calls]
    drains = ["drain"] if message.HasField("drain") else []
    return [*called, *(f"-{each}" for each in message.cancel_call_ids), *drains]


@pytest.mark.parametrize("is_given_up", [False, True])
async def test_a_drain_comes_after_all_calls_that_wait(is_given_up: bool) -> None:
    attachment = attached(2)
    start(attachment, "a", "b", "c")
    assert await said(attachment) == ["a", "b"]
    attachment.drain("update")
    next_said = asyncio.ensure_future(said(attachment))
    await asyncio.sleep(0)
    if is_given_up:
        attachment.give_up("a")
        assert await next_said == ["-a"]
        next_said = asyncio.ensure_future(said(attachment))
    else:
        attachment.resolve([gateway_pb2.CallResult(call_id="a")])
    assert await next_said == ["c", "drain"]
    attachment.close()


async def test_a_drain_does_not_wait_for_a_call_that_nobody_wants_any_more() -> None:
    attachment = attached(1)
    start(attachment, "a", "b")
    assert await said(attachment) == ["a"]
    attachment.drain("update")
    attachment.give_up("b")
    attachment.give_up("a")
    assert await said(attachment) == ["-a", "drain"]
    attachment.close()
