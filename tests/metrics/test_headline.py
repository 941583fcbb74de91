"""The headline: no assignment of scores, failures and gaps to rows escapes the stated rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cbench_server import evaluate
from cbench_server.comparison.pairs import Side
from cbench_server.evaluators import AnswerQuality
from cbench_server.evaluators.context_retention import ContextRetention
from cbench_server.metrics import EveryScore, MeanScore, PassRate
from cbench_server.metrics.summary import Summarizer
from cbench_server.results import EvalRow, Failure
from cbench_server.types import ScoreInfo


@dataclass(frozen=True)
class Case:
    """What happened on one example, in words; and the score there is."""

    kind: str
    value: float = 0.0


def row_of(case: Case, ordinal: int) -> EvalRow:
    row = EvalRow("a", ordinal, {}, 1, 1, ordinal=ordinal, primary_score="main", dataset="d")
    if case.kind == "responded":
        row.scores = {"main": case.value, "other": 0.5}
    elif case.kind == "context":
        row.scores, row.context_only = {"answer_retained": case.value}, True
    elif case.kind == "context without the answer":
        row.context_only, row.not_applicable = True, ("answer_retained",)
    elif case.kind == "no reference":
        row.scores, row.not_applicable = {"main": 1.0}, ("main", "answer_retained")
    elif case.kind == "judge failed":
        row.scores = {"other": 1.0}
        row.evaluator_failures = {"judge": Failure("evaluator", "NO_VERDICT", "")}
    elif case.kind == "system failed":
        row.failure = Failure("system", "INTERNAL", "")
    elif case.kind == "we failed":
        row.failure = Failure("daemon", "INTERNAL", "")
    return row


_values = st.sampled_from([0.0, 0.25, 0.5, 1.0])
_kinds = st.sampled_from(
    [
        "responded",
        "context",
        "context without the answer",
        "no reference",
        "judge failed",
        "system failed",
        "we failed",
    ]
)
_cases = st.lists(st.builds(Case, _kinds, _values), max_size=12)


def expected(cases: list[Case], worst: float) -> dict[str, float | None]:
    """The rule, as docs/concepts.md states it."""
    responses = {"responded", "no reference", "judge failed"}
    contexts = {"context", "context without the answer"}
    kinds = {case.kind for case in cases}
    is_retention = bool(kinds & contexts) and not kinds & responses
    worst = 0.0 if is_retention else worst
    scored: list[float] = []
    failed = unscored = not_applicable = 0
    for case in cases:
        if case.kind == "no reference":
            not_applicable += 1
        elif case.kind == "system failed":
            failed += 1
        elif case.kind in ("we failed", "judge failed"):
            unscored += 1
        elif case.kind == "responded":
            scored.append(case.value)
        elif not is_retention:
            scored.append(worst)
        elif case.kind == "context":
            scored.append(case.value)
        else:
            not_applicable += 1

    def mean(values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None

    return {
        "mean_score": mean(scored),
        "mean_score_with_failures": mean([*scored, *[worst] * failed]),
        "mean_score_worst_case": mean([*scored, *[worst] * (failed + unscored)]),
        "num_scored": len(scored),
        "num_failed": failed,
        "num_unscored": unscored,
        "num_not_applicable": not_applicable,
    }


def summary_of(rows: list[EvalRow], infos: Mapping[str, ScoreInfo]) -> dict[str, float | None]:
    summarizer = Summarizer([MeanScore(), EveryScore(), PassRate()], ["a"], infos)
    summarizer.extend(rows)
    return summarizer.result().summary["a"]


@given(_cases, st.sampled_from([None, 0.0, -1.0]))
def test_the_headline_is_what_the_rule_says(cases: list[Case], worst: float | None) -> None:
    rows = [row_of(case, place) for place, case in enumerate(cases)]
    infos = {} if worst is None else {"main": ScoreInfo("main", "", worst=worst)}
    values = summary_of(rows, infos)
    wanted = expected(cases, worst or 0.0)
    assert {key: values[key] for key in wanted} == wanted
    # A comparison stands on the same rows with the same values.
    counted = [
        score
        for example in Side("a", rows, None, infos).scored().values()
        for score in example.scores
    ]
    headline = wanted["mean_score_with_failures"]
    assert (sum(counted) / len(counted) if counted else None) == headline


@given(_cases)
def test_an_evaluator_that_a_user_adds_never_touches_the_headline(cases: list[Case]) -> None:
    rows = [row_of(case, place) for place, case in enumerate(cases)]
    before = summary_of(rows, {})
    for row in rows:
        if row.failure is None:
            row.scores = {"zzz": 0.9, **row.scores, "aaa": 0.1}
    after = summary_of(rows, {})
    assert {key: value for key, value in after.items() if not key.endswith((":zzz", ":aaa"))} == {
        **before,
        **{key: value for key, value in after.items() if ":zzz_" in key or ":aaa_" in key},
    }


@given(st.lists(_values, min_size=1, max_size=6), st.integers(1, 5))
def test_failing_never_pays_even_where_lower_is_better(values: list[float], failures: int) -> None:
    rows = [row_of(Case("responded", value), place) for place, value in enumerate(values)]
    rows += [row_of(Case("system failed"), len(rows) + place) for place in range(failures)]
    unknown = summary_of(rows, {"main": ScoreInfo("main", "", higher_is_better=False)})
    assert unknown["mean_score"] is not None
    assert unknown["mean_score_with_failures"] is None
    declared = ScoreInfo("main", "", higher_is_better=False, worst=1.0)
    known = summary_of(rows, {"main": declared})
    assert known["mean_score_with_failures"] == (sum(values) + failures) / len(rows)


def test_an_unbounded_score_has_no_headline_once_rows_failed() -> None:
    rows = [row_of(Case("responded", 12.0), 0), row_of(Case("responded", 3.0), 1)]
    assert summary_of(rows, {})["mean_score_with_failures"] == 7.5
    rows.append(row_of(Case("system failed"), 2))
    assert summary_of(rows, {})["mean_score_with_failures"] is None


def test_every_score_has_a_mean_and_a_count() -> None:
    rows = [row_of(Case("responded", 1.0), 0), row_of(Case("judge failed"), 1)]
    values = summary_of(rows, {})
    assert (values["mean_score:main"], values["num_scored:main"]) == (1.0, 1.0)
    assert (values["mean_score:other"], values["num_scored:other"]) == (0.75, 2.0)
    assert values["mean_score:other_ci_low"] is not None


class _ShareKept:
    name = "share-kept"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        if original["question"] == "broken":
            raise ValueError("no length")
        return {"kept": len(processed["context"]) / len(original["context"])}


class _FirstHalf:
    name = "first-half"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "context": example["context"][:5]}


def test_a_score_that_was_chosen_counts_for_contexts_where_an_evaluator_gives_it() -> None:
    asked = [
        {"context": "Rome or it", "question": question, "answer": "Rome"}
        for question in ("where", "which", "broken")
    ]
    evaluators = [AnswerQuality(), ContextRetention(), _ShareKept()]
    result = evaluate([_FirstHalf()], asked, evaluators, score_field="kept", timed_rows=0)
    summary = result.summary["first-half"]
    assert summary["mean_score"] == 0.5, "not what its contexts retain, which is 1"
    assert (summary["num_scored"], summary["num_unscored"]) == (2, 1), "an evaluator failed"
    assert summary["num_unchanged"] == 0
    assert summary["num_with_context"] == 3
    assert [row.score for row in result.rows[:2]] == [0.5, 0.5]
    unchosen = evaluate([_FirstHalf()], asked, evaluators, timed_rows=0).summary["first-half"]
    assert unchosen["mean_score"] == 1.0, "only retention stands in for the dataset's own score"
