"""BigBenchHard: what is read as the answer, and that it is compared to the letter."""

import pytest

from cbench_server.evaluators import BigBenchHard
from cbench_server.evaluators.bbh import bbh_answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("Not False is True. So the answer is True.", "True"),
        ("So the answer is (B).", "(B)"),
        ("So the answer is (B)", "(B)"),
        ("So the answer is -15.", "-15"),
        ("So the answer is ] ) }.", "] ) }"),
        ("So the answer is > >", "> >"),
        ("the answer is (A).\n\nQ: next? the answer is (B).", "(A)"),
        ("the answer is apple pear..", "apple pear."),
        ("(B)", "(B)"),
        (" valid\n", "valid"),
        ("True.", "True."),
        ("The answer is True.", "The answer is True."),
        ("the answer is ", ""),
        ("", ""),
    ],
)
def test_the_answer_is_read(response: str, answer: str) -> None:
    assert bbh_answer(response) == answer


@pytest.mark.parametrize(
    ("target", "response", "expected"),
    [
        ("-15", "So the answer is 15.", 0.0),
        ("-15", "So the answer is -15.", 1.0),
        ("] )", "!", 0.0),
        ("(A)", "So the answer is A.", 0.0),
        ("(A)", "So the answer is (a).", 0.0),
        ("Yes", "So the answer is Yes, surely.", 0.0),
        (4, "So the answer is 4.", 1.0),
    ],
)
def test_the_answer_is_compared_as_it_is_written(
    target: object, response: str, expected: float
) -> None:
    assessment = BigBenchHard().assess({"answer": target}, {"response": response})
    assert assessment.scores == {"bbh_exact_match": expected}
    assert assessment.details == {"answer": bbh_answer(response)}
