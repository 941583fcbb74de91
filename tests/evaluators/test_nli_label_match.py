"""NLILabelMatch: aliases, inflections, negation, and what a response settles on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.evaluators import EVALUATORS, NLILabelMatch
from cbench_server.evaluators.nli_label_match import extract_label
from cbench_server.types import Evaluator

ENTAILMENT, CONTRADICTION, NOT_MENTIONED = "entailment", "contradiction", "not mentioned"


def accuracy(gold: object, response: object) -> float:
    return NLILabelMatch().score({"answer": gold}, {"response": response})["nli_accuracy"]


@pytest.mark.parametrize(
    ("gold", "response", "expected"),
    [
        ("Entailment", "Yes, this is true.", 1.0),
        ("Contradiction", "This is not true.", 1.0),
        ("Entailment", "This is not true.", 0.0),
        ("Entailment", "Entailed", 1.0),
        ("SUPPORTS", "The claim is supported by the abstract.", 1.0),
        ("Not mentioned", "It is not mentioned; there is no evidence", 1.0),
        ("Entailment", "The answer is entailment because of clause 2", 1.0),
        ("Entailment", "not a contradiction, therefore entailment", 1.0),
        ("SUPPORT", "SUPPORTS", 1.0),
        ("CONTRADICT", "refutes", 1.0),
        ("REFUTES", "contradiction", 1.0),
        ("SUPPORTS", "yes", 1.0),
        ("SUPPORTS", "The abstract does not support the claim.", 0.0),
        ("NOT_ENOUGH_INFO", "neutral", 1.0),
        ("NOT ENOUGH INFO", "NEI", 1.0),
        ("NotMentioned", "Not mentioned", 1.0),
        ("weird", " Weird. ", 1.0),
        ("weird", "It is weird", 0.0),
        ("not_entailment", "not entailment", 1.0),
        ("Entailment", "", 0.0),
        ("Entailment", None, 0.0),
        ("none", None, 0.0),
        ("", "anything", 1.0),
        ("  ", "", 1.0),
        (True, "true", 1.0),
    ],
)
def test_a_response_is_scored(gold: object, response: object, expected: float) -> None:
    assert accuracy(gold, response) == expected


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("entails", ENTAILMENT),
        ("supporting", ENTAILMENT),
        ("Refuted!", CONTRADICTION),
        ("contradictory", CONTRADICTION),
        ("It is untrue", CONTRADICTION),
        ("not_mentioned", NOT_MENTIONED),
        ("The hypothesis isn't mentioned.", NOT_MENTIONED),
        ("The premise cannot be verified", NOT_MENTIONED),
        ("It does not address this point.", NOT_MENTIONED),
        ("**Label:** `NOT_MENTIONED`", NOT_MENTIONED),
        ("\\boxed{Contradiction}", CONTRADICTION),
        ("I would classify this as **Neutral**.", NOT_MENTIONED),
        ("unsupported", None),
        ("so", None),
        ("", None),
    ],
)
def test_words_in_any_form_name_a_label(response: str, label: str | None) -> None:
    assert extract_label(response) == label


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("The document doesn't contradict this.", None),
        ("The hypothesis is not entailed by the contract.", None),
        ("The statement is not false", ENTAILMENT),
        ("There is no contradiction; the contract entails it.", ENTAILMENT),
        ("This does not contradict the claim; it supports it.", ENTAILMENT),
        ("It not only supports the claim, it proves it", ENTAILMENT),
        ("The answer is not entailment but contradiction.", CONTRADICTION),
        ("The claim is NOT supported; it is refuted.", CONTRADICTION),
        ("The abstract refutes the claim rather than supporting it", CONTRADICTION),
        ("It neither supports nor refutes the claim.", NOT_MENTIONED),
        ("The text does not support or refute it.", NOT_MENTIONED),
        ("It does not entail, contradict, or mention the hypothesis.", NOT_MENTIONED),
        ("There is not enough information to support or refute it.", NOT_MENTIONED),
    ],
)
def test_what_is_denied_is_not_the_answer(response: str, label: str | None) -> None:
    assert extract_label(response) == label


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("The label is contradiction. The clause supports the opposite.", CONTRADICTION),
        ("Contradiction. The clause supports the opposite.", CONTRADICTION),
        ("Entailment\nNothing here would contradict the claim.", ENTAILMENT),
        ("The claim is false, since the text supports the opposite.", CONTRADICTION),
        ("At first the answer is entailment. But the verdict is refuted.", CONTRADICTION),
        ("The relation between the two sentences is contradiction.", CONTRADICTION),
        (
            "The contract also says it supports the vendor; this contradicts the claim",
            CONTRADICTION,
        ),
        ("Yes.\n\nThe contract contradicts any other reading.", ENTAILMENT),
        ("Answer: No", CONTRADICTION),
    ],
)
def test_an_explicit_statement_beats_a_mention_and_the_last_one_wins(
    response: str, label: str
) -> None:
    assert extract_label(response) == label


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("No, the document does not mention it.", NOT_MENTIONED),
        ("Not mentioned. No.", NOT_MENTIONED),
        ("The hypothesis is not mentioned in the contract. No", NOT_MENTIONED),
        ("Does it contradict? No. It supports the claim.", ENTAILMENT),
        ("Does it entail or contradict? It entails, yes.", ENTAILMENT),
        ("I must say whether it entails or contradicts. Refuted.", CONTRADICTION),
        ("It is not clear whether the claim is true.", None),
        ("This contradicts the claim because the study found no evidence.", CONTRADICTION),
        ("The study contradicts the claim. It found no evidence.", CONTRADICTION),
        ("It supports the claim, although the dose is not mentioned.", ENTAILMENT),
        ("Although not explicitly stated, it supports the claim.", ENTAILMENT),
        ("There is no such clause", None),
    ],
)
def test_a_question_a_reason_and_a_mere_no_weigh_less(response: str, label: str | None) -> None:
    assert extract_label(response) == label


def test_any_reference_may_match() -> None:
    original = {"answers": ["Contradiction", "Not mentioned"]}
    assessment = NLILabelMatch().assess(original, {"response": "neutral"})
    assert assessment.scores == {"nli_accuracy": 1.0}
    assert assessment.details == {"label": NOT_MENTIONED}


@pytest.mark.parametrize("original", [{}, {"answer": None}, {"answers": []}])
def test_an_example_without_an_answer_gives_no_scores(original: dict[str, Any]) -> None:
    assert NLILabelMatch().score(original, {"response": "yes"}) == {}


def test_thinking_is_left_out_unless_asked_for() -> None:
    original = {"answer": "Entailment"}
    processed = {"response": "Entailment<think>The answer is contradiction.</think>"}
    assert NLILabelMatch().score(original, processed) == {"nli_accuracy": 1.0}
    kept = NLILabelMatch(strip_thinking=False).score(original, processed)
    assert kept == {"nli_accuracy": 0.0}


_VERDICTS = ["yes", "no", "supports", "refuted", "entail", "neutral", "mention", "true", "false"]
_AROUND = ["not", "the", "is", "so", "answer", "whether", "because", ",", ".", "?", "\n"]
_WORDS = st.lists(st.sampled_from(_VERDICTS + _AROUND), max_size=12).map(" ".join)


@given(_WORDS | st.text(max_size=40))
def test_a_response_has_one_label_whatever_its_case_and_markup(response: str) -> None:
    label = extract_label(response)
    assert label in (ENTAILMENT, CONTRADICTION, NOT_MENTIONED, None)
    if response.isascii():
        assert extract_label(f"**{response.upper()}**") == label
    right = [gold for gold in ("SUPPORTS", "REFUTES", "NEI") if accuracy(gold, response) == 1.0]
    assert len(right) == (label is not None)


@given(st.text(max_size=20) | st.none() | st.integers(), st.text(max_size=20) | st.floats())
def test_nothing_makes_it_raise(gold: object, response: object) -> None:
    result = NLILabelMatch().score({"answer": gold}, {"response": response})
    assert result == {} if gold is None else result["nli_accuracy"] in (0.0, 1.0)


@pytest.mark.parametrize("text", ["no evidence ", "so support, ", "answer ", "not ", "claim is "])
def test_one_endless_sentence_is_read(text: str) -> None:
    assert extract_label("Contradiction. " + text * 20_000 + ". The answer is yes") == ENTAILMENT


def test_it_is_an_evaluator_that_describes_its_scores() -> None:
    evaluator = NLILabelMatch()
    assert EVALUATORS["nli-label-match"] is NLILabelMatch
    assert isinstance(evaluator, Evaluator)
    announced = [info.name for info in evaluator.score_infos]
    assert announced == [*evaluator.score({"answer": "a"}, {"response": "b"})]
