"""Scores of which less is better: comparisons, fronts and gates read them the right way round."""

import pytest

from cbench_server.comparison import compare
from cbench_server.comparison.gate import check
from cbench_server.comparison.policies import parse_policy
from cbench_server.comparison.quantities import Measures
from cbench_server.metrics import METRICS
from cbench_server.metrics.summary import Summarizer
from cbench_server.results import EvalRow
from cbench_server.types import ScoreInfo

ERRORS = {"errors": ScoreInfo("errors", "", higher_is_better=False, worst=1.0)}


def rows(system: str, value: float, tokens: int) -> list[EvalRow]:
    return [
        EvalRow(
            system,
            number,
            {"errors": value + 0.01 * (number % 3)},
            100,
            tokens,
            ordinal=number,
            index=number,
            primary_score="errors",
            context_tokens_in=100,
            context_tokens_out=tokens,
        )
        for number in range(40)
    ]


GOOD, BAD = rows("good", 0.1, 50), rows("bad", 0.5, 50)


def test_the_one_with_fewer_errors_is_better() -> None:
    found = compare({"good": GOOD, "bad": BAD}, scores=ERRORS)
    assert found.sentences[0].startswith("good is better than bad on errors by 40 points")
    front = next(each for each in found.fronts if each.axis == "context_tokens")
    assert {point.system: point.layer for point in front.points} == {"good": 1, "bad": 2}
    assert {point.system: point.probability for point in front.points} == {"good": 1.0, "bad": 0.0}


@pytest.mark.parametrize(
    ("policy", "verdicts"),
    [
        ("errors not worse than baseline by more than 1 point", ("passed", "failed")),
        ("errors better than baseline", ("passed", "failed")),
        ("errors at most 0.3", ("passed", "failed")),
    ],
)
def test_a_gate_lets_fewer_errors_pass(policy: str, verdicts: tuple[str, str]) -> None:
    found = [
        check(parse_policy(policy), Measures(ours, theirs, 0.7, ERRORS)).verdict
        for ours, theirs in ((GOOD, BAD), (BAD, GOOD))
    ]
    assert tuple(found) == verdicts


def test_no_rank_calls_more_errors_better() -> None:
    summarizer = Summarizer([make() for make in METRICS.values()], ("good", "bad"), ERRORS)
    summarizer.extend([*GOOD, *BAD])
    for values in summarizer.result().summary.values():
        assert values.get("pareto_rank") is None
