"""LoCoMo: the category of a question; the numbers are in the vectors."""

from typing import Any

import pytest

from cbench_server.errors import InvalidInput
from cbench_server.evaluators import LoCoMo


def locomo(response: str, **fields: Any) -> float:
    return LoCoMo().score(fields, {"response": response})["locomo_f1"]


@pytest.mark.parametrize("field", ["category", "question_type", "type"])
@pytest.mark.parametrize("category", [1, "1", "multi_hop"])
def test_a_category_is_a_number_or_a_name(field: str, category: object) -> None:
    fields = {"answer": "tea, rice", field: category}
    assert locomo("tea", **fields) == 0.5


def test_an_open_question_is_answered_before_the_semicolon() -> None:
    assert locomo("Likely no", answer="Likely no; since she hates tea", category=3) == 1.0
    assert locomo("Likely no", answer="Likely no; since she hates tea", category=4) < 1.0


@pytest.mark.parametrize(
    "fields", [{"category": 5}, {"type": "adversarial"}, {"is_abstention": True}]
)
def test_an_adversarial_question_has_no_answer(fields: dict[str, Any]) -> None:
    assert locomo("That is Not mentioned.", answer="a trap", **fields) == 1.0
    assert locomo("a trap", answer="a trap", **fields) == 0.0


@pytest.mark.parametrize("fields", [{"category": 6}, {"type": "single-session-user"}])
def test_a_row_of_another_dataset_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="LoCoMo has no category"):
        locomo("x", answer="x", **fields)
