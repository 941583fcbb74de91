"""AnswerQuality: the seeds' examples, the rulings on references, and thinking."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import AnswerQuality, references
from cbench_server.evaluators.inputs import strip_thinking
from cbench_server.metrics.quality import exact_match, f1_score, recall_score
from cbench_server.types import Evaluator


def scores(f1: float, exact: float, recall: float, contains: float) -> dict[str, float]:
    return {"f1": f1, "exact_match": exact, "recall": recall, "contains": contains}


@pytest.mark.parametrize(
    ("gold", "response", "expected"),
    [
        ("Paris", "The capital is Paris.", scores(0.5, 0, 1, 1)),
        ("the", "the", scores(0, 1, 0, 1)),
        ("the", "!!!", scores(0, 1, 0, 0)),
        ("  ", "x y", scores(0, 0, 0, 0)),
        (42, "42", scores(1, 1, 1, 1)),
        ("42", 42, scores(1, 1, 1, 1)),
        ("東京", "答えは東京です", scores(0, 0, 0, 1)),
        (["Rome", "Roma"], "Roma", scores(1, 1, 1, 1)),
        ("no", "I know", scores(0, 0, 0, 1)),
        ("a-b", "ab", scores(1, 1, 1, 0)),
        ("", "anything", scores(1, 1, 1, 1)),
        ("", "", scores(1, 1, 1, 1)),
        ("Paris", "", scores(0, 0, 0, 0)),
        ("none", None, scores(0, 0, 0, 0)),
        ("", None, scores(1, 1, 1, 1)),
    ],
)
def test_an_answer_is_scored(gold: object, response: object, expected: dict[str, float]) -> None:
    assert AnswerQuality().score({"answer": gold}, {"response": response}) == expected


def test_a_missing_response_is_an_empty_one() -> None:
    assert AnswerQuality().score({"answer": "Paris"}, {}) == scores(0, 0, 0, 0)


@pytest.mark.parametrize(
    "original", [{}, {"answer": None}, {"answers": []}, {"answers": [None]}, {"answers": [""]}]
)
def test_an_example_without_an_answer_gives_no_scores(original: dict[str, Any]) -> None:
    assert AnswerQuality().score(original, {"response": "Paris"}) == {}


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ({"answer": "a", "answers": ["b", "c"]}, ["b", "c"]),
        ({"answer": "a", "answers": []}, ["a"]),
        ({"answer": "a", "answers": None}, ["a"]),
        ({"answers": ["", "b"]}, ["b"]),
        ({"answers": ["", " "], "answer": "a"}, ["a"]),
        ({"answers": "", "answer": "a"}, ["a"]),
        ({"answers": float("nan"), "answer": 0}, ["0"]),
        ({"answer": False}, ["False"]),
        ({"answer": ["a", ["b", None]]}, ["a", "b"]),
        ({"answers": "b"}, ["b"]),
        ({"answers": (1, None, 2.5)}, ["1", "2.5"]),
        ({"answer": ""}, []),
    ],
    ids=[
        "answers-win",
        "no-answers",
        "null-answers",
        "empty-dropped",
        "all-empty",
        "empty-text",
        "nan-and-zero",
        "false",
        "a-list-in-answer",
        "a-string",
        "numbers",
        "empty",
    ],
)
def test_references_are_found(original: dict[str, Any], expected: list[str]) -> None:
    assert references(original) == expected


def test_each_score_is_the_best_over_the_references() -> None:
    original = {"answers": ["Paris", "the city of light in France"]}
    response = "Paris, city of light"
    assert AnswerQuality().score(original, {"response": response}) == {
        "f1": max(f1_score(response, one) for one in original["answers"]),
        "exact_match": 0.0,
        "recall": 1.0,
        "contains": 1.0,
    }


_TEXT = st.text(alphabet="abthe. <>/kin", max_size=30)


@given(st.lists(_TEXT.filter(str.strip), min_size=1, max_size=4), _TEXT.filter(bool))
def test_scores_agree_with_the_functions_and_ignore_the_order_of_references(
    answers: list[str], response: str
) -> None:
    evaluator = AnswerQuality(strip_thinking=False)
    result = evaluator.score({"answers": answers}, {"response": response})
    assert result == {
        "f1": max(f1_score(response, answer) for answer in answers),
        "exact_match": max(exact_match(response, answer) for answer in answers),
        "recall": max(recall_score(response, answer) for answer in answers),
        "contains": float(any(answer.lower() in response.lower() for answer in answers)),
    }
    assert all(0.0 <= value <= 1.0 for value in result.values())
    assert evaluator.score({"answers": answers[::-1]}, {"response": response}) == result


def test_thinking_is_left_out_unless_asked_for() -> None:
    original, processed = {"answer": "Paris"}, {"response": "<think>Rome? No.</think>\nParis"}
    assert AnswerQuality().score(original, processed) == scores(1, 1, 1, 1)
    assert AnswerQuality(strip_thinking=False).score(original, processed)["exact_match"] == 0.0


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        (" 1 < 2 ", " 1 < 2 "),
        ("<think>Rome?</think>Paris", "Paris"),
        ("<THINKING>x</THINKING>\n\nParis\n", "Paris"),
        ("<reasoning>x</reasoning> Paris", "Paris"),
        ("<|begin_of_thought|>x<|end_of_thought|>Paris", "Paris"),
        ("<think>a</think>Paris<think>b</think>, France", "Paris, France"),
        ("<think>I was cut off before", ""),
        ("  <think>a</think> <think>cut off again", ""),
        ("Rome? No.</think>Paris", "Paris"),
        ("<think>a <think>b</think> c</think>Paris", "Paris"),
        ("<think>use <reasoning>x</reasoning> too</think>Paris", "Paris"),
        ("The <think> tag opens it", "The <think> tag opens it"),
        ("<think>a</think>The <think> tag", "The <think> tag"),
        ("<thinker>Paris</thinker>", "<thinker>Paris</thinker>"),
    ],
)
def test_thinking_is_stripped(text: str, answer: str) -> None:
    assert strip_thinking(text) == answer


@given(st.lists(st.sampled_from(["<think>", "</think>", "</reasoning>", "<reasoning>", " x "])))
def test_stripping_thinking_settles_and_never_adds_text(parts: list[str]) -> None:
    once = strip_thinking("".join(parts))
    assert strip_thinking(once) == once
    assert once.count("x") <= "".join(parts).count("x")


def test_many_tags_are_read_in_one_pass() -> None:
    assert strip_thinking("x" + "<think>" * 100_000) == "x" + "<think>" * 100_000
    assert strip_thinking("x</think>" * 100_000 + "y") == "y"


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    evaluator = AnswerQuality()
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"answer": "a b"}, {"response": "b"})]
