"""SummarizationQuality: the same numbers as the rouge-score package."""

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import EVALUATORS, SummarizationQuality
from cbench_server.scoring.recipe import build, recipe_of
from cbench_server.types import Evaluator
from tests.fixtures.rouge_package import TEXTS, by_package


def scores(precision: float, recall: float, f1: float) -> dict[str, float]:
    return {"rouge_l_precision": precision, "rouge_l_recall": recall, "rouge_l_f1": f1}


def expected_of(references: list[str], response: str, *, stemmed: bool = False) -> dict[str, float]:
    best = by_package(["rougeL"], references, response, stemmed=stemmed)["rougeL"]
    return scores(best.precision, best.recall, best.fmeasure)


@pytest.mark.parametrize(
    ("gold", "response", "expected"),
    [
        ("the cat sat", "the cat sat", scores(1, 1, 1)),
        ("the cat sat", "The CAT, sat!", scores(1, 1, 1)),
        ("the cat sat on the mat", "the dog sat", scores(2 / 3, 2 / 6, 4 / 9)),
        ("a b c d", "d c b a", scores(0.25, 0.25, 0.25)),
        ("state-of-the-art", "state of the art", scores(1, 1, 1)),
        ("runs", "running", scores(0, 0, 0)),
        ("东京", "东京", scores(0, 0, 0)),
        ("", "anything", scores(1, 1, 1)),
        ("", None, scores(1, 1, 1)),
        ("x", "", scores(0, 0, 0)),
        ("none", None, scores(0, 0, 0)),
        ("  ", "x", scores(0, 0, 0)),
        (42, 42, scores(1, 1, 1)),
    ],
)
def test_a_summary_is_scored(gold: object, response: object, expected: dict[str, float]) -> None:
    given_scores = SummarizationQuality().score({"answer": gold}, {"response": response})
    assert given_scores == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("original", [{}, {"answer": None}, {"answers": []}])
def test_an_example_without_an_answer_gives_no_scores(original: dict[str, Any]) -> None:
    assert SummarizationQuality().score(original, {"response": "x"}) == {}


def test_the_stemmer_is_an_option_that_a_worker_is_told_of() -> None:
    stemming = SummarizationQuality(use_stemmer=True)
    recipe = recipe_of(stemming)
    assert recipe is not None
    for evaluator in (stemming, build(recipe)):
        assert evaluator.score({"answer": "runs"}, {"response": "running"}) == scores(1, 1, 1)


def test_all_three_scores_come_from_the_reference_with_the_best_f1() -> None:
    original = {"answers": ["one two three four five six", "one nine", "one two three"]}
    found = SummarizationQuality().score(original, {"response": "one two three seven"})
    assert found == pytest.approx(expected_of(original["answers"], "one two three seven"))
    assert found["rouge_l_recall"] == 1.0


def test_thinking_is_left_out_unless_it_is_asked_for() -> None:
    pair = {"answer": "the cat sat"}, {"response": "<think>a dog?</think>the cat sat"}
    assert SummarizationQuality().score(*pair)["rouge_l_f1"] == 1.0
    assert SummarizationQuality(strip_thinking=False).score(*pair)["rouge_l_f1"] < 1.0


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_it_equals_the_package(references: list[str], response: str) -> None:
    kept = [reference for reference in references if reference.strip()]
    original, processed = {"answers": references}, {"response": response}
    for stemmed in (False, True):
        evaluator = SummarizationQuality(use_stemmer=stemmed, strip_thinking=False)
        expected = expected_of(kept, response, stemmed=stemmed) if kept else {}
        assert evaluator.score(original, processed) == pytest.approx(expected, abs=1e-9, rel=0)


@pytest.mark.parametrize("size", [63, 64, 65, 129, 700])
def test_long_texts_equal_the_package_too(size: int) -> None:
    chance = random.Random(size)
    words = [f"w{number}" for number in range(size // 8 + 2)]
    gold = " ".join(chance.choices(words, k=size))
    response = " ".join(chance.choices(words, k=size + chance.randrange(40)))
    found = SummarizationQuality().score({"answer": gold}, {"response": response})
    assert found == pytest.approx(expected_of([gold], response), abs=1e-9, rel=0)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_EXAMPLES = st.dictionaries(st.sampled_from(["answer", "answers", "response"]), _VALUES)


@given(_EXAMPLES, _EXAMPLES)
def test_any_example_is_scored_within_range_and_twice_alike(
    original: dict[str, Any], processed: dict[str, Any]
) -> None:
    found = SummarizationQuality().score(original, processed)
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert SummarizationQuality().score(original, processed) == found


def test_importing_it_does_not_import_nltk() -> None:
    program = (
        "import sys; import cbench_server.evaluators.summarization_quality; "
        "sys.exit('nltk' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_it_is_a_registered_evaluator_that_describes_its_scores() -> None:
    evaluator = SummarizationQuality()
    assert EVALUATORS["summarization-quality"] is SummarizationQuality
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"answer": "a b"}, {"response": "b"})]
