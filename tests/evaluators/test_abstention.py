"""Whether a response admits that there is no answer."""

from typing import Any

import pytest

from cbench_server.evaluators import Abstention, AnswerQuality, MemoryJudge
from cbench_server.evaluators.abstention import abstaining_words
from tests.fixtures.model_server import ModelServer

ASKED = {"question": "Which dog?", "answer": "You never said.", "is_abstention": True}


@pytest.mark.parametrize(
    "response",
    [
        "No information available.",
        "Not mentioned in the conversation.",
        "I don't know.",
        "I don’t have enough information to answer that.",
        "The conversation does not say.",
        "You never said where you moved.",
        "This cannot be determined from our chats.",
        "There is no mention of a hamster.",
        "You haven't told me about your dog, only about your cat.",
        "Unknown",
        "I'm not sure.",
        "It isn't stated.",
        "<think>Rex?</think> The history has no record of that.",
    ],
)
def test_a_response_that_cannot_tell_abstains(response: str) -> None:
    assert Abstention().score(ASKED, {"response": response}) == {"abstention": 1.0}


@pytest.mark.parametrize(
    "response",
    [
        "",
        "Paris",
        "No",
        "She did not go to Paris.",
        "They do not eat meat.",
        "No, she has two cats.",
        "He said no to the offer.",
        "He did not give up.",
        "It never rained.",
    ],
)
def test_a_response_that_answers_does_not(response: str) -> None:
    assert Abstention().score(ASKED, {"response": response}) == {"abstention": 0.0}


def test_thinking_aloud_is_no_abstention() -> None:
    said = {"response": "<think>I don't know.</think>Rex"}
    assert Abstention().score(ASKED, said) == {"abstention": 0.0}


@pytest.mark.parametrize("original", [{"answer": "x"}, {"answer": "x", "is_abstention": False}])
def test_questions_with_an_answer_are_left_to_others(original: dict[str, Any]) -> None:
    assert Abstention().score(original, {"response": "I don't know."}) == {}


def test_words_are_not_compared_where_there_is_no_answer() -> None:
    assert AnswerQuality().score(ASKED, {"response": "You never said."}) == {}


def test_the_words_that_decided_are_kept() -> None:
    assert abstaining_words("Sorry, that is not mentioned.") == "not mention"
    assert Abstention().assess(ASKED, {"response": "Unknown."}).details == {"said": "Unknown"}


async def test_a_judge_is_given_the_explanation(server: ModelServer) -> None:
    server.say("YES\nIt says so.")
    judge = MemoryJudge(server.url)
    assessment = await judge.assess(ASKED, {"response": "I cannot tell."})
    await judge.close_connections()
    assert assessment.scores["memory_judge"] == 1.0
    assert "You never said." in str(server.requests[0]["messages"])
