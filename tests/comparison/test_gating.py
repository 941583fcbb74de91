"""Policies: how they are read, and which number decides."""

from xml.etree import ElementTree

import numpy as np
import pytest
from msgspec.structs import replace

from cbench_server.comparison.gate import Check, check, to_junit
from cbench_server.comparison.policies import parse_policy, read_policies
from cbench_server.comparison.quantities import Measures
from cbench_server.errors import InvalidInput
from tests.comparison.conftest import MakeRows


@pytest.mark.parametrize(
    ("text", "metric", "kind", "value", "unit"),
    [
        ("f1 not worse than baseline by more than 1 point", "f1", "not worse", 0.01, "points"),
        ("f1 is not worse than baseline", "f1", "not worse", 0.0, ""),
        ("score better than baseline by at least 2 points", "score", "better", 0.02, "points"),
        ("F1 at least 0.6", "F1", "at least", 0.6, ""),
        ("f1 at least .6", "f1", "at least", 0.6, ""),
        ("failures at most 1%", "failures", "at most", 0.01, "%"),
        ("Latency p95 at most 200 ms.", "p95 latency", "at most", 0.2, "s"),
        ("latency not worse than baseline by more than 10%", "mean latency", "not worse", 0.1, "%"),
        ("Pass rate  at least 80%", "pass rate", "at least", 0.8, "%"),
        ("context tokens at most 500 tokens", "context tokens", "at most", 500.0, ""),
    ],
)
def test_a_policy_reads_as_it_is_spoken(
    text: str, metric: str, kind: str, value: float, unit: str
) -> None:
    policy = parse_policy(text)
    assert (policy.metric, policy.kind, policy.unit) == (metric, kind, unit)
    assert policy.value == pytest.approx(value)
    assert not policy.as_measured


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f1 at least 60 ms", "f1 in points or %"),
        ("p95 latency at most 5%", "p95 latency in us, ms, s or min"),
        ("p95 latency at most 200", "p95 latency in us, ms, s or min"),
        ("latency not worse than baseline by more than 5 points", "min, or %"),
        ("context tokens at most 30 ms", "context tokens in tokens"),
        ("cost at most 5%", "cost in usd"),
        ("failures at most 1", "1 alone would be 100%"),
    ],
)
def test_a_value_in_another_unit_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_policy(text)


def test_a_margin_that_no_score_can_break_is_refused(make_rows: MakeRows) -> None:
    measures = Measures(make_rows("a", [0.2, 0.3]), make_rows("a", [0.5, 0.6]))
    with pytest.raises(InvalidInput, match='Write "1 points" or a share'):
        verdicts(measures, "f1 not worse than baseline by more than 1")


def test_a_policy_may_leave_the_interval_aside() -> None:
    assert parse_policy("failures at most 1% as measured").as_measured


@pytest.mark.parametrize("text", ["f1 good", "", "f1 at least much", "at least 0.5"])
def test_what_is_no_policy_is_answered_with_the_forms(text: str) -> None:
    with pytest.raises(InvalidInput, match="METRIC at least VALUE"):
        parse_policy(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gate.toml", 'policies = ["f1 at least 0.5", "failures at most 1%"]'),
        ("gate.txt", "# for CI\nf1 at least 0.5  # the least\n\nfailures at most 1%\n"),
    ],
)
def test_policies_come_from_files(name: str, text: str) -> None:
    assert read_policies(text, name) == ["f1 at least 0.5", "failures at most 1%"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gate.toml", "policies = 3", 'no top-level list of texts named "policies"'),
        ("gate.toml", "policies = [", "gate.toml is not TOML"),
        ("gate.txt", "# nothing\n", "has no policies; write one per line"),
    ],
)
def test_a_file_without_policies_is_named(name: str, text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_policies(text, name)


def verdicts(measures: Measures, *policies: str) -> list[Check]:
    return [check(parse_policy(policy), measures) for policy in policies]


def test_the_intervals_end_decides_about_a_score(make_rows: MakeRows) -> None:
    scores = np.random.default_rng(1).normal(0.6, 0.1, 100)
    measures = Measures(make_rows("a", scores))
    found = verdicts(
        measures, "f1 at least 0.5", "f1 at least 0.6", "f1 at least 0.7", "f1 at most 0.7"
    )
    assert [each.verdict for each in found] == ["passed", "not shown", "failed", "passed"]
    assert "the interval's lower end must be at least 0.600" in found[1].explanation
    assert found[1].explanation.endswith("Too few examples to tell: take more.")


def test_what_is_not_shown_comes_with_the_policy_that_would_pass(make_rows: MakeRows) -> None:
    scores = np.random.default_rng(1).normal(0.6, 0.1, 100)
    rows = make_rows("a", scores)
    timed = [replace(row, latency=0.001 * place, alone=True) for place, row in enumerate(rows)]
    for given, policy, way_out in (
        (rows, "f1 at least 0.59", "Too few examples to tell: take more"),
        (
            timed[:30],
            "p95 latency at most 1s",
            "So few rows leave the interval open; it takes 110: run with --timed-rows 110 on as "
            "many examples",
        ),
    ):
        [found] = verdicts(Measures(given), policy)
        assert found.verdict == "not shown"
        rest = f', or let the value itself decide: "{policy} as measured".'
        assert found.explanation.endswith(way_out + rest)
        assert verdicts(Measures(given), f"{policy} as measured")[0].verdict == "passed"


def test_not_worse_needs_an_interval_above_the_margin(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(2)
    base = draw.uniform(0.3, 0.6, 200)
    run = make_rows("a", base - 0.02 + draw.normal(0, 0.02, 200))
    measures = Measures(run, make_rows("a", base))
    found = verdicts(
        measures,
        "f1 not worse than baseline by more than 3 points",
        "f1 not worse than baseline by more than 2 points",
        "f1 not worse than baseline by more than 1 point",
        "f1 not worse than baseline by more than 10%",
        "f1 better than baseline",
    )
    assert [each.verdict for each in found] == ["passed", "not shown", "failed", "passed", "failed"]


def test_less_is_better_for_tokens_time_and_failures(make_rows: MakeRows) -> None:
    scores = [0.5] * 60
    run = make_rows("a", scores, context_tokens_out=50, context_tokens_in=100, latency=0.1)
    baseline = make_rows("a", scores, context_tokens_out=60, context_tokens_in=100, latency=0.1)
    found = verdicts(
        Measures(run, baseline),
        "context tokens better than baseline by at least 10%",
        "context tokens better than baseline by at least 20%",
        "latency not worse than baseline by more than 5%",
        "p50 latency not worse than baseline by more than 5%",
        "failures not worse than baseline by more than 8 points",
        "context compression at least 40%",
    )
    assert [each.verdict for each in found] == [
        "passed",
        "failed",
        "passed",
        "passed",
        "passed",
        "passed",
    ]


def test_no_failure_among_few_rows_does_not_show_that_there_are_none(make_rows: MakeRows) -> None:
    measures = Measures(make_rows("a", [0.5] * 50))
    bound, value = verdicts(measures, "failures at most 1%", "failures at most 1% as measured")
    assert (bound.verdict, value.verdict) == ("not shown", "passed")
    assert '"failures at most 1% as measured"' in bound.explanation


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("failures at most 0", [0.5] * 40, [0.5] * 39 + [None]),
        ("failures at most 0%", [0.5] * 40, [0.5] * 39 + [None]),
        ("pass rate at least 100%", [0.9] * 40, [0.9] * 39 + [0.1]),
        ("f1 at least 1", [1.0] * 40, [1.0] * 39 + [0.9]),
        ("score at least 1", [1.0] * 40, [1.0] * 39 + [0.9]),
    ],
)
def test_where_only_the_best_will_do_the_measured_value_decides(
    make_rows: MakeRows, text: str, good: list[float | None], bad: list[float | None]
) -> None:
    [passed], [failed] = (verdicts(Measures(make_rows("a", each)), text) for each in (good, bad))
    assert (passed.verdict, failed.verdict) == ("passed", "failed")
    assert "the measured value must be" in passed.explanation


def test_a_percentile_whose_interval_is_open_is_not_shown(make_rows: MakeRows) -> None:
    measures = Measures(make_rows("a", [0.5] * 20, latency=0.1))
    [found] = verdicts(measures, "p99 latency at most 1 s")
    assert found.verdict == "not shown"


def test_failed_rows_lower_the_score_of_a_gate(make_rows: MakeRows) -> None:
    rows = make_rows("a", [0.9] * 60 + [None] * 40)
    [found] = verdicts(Measures(rows), "f1 at least 0.8")
    assert found.verdict == "failed"
    assert found.measured.value == pytest.approx(0.54)


def test_a_score_beyond_one_is_not_written_in_points(make_rows: MakeRows) -> None:
    measures = Measures(make_rows("a", [4.0, 5.0, 3.0]), make_rows("a", [2.0, 1.0, 2.0]))
    [found] = verdicts(measures, "f1 not worse than baseline by more than 2")
    assert "f1 against the baseline +2.333 (95% CI" in found.explanation
    assert "at least -2." in found.explanation


def test_a_score_that_no_row_has_is_answered_with_those_there_are(make_rows: MakeRows) -> None:
    with pytest.raises(InvalidInput, match='no row has "f2".*Known: f1, score, pass rate'):
        verdicts(Measures(make_rows("a", [0.5])), "f2 at least 0.5")


def test_a_policy_about_a_baseline_needs_one(make_rows: MakeRows) -> None:
    with pytest.raises(InvalidInput, match="--baseline"):
        verdicts(Measures(make_rows("a", [0.5])), "f1 not worse than baseline")


def test_junit_has_a_case_for_each_policy_and_survives_odd_names(make_rows: MakeRows) -> None:
    checks = verdicts(Measures(make_rows("a", [0.5] * 30)), "f1 at least 0.4", "f1 at least 0.9")
    suite = ElementTree.fromstring(to_junit(checks, "run.<odd> & \x1b").encode())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[0].get("name") == "f1 at least 0.4"
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.get("message") == "failed"
