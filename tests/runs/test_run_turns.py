"""Turns of runs: who is next, by the names of those who started them."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from cbench_server.errors import LimitReached
from cbench_server.runs.run_turns import Limits, RunTurns


class Runs:
    """Runs that wait for their turn, and work until they are told to end."""

    def __init__(self, limits: Limits) -> None:
        self.turns = RunTurns(limits)
        self.working: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, *names: str) -> None:
        """Add runs, each named by who started it and a digit."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._work(name))
        await self._settle()

    async def _work(self, name: str) -> None:
        async with self.turns.turn_of(name[0]):
            self.working.append(name)
            await self._ends[name].wait()
        self.working.remove(name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        if name in self.working:
            self.working.remove(name)
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_one_name_has_all_turns_in_order_of_arrival() -> None:
    runs = Runs(Limits(2))
    await runs.add("a1", "a2", "a3", "a4")
    assert runs.working == ["a1", "a2"]
    await runs.end("a1")
    assert runs.working == ["a2", "a3"]


async def test_the_last_turn_is_kept_for_a_name_that_has_none() -> None:
    runs = Runs(Limits(3, is_shared=lambda: True))
    await runs.add("a1", "a2", "a3", "a4")
    assert runs.working == ["a1", "a2"]
    await runs.add("b1")
    assert runs.working == ["a1", "a2", "b1"]
    await runs.end("a1")
    assert runs.working == ["a2", "b1"]
    await runs.end("a2")
    assert runs.working == ["b1", "a3"]


async def test_a_free_turn_goes_to_the_name_that_has_fewest() -> None:
    runs = Runs(Limits(3, is_shared=lambda: True))
    await runs.add("a1", "a2", "c1", "a3", "b1", "c2")
    assert runs.working == ["a1", "a2", "c1"]
    await runs.end("c1")
    assert runs.working == ["a1", "a2", "b1"]


async def test_a_single_turn_is_taken_in_order_by_those_who_have_none() -> None:
    runs = Runs(Limits(1, is_shared=lambda: True))
    await runs.add("a1", "a2", "b1")
    await runs.end("a1")
    assert runs.working == ["a2"]


async def test_a_run_that_is_cancelled_leaves_its_turn_or_its_place() -> None:
    runs = Runs(Limits(1))
    await runs.add("a1", "a2", "a3")
    await runs.cancel("a2")
    await runs.cancel("a1")
    assert runs.working == ["a3"]
    await runs.end("a3")
    async with AsyncExitStack() as held:
        await asyncio.wait_for(held.enter_async_context(runs.turns.turn_of("a")), 60)


def test_one_name_has_at_most_half_of_all_places() -> None:
    turns = RunTurns(Limits(2, 4, lambda: True))
    for _ in range(3):
        turns.check_room("a")
        turns.take("a")
    with pytest.raises(LimitReached, match='3 runs of "a"'):
        turns.check_room("a")
    turns.check_room("b")
    turns.forget("a")
    turns.check_room("a")
