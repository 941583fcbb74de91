"""Raters of the same thing: what one claims, another may take back."""

from typing import Any

from cbench_server.comparison import compare
from cbench_server.comparison.raters import as_proven, without_disputed
from cbench_server.results import EvalRow

_JUDGES: list[dict[str, Any]] = [
    {"dataset": "d", "pack": "p", "model": model, "url": "u", "scores": [score], "qualified": good}
    for model, score, good in (("one", "judge_score", True), ("two", "judge_score:two", False))
]


def _rows(system: str, one: float, two: float) -> list[EvalRow]:
    scores = {"judge_score": one, "judge_score:two": two}
    return [
        EvalRow(system, n, scores, 1, 1, {}, dataset="d", primary_score="judge_score", index=n)
        for n in range(20)
    ]


def test_a_claim_that_another_rater_turns_around_is_taken_back() -> None:
    for second, is_claimed in ((0.0, False), (1.0, True)):
        sides = {"a": _rows("a", 1.0, second), "b": _rows("b", 0.0, 0.5)}
        found = compare(sides)
        assert found.pairs[0].is_claimed
        (pair,) = without_disputed(found, sides, _JUDGES, {}).pairs
        assert pair.is_claimed is is_claimed


def test_what_is_said_of_rows_that_count_a_score_of_a_judge_that_did_not_pass_is_marked() -> None:
    rows = _rows("a", 1.0, 1.0)
    assert as_proven("Good.", rows, _JUDGES) == "Good."
    for row in rows:
        row.primary_score = "judge_score:two"
    assert as_proven("Good.", rows, _JUDGES) == "† Good."
    assert as_proven("Good.", rows, []) == "Good."
