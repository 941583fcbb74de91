"""InfiniteBench: labels and tasks; the numbers are in the vectors."""

from typing import Any

import pytest

from cbench_server.contract import info_of
from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators import InfiniteBench


def infinitebench(task: str, response: str, **fields: Any) -> float:
    original = {"task": task, **fields}
    return InfiniteBench().score(original, {"response": response})["infinitebench_score"]


@pytest.mark.parametrize(
    "fields",
    [
        {"answers": ["main", "B"]},
        {"answer": ["main", "B"]},
        {"answer": "main", "correct_letter": "B"},
        {"answer": "main", "choices": ["get", "main", "put", "set"]},
    ],
)
@pytest.mark.parametrize("task", ["code_debug", "longbook_choice_eng"])
def test_the_letter_is_found(task: str, fields: dict[str, Any]) -> None:
    assert infinitebench(task, "B. main", **fields) == 1.0
    assert infinitebench(task, "C. main", **fields) == 0.0


def test_a_choice_without_a_letter_is_refused() -> None:
    with pytest.raises(InvalidInput, match='label "main" has no letter'):
        infinitebench("code_debug", "B", answer="main", choices=["get", "put"])


@pytest.mark.parametrize("labels", [[1, 2, 3, 4], [[1, 2, 3, 4]], ["1", "2", "3", "4"]])
def test_math_calc_counts_the_values_before_the_first_wrong_one(labels: list[Any]) -> None:
    assert infinitebench("math_calc", "1, 2, 9, 4", answer=labels) == 0.5
    assert infinitebench("math_calc", "4", answers=labels) == 0.0


@pytest.mark.parametrize(
    ("label", "response", "expected"),
    [
        (88, "It is 88.", 1.0),
        ("88", "It is 88.", 1.0),
        (0.5, "about 0.5", 1.0),
        ("0.5", "about 0.50", 1.0),
        # The official script ends with an error here.
        (88, "88.5", 0.0),
        (88, "9" * 5000, 0.0),
    ],
)
def test_math_find_takes_the_first_number(label: Any, response: str, expected: float) -> None:
    assert infinitebench("math_find", response, answer=label) == expected


def test_the_sign_of_what_code_returns_counts() -> None:
    assert infinitebench("code_run", "The value is -7.", answer=-7) == 1.0
    assert infinitebench("code_run", "The value is 7.", answer=-7) == 0.0


def test_only_the_summary_may_take_long() -> None:
    assert info_of(InfiniteBench()).placement == "worker"
    assert info_of(InfiniteBench(task="longbook_sum_eng")).placement == "worker"
    assert info_of(InfiniteBench(task="passkey")).placement == "inline"


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(UnknownName, match='no InfiniteBench task "passkeys"'):
        InfiniteBench(task="passkeys")
    with pytest.raises(UnknownName):
        infinitebench("poetry", "1", answer="1")
