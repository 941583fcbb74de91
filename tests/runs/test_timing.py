"""Rows timed alone, calls in flight that find their level, and late rows tried again alone."""

import asyncio
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cbench_server import evaluate, evaluate_memory
from cbench_server.errors import InvalidSpec
from cbench_server.evaluators import AnswerQuality
from cbench_server.events import RowScored
from cbench_server.metrics import Latency, TokenEfficiency
from cbench_server.results import EvalResult, EvalRow
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.placement import Scoring
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.tokens import get_tokenizer


def examples(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "context": f"c{n}", "question": "q", "answer": "x"} for n in range(count)]


class Busy:
    """Knows how many of its calls, and of all calls, run at once."""

    everywhere: ClassVar[set[int]] = set()

    def __init__(self, name: str) -> None:
        self.name = name
        self.most_beside: dict[int, int] = {}

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        me = threading.get_ident()
        self.everywhere.add(me)
        self.most_beside[example["id"]] = len(self.everywhere)
        try:
            return {**example, "response": "x"}
        finally:
            self.everywhere.discard(me)


def run(systems: list[Any], count: int, **more: Any) -> EvalResult:
    more = {"max_workers": 4, "progress": False, **more}
    return evaluate(systems, examples(count), [AnswerQuality()], [Latency()], **more)


def test_the_first_rows_are_timed_alone_on_the_same_examples_for_every_system() -> None:
    systems = [Busy("a"), Busy("b")]
    result = run(systems, 60)
    timed = {
        name: {row.example_id for row in result.rows if row.system == name and row.alone}
        for name in ("a", "b")
    }
    assert timed["a"] == timed["b"]
    assert len(timed["a"]) == 30
    for system in systems:
        assert {system.most_beside[place] for place in timed["a"]} == {1}
    assert all(row.calls_in_flight >= 1 for row in result.rows)
    assert all(row.handler_seconds == row.latency for row in result.rows)
    assert result.summary["a"]["num_timed_alone"] == 30.0
    assert [row.scores["f1"] for row in result.rows] == [1.0] * 120


def test_how_many_rows_are_timed_can_be_said() -> None:
    assert sum(row.alone for row in run([Busy("a")], 20, timed_rows=5).rows) == 5
    assert not any(row.alone for row in run([Busy("a")], 20, timed_rows=0).rows)
    # With three rows there is none to spare for warming up.
    assert [row.alone for row in run([Busy("a")], 3).rows] == [True] * 3
    with pytest.raises(InvalidSpec, match="timed_rows must be at least 0, not -1"):
        run([Busy("a")], 1, timed_rows=-1)


def test_another_run_times_the_same_rows_and_a_cached_one_keeps_what_was_timed(
    tmp_path: Path,
) -> None:
    def timed(result: EvalResult) -> list[Any]:
        return [row.example_id for row in result.rows if row.alone]

    first = run([Busy("a")], 40, cache_dir=str(tmp_path))
    assert timed(run([Busy("a")], 40)) == timed(first)
    kept = run([Busy("a")], 40, cache_dir=str(tmp_path))
    assert timed(kept) == timed(first)
    assert kept.summary["a"]["num_timed_alone"] == 30.0


class Fails:
    """Fails on every second example."""

    name = "fails"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] % 2:
            raise ValueError("odd")
        return {**example, "response": "x"}


def test_a_row_that_fails_while_it_is_timed_is_a_failed_row_and_the_others_are_timed() -> None:
    result = run([Fails()], 40)
    assert sum(row.failure is not None for row in result.rows) == 20
    assert result.summary["fails"]["num_timed_alone"] < 30.0


class SlowTogether:
    """Holds up the second and the third call, which come together, or those named."""

    name = "slow-together"

    def __init__(self, *held: int) -> None:
        self._held = held or (2, 3)
        self._calls = 0
        self._lock = threading.Lock()
        self.release = threading.Event()

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._calls += 1
            is_held = self._calls in self._held
        if is_held:
            self.release.wait(30)
        return {**example, "response": "x"}


def test_a_row_that_was_late_beside_others_is_tried_again_alone() -> None:
    system = SlowTogether()
    result = run([system], 12, max_workers=2, timed_rows=0, timeout=0.2)
    system.release.set()
    assert [row.failure for row in result.rows] == [None] * 12
    assert sum("RETRIED_ALONE" in row.marks for row in result.rows) == 2
    assert {row.attempts for row in result.rows if row.marks} == {2}
    assert result.summary["slow-together"]["num_retried_alone"] == 2.0


def test_a_row_that_is_late_alone_is_failed_at_once_and_no_other_is() -> None:
    system = SlowTogether(1)
    result = run([system], 12, max_workers=1, timeout=0.2)
    system.release.set()
    failed = [row.failure for row in result.rows if row.failure]
    assert [failure.reason for failure in failed] == ["DEADLINE_EXCEEDED"]
    assert not any(row.marks for row in result.rows)


class Sleeps:
    """Counts the calls it has at once."""

    name = "sleeps"

    def __init__(self) -> None:
        self.now = 0
        self.most: list[int] = []

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.now += 1
        self.most.append(self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return {**example, "response": "x"}


class Given:
    """Examples as a lane reads them."""

    def __init__(self, count: int) -> None:
        self._all = [
            SpooledExample(place, "d", place, example, "", {})
            for place, example in enumerate(examples(count))
        ]

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return self._all[start : start + limit]

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return {(ordinal, 0) for ordinal in range(start, stop) if ordinal < 10}


async def rows_of(caller: InProcessCaller, source: Any, **more: Any) -> list[EvalRow]:
    datasets = {"d": DatasetPlan([AnswerQuality()], primary_score="f1")}
    plan = Plan("r", [caller], datasets, get_tokenizer("whitespace"), **more)
    rows = []
    async for batch in Pipeline(plan, source, Scoring()).events():
        rows += [event.row for event in batch if isinstance(event, RowScored)]
    await caller.close()
    return rows


async def test_calls_in_flight_begin_with_one_and_climb_while_that_pays() -> None:
    system = Sleeps()
    rows = await rows_of(InProcessCaller(system), Given(700))
    assert len(rows) == 690
    assert set(system.most[:30]) == {1}
    assert max(system.most) > 4
    # Sent is not yet begun: on a busy machine a thread may come late.
    assert max(row.calls_in_flight for row in rows) >= max(system.most)


async def test_a_resumed_run_times_those_of_the_chosen_rows_that_are_missing() -> None:
    whole = await rows_of(InProcessCaller(Busy("a")), Late(200))
    rest = await rows_of(InProcessCaller(Busy("a")), Given(200))
    chosen = {row.ordinal for row in whole if row.alone}
    # The first of those called warms the system up.
    assert {row.ordinal for row in rest if row.alone} < chosen
    assert len(rest) == 190


class Late(Given):
    """Nothing is done."""

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        return set()


class Remembers:
    """A memory that knows how many of its calls run at once."""

    name = "remembers"
    running = 0
    most = 0

    def reset(self) -> None: ...

    def ingest(self, turns: list[dict[str, Any]]) -> None: ...

    def query(self, question: str) -> str:
        return "x"


@pytest.mark.parametrize("questions", range(7, 12))
def test_a_conversation_that_fills_what_may_wait_for_the_store_holds_up_no_other(
    questions: int,
) -> None:
    talks = [
        {
            "id": f"t{n}",
            "turns": [{"role": "user", "content": "x"}],
            "qa_pairs": [{"question": f"q{k}", "answer": "x"} for k in range(questions)],
        }
        for n in range(3)
    ]
    result = evaluate_memory([Remembers], talks, [AnswerQuality()], [Latency()], progress=False)
    assert len(result.rows) == 3 * questions


def test_a_memory_is_timed_alone_by_question_and_by_turn() -> None:
    talks = [
        {
            "id": f"t{n}",
            "turns": [{"role": "user", "content": "x"}] * 4,
            "qa_pairs": [{"question": f"q{k}", "answer": "x"} for k in range(5)],
        }
        for n in range(12)
    ]
    metrics = [Latency(), TokenEfficiency("f1")]
    result = evaluate_memory([Remembers], talks, [AnswerQuality()], metrics, progress=False)
    values = result.summary["remembers"]
    assert values["num_timed_alone"] == 30.0
    assert values["num_conversations_timed"] == 7.0
    assert values["ingest_per_turn_median"] is not None
    assert len(result.rows) == 60
    assert all(row.failure is None for row in result.rows)
    assert sum("INGESTED_ALONE" in row.marks for row in result.rows) == 35
