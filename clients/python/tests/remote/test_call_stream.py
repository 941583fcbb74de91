"""The time of a call over a stream: from when it is sent to when its outcome arrives."""

import asyncio

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
