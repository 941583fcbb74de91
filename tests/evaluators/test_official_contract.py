"""Evaluators named after benchmarks: what holds for each of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.contract import info_of
from cbench_server.evaluators import EVALUATORS
from cbench_server.scoring.recipe import build, recipe_of
from cbench_server.types import Evaluator

# Each with what a row needs besides an answer, and a row that it scores 1.0.
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "bbh": ({}, "So the answer is Paris."),
    "drop": ({}, "Paris"),
    "hotpotqa": ({}, "Paris"),
    "infinitebench": ({"task": "longbook_qa_eng"}, "Paris"),
    "locomo": ({"category": 4}, "Paris"),
    "longbench": ({"task": "hotpotqa"}, "Paris"),
    "musique": ({}, "Paris"),
    "nq-open": ({}, "Paris"),
    "rouge": ({}, "Paris"),
    "string-match": ({}, "Paris"),
    "subspan-em": ({}, "Paris"),
    "triviaqa": ({}, "Paris"),
}


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def score(name: str, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
    return dict(EVALUATORS[name]().score({**CASES[name][0], **original}, processed))


def test_it_says_what_it_gives(name: str) -> None:
    evaluator = EVALUATORS[name]()
    assert evaluator.name == name
    assert isinstance(evaluator, Evaluator)
    said = info_of(evaluator)
    assert (said.version, said.reads) == ("1", "response")
    assert said.required_fields == ("answer", *CASES[name][0])
    found = score(name, {"answer": "Paris"}, {"response": "Rome"})
    assert [each.name for each in said.scores] == [*found]
    assert all(each.higher_is_better for each in said.scores)


def test_its_scores_are_its_own(name: str) -> None:
    others = [EVALUATORS[each] for each in EVALUATORS if each != name]
    taken = {info.name for other in others for info in info_of(other).scores}
    # ROUGE-L has one name, whoever computes it.
    own = {info.name for info in info_of(EVALUATORS[name]).scores} - {"rouge_l_f1"}
    assert not own & taken


@pytest.mark.parametrize("response", [{}, {"response": None}, {"response": ""}])
def test_a_missing_response_is_an_empty_one(name: str, response: dict[str, Any]) -> None:
    assert {*score(name, {"answer": "Paris"}, response).values()} == {0.0}


@pytest.mark.parametrize("original", [{}, {"answer": None}, {"answers": []}, {"answers": [None]}])
def test_an_example_without_an_answer_gives_no_scores(name: str, original: dict[str, Any]) -> None:
    assert score(name, original, {"response": "Paris"}) == {}


def test_an_example_without_a_required_field_gives_no_scores(name: str) -> None:
    original = {**CASES[name][0], "answer": "Paris"}
    for field in info_of(EVALUATORS[name]()).required_fields:
        without = {key: value for key, value in original.items() if key != field}
        assert EVALUATORS[name]().score(without, {"response": CASES[name][1]}) == {}


def test_the_right_answer_scores_one_with_thinking_before_it(name: str) -> None:
    right = CASES[name][1]
    found = score(name, {"answer": "Paris"}, {"response": f"<think>Rome?</think>{right}"})
    assert {value for key, value in found.items() if key != "rouge_2_f1"} == {1.0}


def test_thinking_stays_if_that_is_asked_for(name: str) -> None:
    # An exact match alone is not won by a part of the response.
    answer = "thinkso answer is Paris think Rome" if name == "nq-open" else "Paris"
    original = {**CASES[name][0], "answer": answer}
    processed = {"response": "<think>so the answer is Paris.\n</think>\nRome"}
    assert max(EVALUATORS[name](strip_thinking=True).score(original, processed).values()) == 0.0
    assert max(EVALUATORS[name](strip_thinking=False).score(original, processed).values()) > 0.0


@pytest.mark.parametrize("name", [each for each in CASES if each != "string-match"])
def test_the_best_of_several_references_counts(name: str) -> None:
    found = score(name, {"answers": ["Rome", "Paris"]}, {"response": CASES[name][1]})
    assert {value for key, value in found.items() if key != "rouge_2_f1"} == {1.0}


def test_an_equal_one_can_be_made_in_a_worker(name: str) -> None:
    recipe = recipe_of(EVALUATORS[name](strip_thinking=False))
    assert recipe is not None
    twin: Any = build(recipe)
    assert twin.options["strip_thinking"] is False


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_EXAMPLES = st.dictionaries(st.sampled_from(["answer", "answers", "response"]), _VALUES)


@pytest.mark.parametrize("name", CASES)
@given(original=_EXAMPLES, processed=_EXAMPLES)
def test_any_example_is_scored_within_range_and_twice_alike(
    name: str, original: dict[str, Any], processed: dict[str, Any]
) -> None:
    found = score(name, original, processed)
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert score(name, original, processed) == found


@pytest.mark.parametrize("part", ["a", "[", "7", "a ", "] ", "7 7\n", "a.", "a, ", "the ", "y-"])
def test_a_megabyte_of_the_same_ends(name: str, part: str) -> None:
    text = part * (1_000_000 // len(part))
    found = score(name, {"answer": "a cat, 7 dogs.\nAnd [a] mat."}, {"response": text})
    assert all(0.0 <= value <= 1.0 for value in found.values())
