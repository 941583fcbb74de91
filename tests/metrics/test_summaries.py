"""Summaries: what varies together, what is kept of a row, and when numpy is loaded."""

import math
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.metrics import (
    METRICS,
    MeanScore,
    PassAtK,
    PassRate,
    Summarizer,
    TokenEfficiency,
    summarize,
)
from cbench_server.metrics.stats.columns import Columns
from cbench_server.results import EvalRow


def row(score: float, ordinal: int, **values: Any) -> EvalRow:
    return EvalRow(
        "a", ordinal, {"f1": score}, 10, 5, ordinal=ordinal, primary_score="f1", **values
    )


def test_repeats_of_an_example_are_one_witness() -> None:
    scores = [random.Random(1).random() for _ in range(30)]
    once = MeanScore().compute([row(score, place) for place, score in enumerate(scores)])
    thrice = MeanScore().compute(
        [row(score, place, repeat=r) for place, score in enumerate(scores) for r in range(3)]
    )
    assert thrice["mean_score_stderr"] == pytest.approx(once["mean_score_stderr"])
    assert thrice["mean_score_ci_low"] == pytest.approx(once["mean_score_ci_low"])


def test_groups_of_different_datasets_are_different_groups() -> None:
    def errors(**values: Any) -> float:
        rows = [
            row(float(place % 7), place, group=str(place % 4), dataset="ab"[place % 2], **values)
            for place in range(40)
        ]
        found = MeanScore().compute(rows)["mean_score_stderr"]
        assert found is not None
        return found

    apart = [
        row(float(place % 7), place, group=f"{place % 4}{'ab'[place % 2]}") for place in range(40)
    ]
    assert errors() == pytest.approx(MeanScore().compute(apart)["mean_score_stderr"])


def test_pass_at_k_respects_groups() -> None:
    rows = [
        row(float(place % 10 < 5), place, group=str(place // 10), repeat=repeat)
        for place in range(100)
        for repeat in range(2)
    ]
    values = PassAtK().compute(rows)
    # Every group has the same share, so that nothing varies between them.
    assert values["pass_at_1"] == 0.5
    assert values["pass_at_1_stderr"] == pytest.approx(0.0)


def test_a_metric_with_a_score_field_reads_that_score_beside_others() -> None:
    rows = [
        EvalRow("a", place, {"f1": 0.5, "em": float(place % 2)}, 1, 1, primary_score="f1")
        for place in range(4)
    ]
    both = summarize(rows, [MeanScore(), METRICS["pass-rate"](score_field="em")])
    assert (both["a"]["mean_score"], both["a"]["pass_rate"]) == (0.5, 0.5)


def test_a_row_costs_less_than_a_hundred_bytes() -> None:
    columns = Columns()
    columns.extend([row(0.5, place, latency=0.1) for place in range(1000)])
    assert columns.retention is None, "only a system that never responds needs it"
    arrays = [each for each in vars(columns).values() if hasattr(each, "itemsize")]
    for column in columns.scores.values():
        arrays += (column.values, column.outcomes)
    arrays.append(columns.score_names.codes)
    assert sum(each.itemsize * len(each) for each in arrays) <= 100 * 1000


def test_metrics_are_known_without_loading_numpy() -> None:
    program = (
        "import sys, cbench_server.daemon.assembly, cbench_server.comparison; "
        "from cbench_server.metrics import METRICS; "
        "assert METRICS and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


class Gives:
    """A user's metric that gives whatever it is told to."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self._value = value

    def compute(self, rows: Sequence[EvalRow]) -> dict[str, Any]:
        if isinstance(self._value, Exception):
            raise self._value
        return {f"{self.name}-value": self._value}


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, 1.0), (np.float32(0.5), 0.5), (np.int64(3), 3.0), (np.bool_(True), 1.0), (None, None)],
)
def test_values_of_a_metric_become_floats(value: Any, expected: float | None) -> None:
    summarizer = Summarizer([Gives("odd", value), MeanScore()])
    summarizer.extend([row(1.0, 0)])
    result = summarizer.result()
    found = result.summary["a"]["odd-value"]
    assert found == expected
    assert found is None or type(found) is float
    assert result.failures == {}


@pytest.mark.parametrize(
    "value", ["text", [1.0], math.nan, math.inf, np.float64("nan"), ValueError("no")]
)
def test_a_metric_that_gives_no_number_costs_only_itself(value: Any) -> None:
    summarizer = Summarizer([Gives("odd", value), MeanScore()])
    summarizer.extend([row(1.0, 0), row(0.0, 1)])
    result = summarizer.result()
    assert result.summary["a"].get("odd-value") is None
    assert result.summary["a"]["mean_score"] == 0.5
    assert [*result.failures] == ["odd"]


def test_no_metric_overwrites_the_values_of_another() -> None:
    rows = [
        EvalRow("a", n, {"f1": 1.0, "em": em}, 1, 1, ordinal=n, primary_score="f1")
        for n, em in enumerate((0.0, 0.5))
    ]
    values = summarize(rows, [MeanScore(), MeanScore("em"), TokenEfficiency("em")])["a"]
    assert (values["mean_score"], values["mean_score:em"]) == (1.0, 0.25)
    assert values["mean_score:em_ci_low"] is not None


def test_huge_finite_scores_have_a_mean() -> None:
    values = MeanScore().compute([row(1.7e308, 0), row(1.7e308, 1)])
    assert values["mean_score"] == pytest.approx(1.7e308)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.5])), min_size=1))
def test_names_of_values_do_not_depend_on_the_rows(scores: list[tuple[float, float]]) -> None:
    """Also where a later score has the same mean as the first."""
    rows = [
        EvalRow("s", n, {"f1": f1, "em": em}, 1, 1, ordinal=n, primary_score="f1")
        for n, (f1, em) in enumerate(scores)
    ]
    metrics = [MeanScore("f1"), MeanScore("em"), PassRate(), PassRate(score_field="em")]
    values = summarize(rows, metrics)
    assert values["s"]["mean_score"] == pytest.approx(sum(f1 for f1, _ in scores) / len(scores))
    assert values["s"]["mean_score:em"] == pytest.approx(sum(em for _, em in scores) / len(scores))
    assert {"num_scored:em", "mean_score_with_failures:em", "pass_rate", "pass_rate:em"} <= {
        *values["s"]
    }


def test_everything_that_a_metric_gave_wrongly_is_named() -> None:
    class Careless:
        name = "careless"

        def compute(self, rows: Any) -> dict[str, Any]:
            return {"text": "x", "list": [1], "nan": math.nan, "good": True}

    summarizer = Summarizer([Careless()], ["a", "b"])
    found = summarizer.result()
    assert found.summary["a"] == {"nan": None, "good": 1.0}
    why = found.failures["careless"]
    assert all(why.count(f'as "{key}"') == 1 for key in ("text", "list", "nan"))
