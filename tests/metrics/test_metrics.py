"""Metrics: their keys, their edges, and equality with the official SQuAD script."""

import json
import math
import random
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.metrics import (
    METRICS,
    CompressionRatio,
    CostOfPass,
    IFEvalAccuracy,
    Latency,
    MeanScore,
    ParetoRank,
    PassAtK,
    PassRate,
    PerDatasetBreakdown,
    Summarizer,
    summarize,
)
from cbench_server.metrics.quality import exact_match, f1_score, normalize_answer, recall_score
from cbench_server.metrics.stats.estimate import base_key, estimate_keys
from cbench_server.results import EvalResult, EvalRow, Failure
from cbench_server.types import Metric

# Words, articles, punctuation, odd spaces, letters that grow when lowered, control characters.
_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("aAnNtThHeE  .,-'\"!_“—\u00a0\n\t\x00\x1cİß東京1"), st.characters()
    ),
    max_size=40,
)


def row(score: float | None = None, **values: Any) -> EvalRow:
    scores = {} if score is None else {"f1": score}
    defaults: dict[str, Any] = {
        "system": "a",
        "example_id": 0,
        "scores": scores,
        "input_tokens": 0,
        "output_tokens": 0,
        "primary_score": "f1",
    }
    return EvalRow(**{**defaults, **values})


def values_of(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Leave out standard errors and intervals, which tests/metrics is about."""
    return {key: value for key, value in values.items() if base_key(key) == key}


def failed(origin: str, **values: Any) -> EvalRow:
    return row(failure=Failure(origin, "REASON", "message"), **values)


# The official script (SQuAD v1.1, evaluate-v1.1.py), written out again from its published rules.


def official_tokens(text: str) -> list[str]:
    kept = "".join(char for char in text.lower() if char not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def official_f1(response: str, reference: str) -> float:
    given_tokens, wanted = official_tokens(response), official_tokens(reference)
    same = sum((Counter(given_tokens) & Counter(wanted)).values())
    if same == 0:
        return 0
    precision, recall = 1.0 * same / len(given_tokens), 1.0 * same / len(wanted)
    return (2 * precision * recall) / (precision + recall)


@given(_TEXT, _TEXT)
def test_quality_equals_the_official_script(response: str, reference: str) -> None:
    assert normalize_answer(response) == " ".join(official_tokens(response))
    assert f1_score(response, reference) == official_f1(response, reference)
    assert exact_match(response, reference) == float(
        " ".join(official_tokens(response)) == " ".join(official_tokens(reference))
    )


@given(_TEXT, _TEXT)
def test_quality_scores_stay_between_zero_and_one(response: str, reference: str) -> None:
    for measure in (f1_score, exact_match, recall_score):
        assert 0.0 <= measure(response, reference) <= 1.0
    assert recall_score(response, reference) >= 0.0
    assert f1_score(response, reference) == f1_score(reference, response)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat!", "cat"),
        ("a-b", "ab"),
        ("an  apple,\na pear", "apple pear"),
        ("“the” end", "“ ” end"),
        ("theatre", "theatre"),
        ("!!!", ""),
    ],
    ids=["article", "punctuation-first", "spaces", "curly-quotes", "whole-words", "nothing"],
)
def test_text_is_normalised(text: str, normal: str) -> None:
    assert normalize_answer(text) == normal


@pytest.mark.parametrize(
    ("response", "reference", "recall"),
    [
        ("to be", "to be or not to be", 2 / 6),
        ("to be to be or not", "to be or not to be", 1.0),
        ("anything", "the", 0.0),
    ],
    ids=["each-token-counts-once", "order-is-free", "empty-reference"],
)
def test_recall_counts_reference_tokens(response: str, reference: str, recall: float) -> None:
    assert recall_score(response, reference) == recall


def test_the_mean_is_over_rows_that_have_the_score() -> None:
    rows = [row(1.0), row(0.5), row(None), failed("system"), failed("daemon")]
    assert values_of(MeanScore().compute(rows)) == {
        "mean_score": 0.75,
        "mean_score_with_failures": 0.5,
        "mean_score_worst_case": 0.3,
        "num_scored": 2.0,
        "num_failed": 1.0,
        "num_unscored": 2.0,
        "num_not_applicable": 0.0,
    }


@pytest.mark.parametrize(
    ("origin", "value", "failed_rows"),
    [
        ("system", 0.5, 1.0),
        ("transport", 0.5, 1.0),
        ("reader", 0.5, 1.0),
        ("evaluator", 1.0, 0.0),
        ("daemon", 1.0, 0.0),
        ("dataset", 1.0, 0.0),
    ],
)
def test_only_failures_on_the_systems_side_count_as_zero(
    origin: str, value: float, failed_rows: float
) -> None:
    values = MeanScore().compute([row(1.0), failed(origin)])
    assert values["mean_score_with_failures"] == value
    assert values["mean_score_worst_case"] == 0.5
    assert values["num_failed"] == failed_rows
    assert values["num_unscored"] == 1.0 - failed_rows


def test_a_system_that_only_fails_has_no_mean_but_zero_with_failures() -> None:
    values = MeanScore().compute([failed("system")])
    assert values["mean_score"] is None
    assert values["mean_score_with_failures"] == 0.0


def test_each_row_is_read_by_its_own_primary_score_unless_a_field_is_named() -> None:
    rows = [
        row(scores={"f1": 0.2, "mc_accuracy": 1.0}, primary_score="mc_accuracy"),
        row(scores={"f1": 0.4}, primary_score="f1"),
    ]
    assert MeanScore().compute(rows)["mean_score"] == 0.7
    assert MeanScore(score_field="f1").compute(rows)["mean_score"] == pytest.approx(0.3)
    assert MeanScore(score_field="none").compute(rows)["mean_score"] is None


def test_a_score_at_the_threshold_passes() -> None:
    rows = [row(0.7), row(0.69), row(1.0), row(None), failed("system")]
    assert values_of(PassRate().compute(rows)) == {
        "pass_rate": 2 / 3,
        "pass_rate_with_failures": 0.5,
        "num_scored": 3.0,
        "num_failed": 1.0,
        "num_unscored": 1.0,
        "num_not_applicable": 0.0,
    }
    assert PassRate(threshold=0.5).compute(rows)["pass_rate"] == 1.0


def test_compression_is_measured_on_the_context_and_on_all_strings() -> None:
    rows = [
        row(input_tokens=100, output_tokens=150, context_tokens_in=80, context_tokens_out=20),
        row(input_tokens=100, output_tokens=50, context_tokens_in=20, context_tokens_out=10),
        row(input_tokens=200, output_tokens=100),
        failed("system", input_tokens=1000, output_tokens=0),
    ]
    assert values_of(CompressionRatio().compute(rows)) == {
        "context_compression": 0.7,
        "mean_context_tokens_in": 50.0,
        "mean_context_tokens_out": 15.0,
        "mean_reader_prompt_tokens": None,
        "compression_ratio": 0.25,
        "mean_input_tokens": 400 / 3,
        "mean_output_tokens": 100.0,
    }


def test_compression_of_nothing_is_zero_as_in_the_model() -> None:
    values = CompressionRatio().compute([row(output_tokens=5, context_tokens_in=0)])
    assert values["compression_ratio"] == 0.0
    assert values["context_compression"] is None


def test_the_cost_of_a_pass_counts_the_tokens_of_all_rows() -> None:
    rows = [
        row(0.9, output_tokens=10),
        row(0.7, output_tokens=20),
        row(0.1, output_tokens=30),
        failed("system", output_tokens=40),
    ]
    assert values_of(CostOfPass().compute(rows)) == {"cost_of_pass": 50.0, "num_passing": 2.0}


def test_a_cost_where_nothing_passes_is_null_in_json() -> None:
    rows = [row(0.1, output_tokens=10)]
    summary = summarize(rows, [CostOfPass()])
    assert summary == {"a": {**dict.fromkeys(estimate_keys("cost_of_pass")), "num_passing": 0.0}}
    document = EvalResult(rows, summary).to_json()
    assert json.loads(document)["summary"]["a"]["cost_of_pass"] is None


def test_money_is_counted_only_where_every_answer_has_a_price() -> None:
    priced = [row(0.9, usage={"cost_usd": 0.25}), row(0.1, usage={"cost_usd": 0.5})]
    values = CostOfPass().compute([*priced, failed("system")])
    assert values["cost_of_pass_usd"] == 0.75
    assert (values["mean_cost_usd"], values["total_cost_usd"]) == (0.375, 0.75)
    assert "cost_of_pass_usd" not in CostOfPass().compute([*priced, row(0.9)])


@pytest.mark.parametrize(
    ("count", "median", "p95", "p99"),
    [(1, 1, 1, 1), (2, 1, 2, 2), (20, 10, 19, 20), (100, 50, 95, 99), (101, 51, 96, 100)],
)
def test_percentiles_are_by_nearest_rank(count: int, median: int, p95: int, p99: int) -> None:
    # Nothing was called for a row without a time.
    rows = [row(latency=float(seconds)) for seconds in range(count + 1)]
    random.Random(1).shuffle(rows)
    values = Latency().compute([*rows, failed("system", latency=1e6)])
    assert values["latency_mean"] == (count + 1) / 2
    assert values["latency_max"] == count
    found = [values[f"latency_{which}"] for which in ("median", "p95", "p99")]
    assert found == [median, p95, p99]


def test_a_call_that_ran_out_of_time_counts_with_the_time_it_had() -> None:
    stalled = Failure("system", "DEADLINE_EXCEEDED", "no answer within 60s.")
    rows = [row(latency=0.1) for _ in range(90)]
    rows += [row(latency=60.0, failure=stalled) for _ in range(10)]
    values = Latency().compute(rows)
    assert (values["latency_median"], values["latency_p95"]) == (0.1, 60.0)
    assert (values["latency_max"], values["num_timed_out"]) == (60.0, 10.0)


def test_a_question_that_nobody_was_asked_has_no_time() -> None:
    # Putting its conversation in took too long.
    stalled = Failure("system", "DEADLINE_EXCEEDED", "no answer within 60s.")
    values = Latency().compute([row(latency=0.1), *[row(latency=0.0, failure=stalled)] * 9])
    assert (values["latency_mean"], values["latency_median"]) == (0.1, 0.1)
    assert values["num_timed_out"] == 9.0


def test_latency_is_that_of_rows_timed_alone_and_the_others_are_under_load() -> None:
    timed = [row(latency=0.1, alone=True, handler_seconds=0.09) for _ in range(3)]
    loaded = [row(latency=9.0, handler_seconds=8.0, calls_in_flight=32) for _ in range(50)]
    retried = row(latency=0.2, marks=("RETRIED_ALONE",))
    values = Latency().compute([*loaded, *timed, retried])
    assert (values["latency_median"], values["latency_p95"]) == (0.1, 0.1)
    assert (values["num_timed_alone"], values["num_retried_alone"]) == (3.0, 1.0)
    assert values["handler_median"] == pytest.approx(0.09)
    assert (values["latency_under_load_median"], values["handler_under_load_p95"]) == (9.0, 8.0)


def test_a_run_without_rows_timed_alone_has_the_latency_of_all() -> None:
    values = Latency().compute([row(latency=2.0), row(latency=2.0)])
    assert (values["latency_median"], values["num_timed_alone"]) == (2.0, 0.0)


def test_a_readers_timeout_is_not_the_systems_latency() -> None:
    late = Failure("reader", "DEADLINE_EXCEEDED", "no answer within 60s.")
    assert Latency().compute([row(latency=60.0, failure=late)])["latency_max"] is None


def test_waiting_and_scoring_are_told_apart_from_the_system() -> None:
    rows = [
        row(latency=1.0, queue_time=0.5, scoring_time=0.25, reader_time=2.0),
        row(latency=3.0, queue_time=1.5, scoring_time=0.75, reader_time=4.0),
    ]
    values = Latency().compute(rows)
    means = [values[f"{stage}_mean"] for stage in ("latency", "queue", "scoring", "reader")]
    assert means == [2.0, 1.0, 0.5, 3.0]
    assert (values["queue_p95"], values["scoring_max"]) == (1.5, 0.75)


def test_datasets_are_broken_down_by_tag_in_order_with_failures_as_zero() -> None:
    rows = [
        row(1.0, dataset="b"),
        row(0.0, dataset="b"),
        row(0.25, dataset="a"),
        row(0.5),
        row(None, dataset="c"),
        failed("system", dataset="a"),
        failed("evaluator", dataset="b"),
        failed("system", dataset="d"),
    ]
    values = values_of(PerDatasetBreakdown().compute(rows))
    assert [*values.items()] == [
        ("dataset:a", 0.125),
        ("dataset:b", 0.5),
        ("dataset:c", None),
        ("dataset:d", 0.0),
        ("dataset:unknown", 0.5),
    ]


@pytest.mark.parametrize("name", METRICS)
def test_without_rows_nothing_is_defined_but_counts(name: str) -> None:
    for key, value in METRICS[name]().compute([]).items():
        assert value == (0.0 if key.startswith("num_") else None), key


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_metrics_do_not_depend_on_the_order_of_rows(
    scores: list[float], shuffler: random.Random
) -> None:
    rows = [
        row(score, latency=score * 3, dataset=f"{score:.0f}", output_tokens=place, ordinal=place)
        for place, score in enumerate(scores)
    ]
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    metrics: list[Metric] = [metric() for metric in METRICS.values()]
    assert summarize(rows, metrics) == summarize(shuffled, metrics)
    mean_score = MeanScore().compute(rows)["mean_score"]
    assert mean_score == math.fsum(scores) / len(scores)


@pytest.mark.parametrize(
    ("points", "ranks"),
    [
        ({"a": (0.9, 10), "b": (0.9, 10), "c": (0.8, 20), "d": (0.7, 30)}, [1, 1, 2, 3]),
        ({"cheap": (0.5, 1), "good": (0.9, 9), "worse": (0.5, 9)}, [1, 1, 2]),
        ({"a": (0.9, 10), "unpriced": (0.99, None), "unscored": (None, 1)}, [1, None, None]),
        ({}, []),
    ],
    ids=["chain", "trade-off", "undefined-is-last", "none"],
)
def test_pareto_ranks_are_front_layers(
    points: Mapping[str, tuple[float | None, float | None]], ranks: list[int | None]
) -> None:
    summary = {
        system: {"mean_score": quality, "cost_of_pass": cost}
        for system, (quality, cost) in points.items()
    }
    assert [*ParetoRank.rank_systems(summary).values()] == ranks


def test_pareto_rank_joins_the_summary_of_all_systems() -> None:
    rows = [
        row(1.0, output_tokens=10),
        row(0.9, system="b", output_tokens=20),
        row(0.1, system="c", output_tokens=1),
    ]
    metrics: list[Metric] = [ParetoRank(), MeanScore(), CostOfPass()]
    summary = summarize(rows, metrics, ["a", "b", "c"])
    assert [values["pareto_rank"] for values in summary.values()] == [1.0, 2.0, None]


def test_a_summary_has_every_system_in_order_and_keys_in_the_order_of_metrics() -> None:
    summary = summarize(iter([row(1.0, system="b")]), [Latency(), PassRate()], ["z", "b"])
    assert [*summary] == ["z", "b"]
    assert [*summary["b"]] == [*Latency.keys, *PassRate.keys]
    assert summary["z"]["pass_rate"] is None


def test_a_metric_with_only_compute_is_given_all_rows_of_its_system() -> None:
    class Count:
        name = "count"

        def compute(self, rows: Sequence[EvalRow]) -> Mapping[str, float]:
            return {"count": float(len(rows))}

    summarizer = Summarizer([Count()])
    summarizer.extend([row(system="a"), row(system="b")])
    summarizer.extend([row(system="a")])
    assert summarizer.result().summary == {"a": {"count": 2.0}, "b": {"count": 1.0}}


# Keys that stand for others, as they read for the rows below.
_PLACEHOLDERS = {
    "<score>": "f1",
    "<tag>": "b",
    "<k>": "1",
    "<type>": "unknown",
    "<field>": "dataset",
    "<value>": "b",
    "<label>": "all",
    "<category>": "both",
}
_WHOLE = {"label": "all", "kind": "categories", "parts": {"b": "both"}, "bucket": "dataset"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "suites": {"suites": [_WHOLE, {**_WHOLE, "withheld": "a part lacks examples"}]}
}


_SCORED = {"likelihood-retention": {"answer_gain": 0.5, "answer_room": 1.0}}
"""What a metric reads beside the score that counts."""


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_gives_the_keys_it_announces(name: str) -> None:
    used = {"prompt_tokens": 3, "completion_tokens": 1}
    rows = [
        row(
            0.9,
            dataset="b",
            usage={"cost_usd": 1.0},
            repeat=1,
            groups={"dataset": "b"},
            cost_usd={"llm-judge": 0.25, "reader": 0.5, "system": 1.0},
            reader_usage=used,
            details={"llm-judge": {"usage": used}},
            scores={"f1": 0.9, **_SCORED.get(name, {})},
        )
    ]
    announced = METRICS[name].keys
    for mark, text in _PLACEHOLDERS.items():
        announced = [key.replace(mark, text) for key in announced]
    metric = METRICS[name](**_SETTINGS.get(name, {}))
    assert [*summarize(rows, [metric])["a"]] == [*announced]


def tries(passes: Sequence[int], ordinal: int) -> list[EvalRow]:
    return [row(float(p), ordinal=ordinal, repeat=n) for n, p in enumerate(passes)]


def test_pass_at_k_is_the_chance_over_every_choice_of_tries() -> None:
    rows = [*tries([1, 0, 0, 0], 0), *tries([0, 0, 0, 0], 1), *tries([1, 1, 0, 0], 2)]
    values = PassAtK().compute(rows)
    assert values["pass_at_1"] == pytest.approx((1 / 4 + 0 + 2 / 4) / 3)
    assert values["pass_at_2"] == pytest.approx((1 / 2 + 0 + 5 / 6) / 3)
    assert values["pass_at_4"] == pytest.approx(2 / 3)


def test_a_try_that_the_system_failed_did_not_pass_and_one_that_we_failed_was_none() -> None:
    rows = tries([1], 0)
    rows += [failed("system", ordinal=0, repeat=1), failed("daemon", ordinal=0, repeat=2)]
    assert values_of(PassAtK().compute(rows)) == {"pass_at_1": 0.5, "pass_at_2": 1.0}


def test_instructions_count_once_whatever_their_row() -> None:
    def scored(instructions: int, followed: int) -> EvalRow:
        counts = {"instructions": instructions}
        counts |= {"followed_strict": followed, "followed_loose": followed}
        return row(details={"ifeval": counts})

    values = IFEvalAccuracy().compute([scored(1, 1), scored(3, 0), row(1.0), failed("system")])
    assert values["ifeval_accuracy_strict"] == 0.25
    assert values["num_instructions"] == 4.0
