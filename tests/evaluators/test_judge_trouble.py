"""The judges against a model that is slow, overloaded, rude or wrong."""

import asyncio
import json
import time
from typing import Any

import pytest

from cbench_server.errors import EvaluatorBroken, InvalidInput
from cbench_server.evaluators import LLMJudge, MemoryJudge
from cbench_server.evaluators.judge.judge import NoVerdict
from cbench_server.evaluators.judge.limits import Budget, Pace, pace_of
from cbench_server.scoring.placement import Scoring
from tests.fixtures.model_server import ModelServer

KEY = "sk-very-secret-123"
SUM = {"question": "What is 2+2?", "answer": "4"}
GREW_UP = {"question": "Where did Alice grow up?", "answer": "Paris"}


def judge_for(server: ModelServer, **options: Any) -> LLMJudge:
    return LLMJudge(server.url, **{"retry_base_delay": 0.001, "timeout": 20.0} | options)


def memory_judge_for(server: ModelServer, **options: Any) -> MemoryJudge:
    return MemoryJudge(server.url, **{"retry_base_delay": 0.001, "timeout": 20.0} | options)


# Trouble.


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_status_that_may_pass_is_retried(server: ModelServer, status: int) -> None:
    server.answer(status, "busy", retry_after="0")
    server.say("5")
    assert judge_for(server).score(SUM, {"response": "4"}) == {"judge_score": 1.0}
    assert len(server.requests) == 2


@pytest.mark.parametrize("trouble", ["drop", "break_off", "hang"])
def test_a_connection_that_fails_is_retried(server: ModelServer, trouble: str) -> None:
    getattr(server, trouble)()
    server.say("YES")
    # Short enough to notice a server that hangs, long enough for one that answers.
    judge = memory_judge_for(server, timeout=1.0 if trouble == "hang" else 20.0)
    assert judge.score(GREW_UP, {"response": "Paris"})["memory_judge"] == 1.0
    assert len(server.requests) >= 2


def test_a_reply_without_a_verdict_is_asked_about_once_and_never_with_the_same_request(
    server: ModelServer,
) -> None:
    server.say("As a language model I would rather not.")
    server.say("3")
    assert judge_for(server).score(SUM, {"response": "4"}) == {"judge_score": 0.5}
    first, second = server.requests
    assert first["messages"] == second["messages"][:1]
    assert second["messages"][1] == {
        "role": "assistant",
        "content": "As a language model I would rather not.",
    }
    assert "one number from 1 to 5" in second["messages"][2]["content"]


def test_a_reply_that_was_cut_off_gets_more_room_and_an_empty_one_is_not_quoted(
    server: ModelServer,
) -> None:
    cut = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    server.answer(200, json.dumps(cut))
    server.say("YES")
    assert memory_judge_for(server).score(GREW_UP, {"response": "Paris"})["memory_judge"] == 1.0
    first, second = server.requests
    assert second["max_tokens"] == 8 * first["max_tokens"]
    [message] = second["messages"]
    assert message["content"] != first["messages"][0]["content"]


async def test_two_replies_without_a_verdict_leave_the_row_unscored_and_say_what_was_said(
    server: ModelServer,
) -> None:
    server.say("Hm.")
    server.say("1: wrong, irrelevant, or no answer at all\n2: major errors")
    judge = judge_for(server)
    with pytest.raises(NoVerdict, match="asked twice, gave no verdict but .1: wrong"):
        await judge.assess(SUM, {"response": "4"})
    await judge.close_connections()
    assert len(server.requests) == 2


async def test_a_row_without_a_verdict_keeps_what_was_asked_said_and_spent(
    server: ModelServer,
) -> None:
    for said in ("Hm.", "Hard to say."):
        server.say(said, prompt_tokens=5, completion_tokens=1)
    judge = judge_for(server)
    row = await Scoring().score_row([judge], SUM, {"response": "4"})
    await judge.close_connections()
    assert row.failures["llm-judge"].reason == "NO_VERDICT"
    details = row.details["llm-judge"]
    assert (details["reply"], details["requests"], details["asked_again"]) == ("Hard to say.", 2, 1)
    assert details["usage"]["prompt_tokens"] == 10
    assert SUM["question"] in details["prompt"]
    assert {"model", "pack", "pack_digest", "request"} <= details.keys()


async def test_requests_retries_and_what_was_given_up_are_counted_with_the_verdict(
    server: ModelServer,
) -> None:
    server.answer(429, "busy", retry_after="0")
    server.say("Hm.", prompt_tokens=5, completion_tokens=1)
    usage = {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 6}}
    server.say("4", **usage)
    judge = judge_for(server, extra_body={"seed": 7})
    details = (await judge.assess(SUM, {"response": "4"})).details
    await judge.close_connections()
    assert (details["requests"], details["retries"], details["asked_again"]) == (3, 1, 1)
    assert "abandoned" not in details
    assert details["usage"]["cached_prompt_tokens"] == 6
    assert details["usage"]["prompt_tokens"] == 12
    assert details["request"] == {"temperature": 0, "max_tokens": 16, "seed": 7}


@pytest.mark.parametrize(
    ("status", "body", "asked", "said"),
    [
        (503, "busy", 3, "503"),
        (401, "bad key", 1, "401"),
        (200, "<html>", 1, "not JSON"),
        (200, json.dumps({"choices": [{"message": {"content": "banana"}}]}), 2, "banana"),
    ],
    ids=["down", "refused", "no-json", "nonsense"],
)
async def test_a_judge_that_fails_is_broken_in_a_run_and_zero_in_python(
    server: ModelServer, status: int, body: str, asked: int, said: str
) -> None:
    server.answer(status, body)
    judge, memory = judge_for(server, max_retries=2), memory_judge_for(server, max_retries=2)
    with pytest.raises(EvaluatorBroken, match=said):
        await judge.assess(SUM, {"response": "4"})
    assert len(server.requests) == asked
    with pytest.raises(EvaluatorBroken, match=said):
        await memory.assess(GREW_UP, {"response": "Paris"})
    await judge.close_connections()
    await memory.close_connections()
    assert judge.score(SUM, {"response": "4"}) == {"judge_score": 0.0}
    zeros = {"memory_judge": 0.0, "memory_judge_raw": 0.0}
    assert memory.score(GREW_UP, {"response": "Paris"}) == zeros


async def test_a_run_lists_the_failure_once_and_keeps_the_other_scores(server: ModelServer) -> None:
    server.answer(503, "busy")
    server.say("NO")
    scoring = Scoring()
    evaluators = [judge_for(server, max_retries=0), memory_judge_for(server)]
    row = await scoring.score_row(evaluators, GREW_UP, {"response": "Rome"})
    for evaluator in evaluators:
        await evaluator.close_connections()
    await scoring.close()
    assert row.scores == {"memory_judge": 0.0, "memory_judge_raw": 0.0}
    assert row.failures["llm-judge"].reason == "EVALUATOR_BROKEN"
    assert len(server.requests) == 2


async def test_the_key_is_in_no_message_option_or_detail(server: ModelServer) -> None:
    server.answer(401, f"Incorrect API key: {KEY}")
    judge = judge_for(server, api_key=KEY)
    with pytest.raises(EvaluatorBroken) as caught:
        await judge.assess(SUM, {"response": "4"})
    await judge.close_connections()
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    said = [str(caught.value), repr(judge.options), repr(vars(judge)), repr(judge._judge.settings)]
    assert not any(KEY in text for text in said)


def test_the_environments_key_is_used_unless_told_otherwise(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.say("5")
    judge_for(server).score(SUM, {"response": "4"})
    judge_for(server, api_key="").score(SUM, {"response": "4"})
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in server.headers[1]


# Limits.


async def test_a_hundred_rows_do_not_flood_the_model(server: ModelServer) -> None:
    now, most, refused = 0, 0, 0

    def answer_while_few_ask(handler: Any) -> None:
        nonlocal now, most, refused
        with server.lock:
            now += 1
            most = max(most, now)
            is_busy = now > 4
            refused += is_busy
        if is_busy:
            handler.reply(429, "busy", {"retry-after": "0"})
        else:
            time.sleep(0.002)  # the model at work
            handler.reply(200, json.dumps({"choices": [{"message": {"content": "5"}}]}))
        with server.lock:
            now -= 1

    server.steps.append(answer_while_few_ask)
    judge = judge_for(server, max_retries=20)
    calls = [judge.assess(SUM, {"response": f"4 {number}"}) for number in range(100)]
    scores = [each.scores["judge_score"] for each in await asyncio.gather(*calls)]
    await judge.close_connections()
    assert scores == [1.0] * 100
    # All at once, 96 of the first requests would have been refused.
    assert most <= 32
    assert refused < 48


def test_turns_come_evenly_and_are_shared_by_all_who_ask_the_same_model() -> None:
    pace = Pace()
    waits = [pace.reserve(120, now) for now in (100.0, 100.0, 100.0, 100.2, 200.0)]
    assert waits == pytest.approx([0.0, 0.5, 1.0, 1.3, 0.0])
    assert pace_of("http://a", "m", 120) is pace_of("http://a", "m", 120)
    assert pace_of("http://a", "m", 120) is not pace_of("http://a", "n", 120)


async def test_every_attempt_takes_a_turn(server: ModelServer) -> None:
    server.answer(503, "busy")
    server.say("5")
    judge = judge_for(server, rpm=600, model="paced")
    started = time.monotonic()
    await judge.assess(SUM, {"response": "4"})
    await judge.close_connections()
    # Two turns of a tenth of a second each are taken, so the third comes after them.
    assert pace_of(server.url, "paced", 600).reserve(600, 0.0) >= started + 0.2


async def test_the_cost_cap_ends_the_asking(server: ModelServer) -> None:
    server.say("5", prompt_tokens=1_000, completion_tokens=100)
    judge = judge_for(server, max_cost=0.025, input_price=10.0, output_price=20.0)
    outcomes = []
    for _ in range(4):
        try:
            outcomes.append((await judge.assess(SUM, {"response": "4"})).scores["judge_score"])
        except EvaluatorBroken as error:
            outcomes.append(str(error).partition(":")[0])
    await judge.close_connections()
    # A call costs 0.012, and one more than two might have cost more than is left.
    assert outcomes == [1.0, 1.0, "cost cap reached", "cost cap reached"]
    assert len(server.requests) == 2


async def test_calls_in_flight_cannot_exceed_the_cap_together(server: ModelServer) -> None:
    server.say("5")
    judge = judge_for(server, max_cost=0.01, input_price=10.0, output_price=20.0)
    calls = [judge.assess(SUM, {"response": "4"}) for _ in range(50)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    await judge.close_connections()
    refused = [outcome for outcome in outcomes if isinstance(outcome, EvaluatorBroken)]
    assert 0 < len(server.requests) < 10
    assert len(refused) == 50 - len(server.requests)


def test_what_failed_costs_nothing_and_what_is_unused_is_given_back() -> None:
    budget = Budget(1.0, 1.0, 1.0)
    budget.reserve(0.9)
    with pytest.raises(EvaluatorBroken, match="cost cap reached"):
        budget.reserve(0.2)
    budget.settle(0.9, 0.0)
    budget.reserve(1.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"repeats": 0}, "repeats"),
        ({"rpm": 0}, "rpm"),
        ({"timeout": 0}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_cost": 1.0}, "input_price"),
        ({"max_cost": -1.0, "input_price": 1.0}, "max_cost"),
        ({"input_price": float("nan")}, "input_price"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options: dict[str, Any], said: str) -> None:
    for kind in (LLMJudge, MemoryJudge):
        with pytest.raises(InvalidInput, match=said):
            kind("http://h", **options)


def test_further_keys_of_the_request_override_ours_and_none_removes_one(
    server: ModelServer,
) -> None:
    server.say("5")
    judge = judge_for(server, extra_body={"max_tokens": None, "max_completion_tokens": 900})
    judge.score(SUM, {"response": "4"})
    assert set(server.requests[0]) == {
        "model",
        "messages",
        "temperature",
        "max_completion_tokens",
    }
