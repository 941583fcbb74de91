"""The judges: what they send, what they make of the reply, and what they tell."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbench_server.evaluators import LLMJudge, MemoryJudge
from cbench_server.types import Evaluator
from tests.fixtures.model_server import ModelServer

KEY = "sk-very-secret-123"
SUM = {"question": "What is 2+2?", "answer": "4"}
GREW_UP = {"question": "Where did Alice grow up?", "answer": "Paris"}


def judge_for(server: ModelServer, **options: Any) -> LLMJudge:
    return LLMJudge(server.url, **{"retry_base_delay": 0.001, "timeout": 20.0} | options)


def memory_judge_for(server: ModelServer, **options: Any) -> MemoryJudge:
    return MemoryJudge(server.url, **{"retry_base_delay": 0.001, "timeout": 20.0} | options)


# What the seeds say.


def test_a_rating_of_four_is_three_quarters(server: ModelServer) -> None:
    server.say("4")
    judge = LLMJudge(base_url=server.url, model="gpt-4")
    assert judge.score(SUM, {"response": "The answer is 4."}) == {"judge_score": 0.75}
    [request] = server.requests
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("gpt-4", 0, 16)
    assert server.paths == ["/v1/chat/completions"]
    [message] = request["messages"]
    assert message["role"] == "user"
    assert all(text in message["content"] for text in ("What is 2+2?", "4", "The answer is 4."))


def test_the_memory_judges_yes_is_one_and_its_no_is_zero(server: ModelServer) -> None:
    server.say("YES\nSame city.")
    server.say("NO\nAnother city.")
    judge = MemoryJudge(base_url=server.url, model="claude-haiku-4-5-20251001")
    right = judge.score(GREW_UP, {"response": "Alice grew up in Paris, France."})
    wrong = judge.score(GREW_UP, {"response": "Alice grew up in London."})
    assert right == {"memory_judge": 1.0, "memory_judge_raw": 1.0}
    assert wrong == {"memory_judge": 0.0, "memory_judge_raw": 0.0}
    assert [request["max_tokens"] for request in server.requests] == [64, 64]


def test_the_arguments_are_in_the_order_of_the_seeds(server: ModelServer) -> None:
    server.say("YES")
    judge = MemoryJudge(server.url, "m", KEY, 20.0, 2, 0.5)
    judge.score(GREW_UP, {"response": "Paris"})
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    options = judge.options
    assert (options["timeout"], options["max_retries"], options["retry_base_delay"]) == (20, 2, 0.5)
    LLMJudge(server.url, "m", KEY, 20.0)


@pytest.mark.parametrize("response", ["", None, "  \n", "<think>hm</think>"])
def test_an_empty_response_scores_zero_without_a_call(
    server: ModelServer, response: str | None
) -> None:
    processed = {"response": response}
    assert judge_for(server).score(SUM, processed) == {"judge_score": 0.0}
    zeros = {"memory_judge": 0.0, "memory_judge_raw": 0.0}
    assert memory_judge_for(server).score(GREW_UP, processed) == zeros
    neutral = {"memory_judge": 0.5, "memory_judge_raw": 0.5}
    assert memory_judge_for(server).score({**GREW_UP, "answer": ""}, processed) == neutral
    assert server.requests == []


@pytest.mark.parametrize("original", [{**GREW_UP, "answer": ""}, {"question": "Where?"}])
def test_the_memory_judge_is_neutral_where_there_is_no_expected_answer(
    server: ModelServer, original: dict[str, Any]
) -> None:
    scores = memory_judge_for(server).score(original, {"response": "Paris"})
    assert scores == {"memory_judge": 0.5, "memory_judge_raw": 0.5}
    assert server.requests == []


def test_without_a_reference_the_response_is_judged_anyway(server: ModelServer) -> None:
    server.say("5")
    scores = judge_for(server).score({"context": "Write a poem."}, {"response": "Roses"})
    assert scores == {"judge_score": 1.0}
    content = server.requests[0]["messages"][0]["content"]
    assert "Write a poem." in content
    assert "[BEGIN REFERENCE" not in content


def test_several_references_are_all_shown_and_a_pack_may_show_none(server: ModelServer) -> None:
    server.say("5")
    original = {"question": "Who?", "answers": ["Ann", "Bob"]}
    judge_for(server).score(original, {"response": "Ann"})
    judge_for(server, pack="helpfulness").score(original, {"response": "Ann"})
    shown, hidden = (request["messages"][0]["content"] for request in server.requests)
    assert "- Ann\n- Bob" in shown
    assert "Bob" not in hidden


def test_with_neither_question_nor_context_there_is_nothing_to_judge(server: ModelServer) -> None:
    assert judge_for(server).score({"answer": "4"}, {"response": "4"}) == {}


# Details.


async def test_details_tell_verdict_reply_model_pack_and_usage(server: ModelServer) -> None:
    server.say("Rating: 2", prompt_tokens=240, completion_tokens=3)
    judge = judge_for(server, model="m")
    assessment = await judge.assess(SUM, {"response": "5"})
    await judge.close_connections()
    assert assessment.scores == {"judge_score": 0.25}
    digest = assessment.details.pop("pack_digest")
    assert assessment.details.pop("seconds") > 0
    assert len(assessment.details.pop("prompt_digest")) == 16
    (asked,) = [message["content"] for message in server.requests[0]["messages"]]
    assert assessment.details.pop("prompt") == asked
    assert assessment.details == {
        "verdict": 2.0,
        "reply": "Rating: 2",
        "model": "m",
        "pack": "correctness",
        "request": {"temperature": 0, "max_tokens": 16},
        "requests": 1,
        "usage": {"prompt_tokens": 240, "completion_tokens": 3},
    }
    assert judge.version == f"4+correctness.{digest}"


async def test_repeats_give_the_median_and_how_far_they_agree(server: ModelServer) -> None:
    for reply in ("4", "4", "2", "4", "5"):
        server.say(reply, prompt_tokens=10, completion_tokens=1)
    judge = judge_for(server, repeats=5)
    assessment = await judge.assess(SUM, {"response": "4"})
    await judge.close_connections()
    assert assessment.scores == {"judge_score": 0.75, "judge_agreement": 0.6}
    assert sorted(assessment.details["verdicts"]) == [2, 4, 4, 4, 5]
    assert sorted(assessment.details["replies"]) == ["2", "4", "4", "4", "5"]
    assert assessment.details["usage"] == {"prompt_tokens": 50, "completion_tokens": 5}


async def test_the_majority_of_repeated_verdicts_counts_and_a_tie_does_not(
    server: ModelServer,
) -> None:
    for reply in ("YES", "NO", "YES", "NO", "YES"):
        server.say(reply)
    three, two = memory_judge_for(server, repeats=3), memory_judge_for(server, repeats=2)
    most = await three.assess(GREW_UP, {"response": "Paris"})
    tied = await two.assess(GREW_UP, {"response": "Paris"})
    await two.close_connections()
    assert most.scores["memory_judge"] == 1.0
    assert most.scores["memory_judge_raw"] == most.scores["memory_judge_agreement"] == 2 / 3
    assert tied.scores == {
        "memory_judge": 0.0,
        "memory_judge_raw": 0.5,
        "memory_judge_agreement": 0.5,
    }


async def test_thinking_is_left_out_of_the_response_and_of_the_reply(server: ModelServer) -> None:
    server.say("<think>1, 2, 3?</think>5")
    judge = judge_for(server)
    processed = {"response": "<think>secret plan</think>4"}
    assert (await judge.assess(SUM, processed)).scores == {"judge_score": 1.0}
    assert "secret plan" not in server.requests[0]["messages"][0]["content"]
    plain = judge_for(server, strip_thinking=False)
    await plain.assess(SUM, processed)
    await plain.close_connections()
    assert "secret plan" in server.requests[1]["messages"][0]["content"]


# In general.

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["question", "context", "answer", "answers", "response"])
_EXAMPLES = st.dictionaries(_KEYS, _JSON | st.text(st.characters()), max_size=5)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_EXAMPLES, _EXAMPLES)
def test_any_pair_is_scored_in_range_and_the_same_from_any_thread(
    server: ModelServer, original: dict[str, Any], processed: dict[str, Any]
) -> None:
    if not server.steps:
        server.say("4\nYES")
    judges: list[Evaluator] = [judge_for(server), memory_judge_for(server)]
    for judge in judges:
        scores = judge.score(original, processed)
        assert all(0.0 <= value <= 1.0 for value in scores.values())
        with ThreadPoolExecutor(2) as pool:
            again = list(pool.map(judge.score, [original] * 2, [processed] * 2))
        assert again == [scores, scores]


def test_the_judges_are_evaluators_that_describe_themselves(server: ModelServer) -> None:
    for judge in (judge_for(server), memory_judge_for(server)):
        assert isinstance(judge, Evaluator)
        assert judge.placement == "io"
        assert type(judge)(**judge.options).options == judge.options
