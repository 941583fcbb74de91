"""The time of a call over a stream: from when it is sent to when its outcome arrives."""

import asyncio
from functools import partial

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.remote.call_stream import CallStream, Ended


def made(limit: int | None = None) -> CallStream:
    return CallStream(
        lambda ids: ",".join(ids).encode(), lambda _: TimeoutError("late"), limit=limit
    )


async def test_what_happens_before_the_sending_is_not_the_peers_time() -> None:
    loop, told = asyncio.get_running_loop(), list[Ended]()
    stream = made()
    stream.submit({"a": "first", "b": "second"}, b"both", 60, told.extend)
    await asyncio.sleep(0.02)
    before = loop.time()
    assert stream.take() == b"both"
    after = loop.time()
    stream.arrived([("a", 1), ("b", 2)], after + 5)
    assert [ended[:2] for ended in told] == [("first", 1), ("second", 2)]
    for _, _, seconds in told:
        assert after + 5 - after <= seconds + 1e-9
        assert seconds <= after + 5 - before


async def test_a_call_that_waits_for_others_is_timed_from_its_own_sending() -> None:
    loop, told = asyncio.get_running_loop(), list[Ended]()
    stream = made(limit=1)
    stream.submit({"a": "first"}, b"a", 60, told.extend)
    stream.submit({"b": "second"}, b"b", 60, told.extend)
    assert stream.take() == b"a"
    await asyncio.sleep(0.02)
    stream.arrived([("a", 1)], loop.time())
    sent = loop.time()
    assert stream.take() == b"b"
    stream.arrived([("b", 2)], sent + 3)
    assert told[0][2] >= 0.02
    assert told[1][2] <= 3.0


LATE = system_pb2.ProcessOutcome(call_id="a")
LATE.failure.reason = "DEADLINE_EXCEEDED"


async def test_a_late_call_is_given_up_in_a_message_before_it_is_sent_again() -> None:
    late: asyncio.Future[list[Ended]] = asyncio.get_running_loop().create_future()
    stream = made()
    stream.submit({"a": "first"}, b"call a", 0.01, late.set_result)
    assert stream.take() == b"call a"
    await late
    stream.submit({"a": "again"}, b"call a again", 60, [].extend)
    assert [stream.take(), stream.take(), stream.take()] == [b"a", b"call a again", b""]


async def test_what_a_peer_says_of_a_late_attempt_is_not_taken_for_the_next() -> None:
    loop, told = asyncio.get_running_loop(), list[Ended]()
    late: asyncio.Future[list[Ended]] = loop.create_future()
    stream = made()
    stream.submit({"a": "first"}, b"a", 0.01, late.set_result)
    stream.take()
    await late
    stream.submit({"a": "again"}, b"a", 60, told.extend)
    arrived = partial(stream.arrived, when=loop.time())
    arrived([("a", LATE)])
    assert told == []
    arrived([("a", LATE)])
    assert [ended[:2] for ended in told] == [("again", LATE)]


async def test_of_calls_sent_together_those_given_up_before_are_given_up_after_them() -> None:
    stream = made()
    stream.submit({"a": 1, "b": 2}, b"calls a and b;", 60, [].extend)
    stream.give_up("b")
    assert [stream.take(), stream.take()] == [b"calls a and b;b", b""]
