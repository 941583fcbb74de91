"""The level of calls in flight: it climbs while that pays, and steps back when told."""

import asyncio
import threading

import pytest

from cbench_server.models.level import CAP, Level


class Endpoint:
    """A simulated server, in a time of its own: so many calls at once cost nothing more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.now = 0.0

    def clock(self) -> float:
        return self.now


async def serve(level: Level, endpoint: Endpoint, calls: int) -> None:
    """Have calls served in rounds: all in flight finish together, after a time by their number."""
    takers = [asyncio.create_task(level.take()) for _ in range(calls)]
    held: list[asyncio.Task[object]] = []
    waiting = list(takers)
    while waiting:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        held = [task for task in waiting if task.done()]
        waiting = [task for task in waiting if not task.done()]
        endpoint.now += max(1.0, len(held) / endpoint.width)
        for task in held:
            level.give_back(task.result())  # type: ignore[arg-type]


@pytest.mark.parametrize(("width", "reached"), [(1, 1), (4, 4), (1000, CAP)])
async def test_it_doubles_while_throughput_rises_and_then_stays(width: int, reached: int) -> None:
    endpoint = Endpoint(width)
    level = Level(clock=endpoint.clock)
    assert level.limit == 1
    await serve(level, endpoint, 600)
    assert level.limit == reached
    assert level.in_flight == 0


async def test_an_overload_halves_it_once_for_all_calls_that_fell_together() -> None:
    level = Level(start=8)
    turns = [await level.take() for _ in range(8)]
    for turn in turns:
        level.give_back(turn, overloaded=True)
    assert level.limit == 4
    later = await level.take()
    level.give_back(later, overloaded=True)
    assert level.limit == 2


async def test_after_an_overload_it_climbs_again_only_when_all_is_calm() -> None:
    endpoint = Endpoint(1000)
    level = Level(start=2, clock=endpoint.clock)
    level.give_back(await level.take(), overloaded=True)
    assert level.limit == 1
    await serve(level, endpoint, 60)
    assert level.limit == 1
    await serve(level, endpoint, 200)
    assert level.limit > 1


async def test_it_never_falls_below_one_nor_lets_more_in_than_its_limit() -> None:
    level = Level()
    first = await level.take()
    second = asyncio.create_task(level.take())
    await asyncio.sleep(0)
    assert (level.in_flight, second.done()) == (1, False)
    level.give_back(first, overloaded=True)
    assert level.limit == 1
    level.give_back(await second)
    assert level.in_flight == 0


async def test_one_who_stops_waiting_takes_no_turn_with_him() -> None:
    level = Level()
    first = await level.take()
    gone, patient = asyncio.create_task(level.take()), asyncio.create_task(level.take())
    await asyncio.sleep(0)
    level.give_back(first)
    # It has been called up, and is gone before it could begin.
    gone.cancel()
    level.give_back(await patient)
    assert level.in_flight == 0


def test_it_is_shared_by_event_loops_in_several_threads() -> None:
    level = Level(start=2, cap=2)
    most = 0

    async def calls() -> None:
        nonlocal most
        for _ in range(200):
            turn = await level.take()
            with level.held(turn):
                most = max(most, level.in_flight)
                await asyncio.sleep(0)

    threads = [threading.Thread(target=asyncio.run, args=(calls(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most <= 2
    assert level.in_flight == 0
