"""ContextRetention: a quality axis for systems that only change the context."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import ContextRetention
from cbench_server.types import Evaluator


def retained(retained: float, recall: float) -> dict[str, float]:
    return {"answer_retained": retained, "answer_recall": recall}


@pytest.mark.parametrize(
    ("before", "after", "answer", "expected"),
    [
        ("It is in Paris, France.", "Paris, France", "Paris", retained(1, 1)),
        ("It is in Paris, France.", "It is in", "Paris", retained(0, 0)),
        ("in the New York City", "York, the New", "new york", retained(0, 1)),
        ("New York City", "York City", "New York", retained(0, 0.5)),
        ("They set out now.", "I know", "now", retained(0, 0)),
        ("I know", "I know", "now", {}),
        ("They said no.", "They said no.", "no", {}),
        ("It is in Rome.", "It is in Rome.", "Paris", {}),
        ("The U.S.A. did", "usa", "U.S.A.", retained(1, 1)),
        ("It cost 42 dollars", "", 42, retained(0, 0)),
        ("the answer", "the answer", "the", {}),
        ("anything", "anything", "", {}),
        ("to be or not to be", "to be or not", "to be or not to be", retained(0, 4 / 6)),
    ],
)
def test_retention_is_scored_on_whole_words(
    before: str, after: str, answer: object, expected: dict[str, float]
) -> None:
    original = {"context": before, "answer": answer}
    assert ContextRetention().score(original, {"context": after}) == expected


@pytest.mark.parametrize(
    ("original", "processed"),
    [
        ({"context": "Paris", "answer": "Paris"}, {"context": "Paris", "response": "Paris"}),
        ({"context": "Paris", "answer": "Paris"}, {"context": "Paris", "response": ""}),
        ({"context": "Paris", "answer": "Paris"}, {}),
        ({"context": "Paris"}, {"context": "Paris"}),
        ({"answer": "Paris"}, {"context": "Paris"}),
    ],
    ids=["response", "empty-response", "no-output-context", "no-answer", "no-context"],
)
def test_it_does_not_apply(original: dict[str, Any], processed: dict[str, Any]) -> None:
    assert ContextRetention().score(original, processed) == {}


def test_a_null_response_is_no_response() -> None:
    original = {"context": "Paris", "answer": "Paris"}
    processed = {"context": "Paris", "response": None}
    assert ContextRetention().score(original, processed) == retained(1, 1)


def test_only_references_that_were_there_count() -> None:
    original = {"context": "It is in Paris.", "answers": ["Lutetia", "Paris"]}
    assert ContextRetention().score(original, {"context": "Lutetia"}) == retained(0, 0)
    assert ContextRetention().score(original, {"context": "paris"}) == retained(1, 1)


_WORDS = st.lists(st.sampled_from(["no", "know", "the", "x", "y."]), max_size=12)


@given(_WORDS, _WORDS, _WORDS)
def test_scores_stay_in_range_and_an_unchanged_context_retains_everything(
    before: list[str], after: list[str], answer: list[str]
) -> None:
    original = {"context": " ".join(before), "answer": " ".join(answer)}
    changed = ContextRetention().score(original, {"context": " ".join(after)})
    unchanged = ContextRetention().score(original, {"context": original["context"]})
    assert all(0.0 <= value <= 1.0 for value in changed.values())
    assert unchanged in ({}, retained(1, 1))
    assert bool(changed) == bool(unchanged)
    if changed and changed["answer_retained"]:
        assert changed["answer_recall"] == 1.0


def test_a_long_context_that_nearly_matches_everywhere_is_scored() -> None:
    near = "x " * 500_000
    original = {"context": near + "y", "answer": "x " * 1_000 + "y"}
    scores = ContextRetention().score(original, {"context": near})
    assert scores == retained(0, 1_000 / 1_001)


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    evaluator = ContextRetention()
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"context": "bee", "answer": "bee"}, {"context": "bee"})]
