"""Scoring: where evaluators run, what they may say, and what becomes of broken ones."""

import asyncio
import importlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cbench_server.errors import CallFailed, EvaluatorBroken
from cbench_server.evaluators import AnswerQuality, ContextRetention
from cbench_server.limits import LONG_TEXT
from cbench_server.results import Failure
from cbench_server.scoring.assessment import checked
from cbench_server.scoring.placement import Scoring
from cbench_server.types import Assessment, Example, Scores

LONG = "x" * (LONG_TEXT + 1)


class Fake:
    """An evaluator made of a function."""

    name = "fake"

    def __init__(self, act: Callable[[], Any], placement: str = "inline", name: str = "") -> None:
        self.act = act
        self.placement = placement
        self.name = name or self.name

    def score(self, original: Example, processed: Example) -> Scores:
        return self.act()  # type: ignore[no-any-return] # some tests lie here


class Awaited(Fake):
    async def assess(self, original: Example, processed: Example) -> Assessment:
        await asyncio.sleep(0)
        outcome = self.act()
        return await outcome if asyncio.iscoroutine(outcome) else outcome


@pytest.fixture
async def scoring() -> AsyncIterator[Scoring]:
    scoring = Scoring()
    yield scoring
    await scoring.close()


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("troublesome_evaluators")


def here() -> Scores:
    return {"thread": float(threading.get_ident())}


async def thread_of(scoring: Scoring, evaluator: Fake, text: str = "") -> float:
    assessment = await scoring.assess(evaluator, {"context": text}, {"response": "r"})
    return assessment.scores["thread"]


async def test_small_inline_pairs_are_scored_on_the_loop(scoring: Scoring) -> None:
    assert await thread_of(scoring, Fake(here)) == threading.get_ident()


@pytest.mark.parametrize(
    ("placement", "text"),
    [("thread", ""), ("unheard-of", ""), ("io", ""), ("inline", LONG)],
    ids=["thread", "unknown", "io-without-assess", "long-inline"],
)
async def test_what_might_stall_the_loop_goes_to_a_thread(
    scoring: Scoring, placement: str, text: str
) -> None:
    assert await thread_of(scoring, Fake(here, placement), text) != threading.get_ident()


async def test_an_evaluator_that_does_not_say_goes_to_a_thread(scoring: Scoring) -> None:
    class Plain:
        name = "plain"

        def score(self, original: Example, processed: Example) -> Scores:
            return here()

    assessment = await scoring.assess(Plain(), {}, {})
    assert assessment.scores["thread"] != threading.get_ident()


async def test_long_inline_pairs_go_to_a_worker_that_can_rebuild_the_evaluator(
    scoring: Scoring, trouble: Any
) -> None:
    short = await scoring.assess(trouble.WhereAmI(), {"context": "short"}, {})
    long = await scoring.assess(trouble.WhereAmI(), {"context": LONG}, {})
    unsendable = await scoring.assess(trouble.WhereAmI(), {"context": LONG, "n": 2**70}, {})
    assert short.scores["pid"] == unsendable.scores["pid"] == os.getpid()
    assert long.scores["pid"] != os.getpid()


async def test_worker_evaluators_run_elsewhere(scoring: Scoring, trouble: Any) -> None:
    assessment = await scoring.assess(trouble.Explains(), {}, {})
    assert assessment.details["pid"] != os.getpid()


async def test_a_worker_evaluator_that_cannot_be_rebuilt_says_what_to_do(scoring: Scoring) -> None:
    with pytest.raises(EvaluatorBroken, match="Put its class in a module"):
        await scoring.assess(Fake(here, "worker"), {}, {})


@pytest.mark.parametrize("placement", ["io", "inline", "thread"])
async def test_assess_is_preferred_and_awaited(scoring: Scoring, placement: str) -> None:
    said = Assessment({"a": 1.0}, {"why": "so"})
    assert await scoring.assess(Awaited(lambda: said, placement), {}, {}) == said


@pytest.mark.parametrize(
    ("said", "scores"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": True}, {"a": 1.0}),
        (Assessment({"a": 0.5}), {"a": 0.5}),
        (SimpleNamespace(scores={"a": 2}, details=None), {"a": 2.0}),
        ({}, {}),
    ],
    ids=["int", "bool", "assessment", "alike", "empty"],
)
def test_scores_become_floats(said: object, scores: Scores) -> None:
    checked_scores = checked("fake", said).scores
    assert checked_scores == scores
    assert all(type(value) is float for value in checked_scores.values())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"a": float("nan")}, 'evaluator "fake" gave nan as "a"'),
        ({"a": float("inf")}, 'gave inf as "a"'),
        ({"a": "1.0"}, "gave '1.0' as \"a\""),
        ({"a": None}, 'gave None as "a"'),
        ({1: 1.0}, "named a score 1"),
        (0.5, "returned float; it should return a dict"),
        (None, "returned NoneType"),
    ],
)
async def test_what_is_no_score_breaks_the_evaluator(
    scoring: Scoring, said: object, message: str
) -> None:
    with pytest.raises(EvaluatorBroken) as caught:
        await scoring.assess(Fake(lambda: said), {}, {})
    assert message in str(caught.value)


def fails_first(times: int) -> Callable[[], Scores]:
    calls: list[None] = []

    def act() -> Scores:
        calls.append(None)
        if len(calls) <= times:
            raise OSError("lost")
        return {"calls": float(len(calls))}

    return act


@pytest.mark.parametrize("placement", ["inline", "thread"])
async def test_a_failure_costs_one_retry(scoring: Scoring, placement: str) -> None:
    row = await scoring.score_row([Fake(fails_first(1), placement)], {}, {"response": ""})
    assert row.scores == {"calls": 2.0}
    assert row.failures == {}


@pytest.mark.parametrize("placement", ["inline", "thread"])
async def test_a_second_failure_is_listed_and_the_others_scores_stand(
    scoring: Scoring, placement: str
) -> None:
    broken = Fake(fails_first(2), placement, "broken")
    row = await scoring.score_row([broken, AnswerQuality()], {"answer": "a b"}, {"response": "b"})
    failure = row.failures["broken"]
    assert row.scores["f1"] == 1.0
    assert (failure.origin, failure.reason, failure.attempts) == (
        "evaluator",
        "EVALUATOR_BROKEN",
        2,
    )
    assert failure.message == 'evaluator "broken" raised OSError: lost'
    assert "test_placement.py" in failure.stack_trace


@pytest.mark.parametrize("placement", ["inline", "thread"])
async def test_an_evaluator_that_exits_takes_nobody_with_it(
    scoring: Scoring, placement: str
) -> None:
    row = await scoring.score_row([Fake(sys.exit, placement)], {}, {"response": ""})
    assert row.failures["fake"].message == 'evaluator "fake" tried to exit'


async def test_a_remote_evaluators_reason_is_kept(scoring: Scoring) -> None:
    def act() -> Scores:
        raise CallFailed(Failure("transport", "UNAVAILABLE", "gone", retryable=True))

    row = await scoring.score_row([Fake(act)], {}, {"response": ""})
    failure = row.failures["fake"]
    assert (failure.origin, failure.reason, failure.message) == ("evaluator", "UNAVAILABLE", "gone")
    assert failure.retryable


async def test_a_lost_worker_is_listed_with_the_reason(
    scoring: Scoring, trouble: Any, tmp_path: Path
) -> None:
    row = await scoring.score_row([trouble.AlwaysDies(str(tmp_path))], {}, {"response": ""})
    assert "lost two workers" in row.failures["always-dies"].message
    assert len(os.listdir(tmp_path)) == 2


async def test_an_evaluator_that_hangs_in_a_thread_is_given_up_and_others_go_on() -> None:
    scoring = Scoring(threads=1, thread_timeout=0.2)
    release = threading.Event()
    stuck = Fake(lambda: {"waited": float(release.wait(60))}, "thread", "stuck")
    row = await scoring.score_row([stuck, Fake(here, "thread")], {}, {"response": ""})
    release.set()
    assert row.failures["stuck"].message == 'evaluator "stuck" did not finish within 0.2 s'
    assert "thread" in row.scores
    await scoring.close()


async def test_a_timeout_of_the_evaluators_own_is_not_ours(scoring: Scoring) -> None:
    def act() -> Scores:
        raise TimeoutError("the judge was slow")

    for evaluator in (Fake(act, "thread"), Awaited(act, "io")):
        with pytest.raises(EvaluatorBroken, match="raised TimeoutError: the judge was slow"):
            await scoring.assess(evaluator, {}, {})


async def test_an_awaited_evaluator_is_given_up_after_its_time() -> None:
    scoring = Scoring(io_timeout=0.05)
    with pytest.raises(EvaluatorBroken, match=r"did not finish within 0\.05 s"):
        await scoring.assess(Awaited(asyncio.Event().wait, "io"), {}, {})
    await scoring.close()


async def test_cancelling_is_not_a_failure_of_the_evaluator(scoring: Scoring) -> None:
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    call = asyncio.create_task(scoring.score_row([Awaited(wait, "io")], {}, {"response": ""}))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_later_evaluators_overwrite_equal_scores(scoring: Scoring) -> None:
    evaluators = [
        Fake(lambda: {"a": 1.0, "b": 1.0}, name="first"),
        Fake(lambda: SimpleNamespace(scores={"a": 2.0}, details={"why": "so"}), name="second"),
    ]
    row = await scoring.score_row(evaluators, {}, {"response": ""})
    assert row.scores == {"a": 2.0, "b": 1.0}
    assert row.details == {"second": {"why": "so"}}
    elsewhere = Scoring(inline_limit=-1)
    assert await elsewhere.score_row(evaluators, {}, {"response": ""}) == row
    await elsewhere.close()


async def test_without_a_response_only_context_evaluators_and_those_that_do_not_say_run(
    scoring: Scoring,
) -> None:
    evaluators = [AnswerQuality(), ContextRetention(), Fake(lambda: {"own": 1.0})]
    original = {"context": "in Paris", "answer": "Paris"}
    only_context = await scoring.score_row(evaluators, original, {"context": "Paris"})
    answered = await scoring.score_row(evaluators, original, {**original, "response": "Paris"})
    nothing = await scoring.score_row(evaluators, original, {})
    assert [*only_context.scores] == ["answer_retained", "answer_recall", "own"]
    assert [*answered.scores] == ["f1", "exact_match", "recall", "contains", "own"]
    assert nothing.scores["f1"] == 0.0


@pytest.mark.parametrize(
    "evaluators",
    [[Fake(here, "thread")], [AnswerQuality(), Fake(here, "worker")], [Awaited(here)]],
    ids=["thread", "worker", "awaited"],
)
async def test_scoring_at_once_declines_what_belongs_elsewhere(
    scoring: Scoring, evaluators: list[Any]
) -> None:
    assert scoring.inline(evaluators) is None


async def test_a_long_pair_is_not_scored_on_the_loop(scoring: Scoring) -> None:
    row = await scoring.score_row([Fake(here)], {"context": LONG}, {"response": ""})
    assert row.scores["thread"] != threading.get_ident()
    row = await scoring.score_row([Fake(here)], {"context": ""}, {"response": ""})
    assert row.scores["thread"] == threading.get_ident()


@pytest.mark.parametrize("times", [0, 1, 2])
async def test_scoring_at_once_gives_what_scoring_gives(scoring: Scoring, times: int) -> None:
    pair: tuple[Example, Example] = {"answer": "Paris"}, {"response": "It is Paris"}
    elsewhere = Scoring(inline_limit=-1)
    slow = await elsewhere.score_row([AnswerQuality(), Fake(fails_first(times))], *pair)
    await elsewhere.close()
    inline = scoring.inline([AnswerQuality(), Fake(fails_first(times))])
    assert inline is not None
    fast = inline.score(*pair)
    assert fast.scores == slow.scores
    assert {n: (f.reason, f.message) for n, f in fast.failures.items()} == {
        n: (f.reason, f.message) for n, f in slow.failures.items()
    }


async def test_an_io_evaluator_may_be_its_own_judge_of_patience() -> None:
    class Patient:
        name = "patient"
        placement = "io"
        patience = None

        def score(self, original: Example, processed: Example) -> Scores:
            return {}

        async def assess(self, original: Example, processed: Example) -> Assessment:
            await asyncio.sleep(0.05)
            return Assessment({"waited": 1.0})

    class Hasty(Patient):
        patience = 0.001

    scoring = Scoring(io_timeout=0.001)
    try:
        assert (await scoring.assess(Patient(), {}, {})).scores == {"waited": 1.0}
        with pytest.raises(EvaluatorBroken):
            await scoring.assess(Hasty(), {}, {})
    finally:
        await scoring.close()
