"""How many rows may wait for the store: by time, and few for a system that charges."""

import asyncio
from typing import Any

import pytest

from cbench_server.events import RowScored
from cbench_server.limits import LARGE_ANSWER, MAX_HELD_BYTES
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.retry import Retry
from cbench_server.runs.slots import ByteBudget, Slots
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import Traffic
from cbench_server.scoring.placement import Scoring
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller
from cbench_server.tokens import get_tokenizer


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def rows_ahead(answers: int, seconds: float, *, charges: bool = False) -> int:
    """Return how many answered rows may wait, after so many answers in so many seconds."""
    clock = Clock()
    slots = Slots(16, 0, ByteBudget(), clock, is_fixed=True)
    slots.charges = charges
    clock.now = seconds
    slots.answered(answers)
    return room_ahead(slots)


def room_ahead(slots: Slots) -> int:
    """Return how many rows may wait beyond the calls in flight, by starting them."""
    ahead = 0
    while slots.room > 0:
        slots.start(1, 0)
        slots.end()
        ahead += 1
    return ahead - slots.width


@pytest.mark.parametrize(
    ("answers", "charges", "ahead"),
    [(4, False, 8), (1000, True, 8), (40, False, 40), (100_000, False, 512)],
    ids=["slow", "charges", "by-time", "at-most"],
)
def test_rows_wait_by_time_within_bounds(answers: int, charges: bool, ahead: int) -> None:
    assert rows_ahead(answers, 0.025, charges=charges) == ahead


async def test_calls_that_make_no_row_let_no_more_rows_wait() -> None:
    clock = Clock()
    slots = Slots(16, 0, ByteBudget(), clock, is_fixed=True)
    plan = Plan("r", [], {}, get_tokenizer("whitespace"))

    async def connected(timeout: float) -> bool:
        return True

    async def reset(timeout: float) -> None:
        clock.now += 0.0001

    def ignore(*told: object) -> None:
        pass

    retry = Retry("s", plan, slots, clock, connected, ignore, ignore, ignore)
    for _ in range(1000):
        await retry.call(reset)
    assert room_ahead(slots) == 8


def climb(slots: Slots, clock: Clock, rounds: int, round_seconds: float = 0.1) -> None:
    """Have as many calls as may be answered together, so many times."""
    for _ in range(rounds):
        calls = slots.room
        slots.start(calls, 0)
        clock.now += round_seconds
        slots.succeeded(calls)
        slots.end(calls)
        slots.settle(calls, 0)


def test_calls_in_flight_double_while_that_pays() -> None:
    clock = Clock()
    slots = Slots(8, 0, ByteBudget(), clock)
    assert slots.limit == 1
    climb(slots, clock, 30)
    assert slots.limit == 8


def test_calls_that_met_an_overloaded_system_together_halve_their_number_once() -> None:
    clock = Clock()
    slots = Slots(8, 0, ByteBudget(), clock)
    climb(slots, clock, 30)
    sent_at, clock.now = clock.now, clock.now + 1
    for _ in range(8):
        slots.overloaded(sent_at)
    assert slots.limit == 4
    slots.overloaded(clock.now)
    assert slots.limit == 2
    climb(slots, clock, 100)
    assert slots.limit == 8


async def test_while_one_call_is_made_alone_no_other_is_started() -> None:
    traffic, clock = Traffic(), Clock()
    slots, others = (Slots(4, 0, ByteBudget(), clock, traffic, is_fixed=True) for _ in range(2))
    slots.start(1, 0)
    others.start(1, 0)
    alone = traffic.alone(60.0)
    waiting = asyncio.create_task(alone.__aenter__())
    await asyncio.sleep(0)
    assert (slots.room, others.room, waiting.done()) == (0, 0, False)
    others.end()
    await waiting
    await alone.__aexit__(None, None, None)
    assert (slots.room, others.room) == (3, 4)


EXAMPLE = {
    "id": "c_0",
    "question": "x?",
    "question_type": "t",
    "group": "c",
    "turn_count": 1,
    "turns": [{"role": "user", "content": "x is y"}],
    "question_count": 1,
}


class OneQuestion:
    """A conversation with one question."""

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return [] if start else [SpooledExample(0, "d", 0, dict(EXAMPLE), "")]

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return set()


class Priced:
    """A memory that says what it costs."""

    name = "priced"

    def reset(self, scope: str) -> None: ...

    def ingest(self, turns: list[dict[str, Any]], scope: str) -> None: ...

    def query(self, question: str, scope: str) -> dict[str, Any]:
        return {"response": "y", "usage": {"total_tokens": 1}}


async def test_a_memory_system_that_charges_is_known_to() -> None:
    caller = InProcessMemoryCaller(Priced())
    datasets = {"d": DatasetPlan([])}
    tokenizer = get_tokenizer("whitespace")
    plan = Plan("r", [caller], datasets, tokenizer, kind="memory")
    pipeline = Pipeline(plan, OneQuestion(), Scoring())
    rows = []
    async for batch in pipeline.events():
        rows += [event.row for event in batch if isinstance(event, RowScored)]
    await caller.close()
    assert [row.usage for row in rows] == [{"total_tokens": 1}]
    assert pipeline._lanes[0]._slots.charges


class Examples:
    """So many examples."""

    def __init__(self, count: int) -> None:
        self._all = [SpooledExample(i, "d", i, {"id": i, "context": "x"}, "") for i in range(count)]

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return self._all[start : start + limit]

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return set()


class Large:
    """Answers at length, and counts how many of its answers nobody has stored."""

    name = "large"

    def __init__(self, size: int) -> None:
        self.size = size
        self.unstored = self.most = 0

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.unstored += 1
        self.most = max(self.most, self.unstored)
        await asyncio.sleep(0)
        return {"response": "x" * self.size}


async def held_at_once(size: int, held: ByteBudget, *, timed_rows: int) -> int:
    """Return the most answers of a size that are under way, where eight calls may be."""
    system = Large(size)
    caller = InProcessCaller(system)
    plan = Plan(
        "r",
        [caller],
        {"d": DatasetPlan([])},
        get_tokenizer("whitespace"),
        max_concurrency=8,
        is_width_fixed=True,
        timed_rows=timed_rows,
    )
    async for batch in Pipeline(plan, Examples(24), Scoring(), held=held).events():
        system.unstored -= sum(isinstance(event, RowScored) for event in batch)
    await caller.close()
    return system.most


@pytest.mark.parametrize("timed_rows", [0, 12])
async def test_large_answers_wait_for_those_before_them(timed_rows: int) -> None:
    held = ByteBudget(4 * LARGE_ANSWER)
    assert await held_at_once(2 * LARGE_ANSWER, held, timed_rows=timed_rows) <= 3
    assert await held_at_once(10, held, timed_rows=0) >= 8
    # What runs have held is free for the next.
    assert held.room_for(LARGE_ANSWER) == 4


async def test_the_first_large_answer_bounds_how_many_more_are_asked_for() -> None:
    slots = Slots(8, 0, ByteBudget(), Clock(), is_fixed=True)
    assert slots.room == 8
    slots.note_size(MAX_HELD_BYTES)
    assert slots.room == 1, "one is always allowed"
    slots.start(1, 10)
    assert slots.room == 0
    slots.end()
    assert slots.room == 0, "its row is not stored"
    slots.settle(1, 10)
    for _ in range(200):
        slots.note_size(10)
    assert slots.room == 8


def test_runs_share_what_may_be_held() -> None:
    shared = ByteBudget(100)
    one, other = ByteBudget(80, shared), ByteBudget(80, shared)
    one.hold(70)
    assert other.has_room(200), "a run may always hold one row"
    other.hold(20)
    assert not other.has_room(20)
    assert not one.has_room(20)
    one.release(70)
    assert other.has_room(60)
    assert not other.has_room(61), "its own limit"
    one.hold(50)
    one.close()
    one.release(50)
    assert shared.room_for(1) == 80, "a run that was broken off holds nothing"
