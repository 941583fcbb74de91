"""The two metrics of memory runs."""

from typing import Any

import pytest

from cbench_server.metrics import PerQAType, TokenEfficiency
from cbench_server.results import EvalRow, Failure


def row(number: int, score: float | None, kind: str | None = None, **more: Any) -> EvalRow:
    return EvalRow(
        system="s",
        example_id=number,
        scores={} if score is None else {"f1": score},
        primary_score="" if score is None else "f1",
        output_tokens=1,
        ordinal=number,
        metadata={} if kind is None else {"qa_type": kind},
        **{"input_tokens": 200, **more},
    )


def main(values: dict[str, float | None]) -> dict[str, float | None]:
    return {k: v for k, v in values.items() if not k.endswith(("_stderr", "_low", "_high"))}


def test_each_type_has_its_mean_over_the_rows_that_have_the_score() -> None:
    rows = [row(0, 1.0, "b"), row(1, 0.0, "a"), row(2, 0.5, "a"), row(3, None, "a"), row(4, 1.0)]
    assert main(PerQAType("f1").compute(rows)) == {
        "f1_a": 0.25,
        "f1_b": 1.0,
        "f1_unknown": 1.0,
        "f1_mean": 0.625,
    }


def test_a_question_on_which_the_system_failed_counts_as_zero_for_its_type() -> None:
    broken = row(1, None, "a", failure=Failure("system", "BROKEN", "it broke"))
    assert main(PerQAType("f1").compute([row(0, 1.0, "a"), broken])) == {
        "f1_a": 0.5,
        "f1_mean": 0.5,
    }


def test_without_a_score_field_each_rows_own_score_counts() -> None:
    rows = [row(0, 1.0, "a"), EvalRow("s", 1, {"abstention": 0.0}, 1, 1, {"qa_type": "a"})]
    rows[1].primary_score, rows[1].ordinal = "abstention", 1
    values = PerQAType().compute(rows)
    assert (values["score_a"], values["score_mean"]) == (0.5, 0.5)


def test_a_type_without_scores_has_no_mean_and_no_rows_have_no_types() -> None:
    assert main(PerQAType("f1").compute([row(0, None, "a")])) == {"f1_a": None, "f1_mean": None}
    assert PerQAType("f1").compute([]) == {}


def test_the_questions_of_a_conversation_count_as_one_cluster() -> None:
    alone = [row(n, float(n % 4 < 2), "a") for n in range(40)]
    grouped = [row(n, float(n % 4 < 2), "a", group=f"c{n // 2}") for n in range(40)]
    spread, wider = (PerQAType("f1").compute(rows)["f1_a_stderr"] for rows in (alone, grouped))
    assert spread is not None
    assert wider is not None
    assert wider > 1.2 * spread


def test_efficiency_is_the_score_less_for_every_token() -> None:
    rows = [
        row(0, 1.0, ingest_time=2.0, latency=0.5, stored_bytes=10),
        row(1, 0.5, ingest_time=4.0, latency=1.5, input_tokens=600),
    ]
    assert main(TokenEfficiency("f1").compute(rows)) == pytest.approx(
        {
            "token_efficiency": 0.75 * (100 / 400) ** 0.1,
            "token_efficiency_raw": 0.75 / 0.4,
            "mean_score": 0.75,
            "mean_input_tokens": 400.0,
            "mean_ingest_latency": 3.0,
            "mean_query_latency": 1.0,
            "mean_stored_bytes": 10.0,
            "ingest_per_turn_median": None,
            "ingest_per_turn_p95": None,
            "num_conversations_timed": 0.0,
        }
    )


def test_the_time_to_ingest_a_turn_counts_each_conversation_once_and_those_put_in_alone() -> None:
    def asked(number: int, talk: str, seconds: float, *marks: str) -> EvalRow:
        about = row(number, 1.0, group=talk, ingest_time=seconds)
        about.metadata["turn_count"] = 10
        about.marks = marks
        return about

    crowded = [asked(0, "a", 5.0), asked(1, "a", 5.0), asked(2, "b", 7.0)]
    values = TokenEfficiency("f1").compute(crowded)
    assert (values["ingest_per_turn_median"], values["ingest_per_turn_p95"]) == (0.5, 0.7)
    assert values["num_conversations_timed"] == 2.0
    values = TokenEfficiency("f1").compute([*crowded, asked(3, "c", 2.0, "INGESTED_ALONE")])
    assert (values["ingest_per_turn_median"], values["num_conversations_timed"]) == (0.2, 1.0)


def test_failed_rows_say_nothing_about_tokens_and_times() -> None:
    failed = row(1, None, input_tokens=9999, latency=60.0)
    failed.failure = Failure("system", "EXCEPTION", "no")
    values = TokenEfficiency("f1").compute([row(0, 1.0, latency=1.0), failed])
    assert (values["mean_input_tokens"], values["mean_query_latency"]) == (200.0, 1.0)


def test_nothing_is_none_and_no_tokens_are_no_efficiency() -> None:
    assert set(TokenEfficiency("f1").compute([]).values()) == {None, 0.0}
    values = TokenEfficiency("f1").compute([row(0, 1.0, input_tokens=0)])
    assert (values["token_efficiency"], values["token_efficiency_raw"]) == (0.0, None)
