"""Figures of suites: weights, intervals, categories and buckets."""

import math
from typing import Any

import numpy as np
import pytest

from cbench_server.metrics import Suites, summarize
from cbench_server.metrics.stats.combination import combined
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.suites import Suite
from cbench_server.results import EvalRow, Failure


def rows(dataset: str, scores: list[float], **values: Any) -> list[EvalRow]:
    return [
        EvalRow("a", f"{dataset}{n}", {"f1": score}, 0, 0, dataset=dataset, ordinal=n, **values)
        for n, score in enumerate(scores)
    ]


def figures(suite: Suite, given: list[EvalRow]) -> dict[str, float | None]:
    for place, row in enumerate(given):
        row.ordinal, row.primary_score = place, row.primary_score or "f1"
    return summarize(given, [Suites([suite.describe()])])["a"]


PARTS = {"x": "one", "y": "two", "z": "two"}


@pytest.mark.parametrize(
    ("kind", "figure"),
    [
        ("macro", (0.5 + 1.0 + 0.0) / 3),
        ("micro", (2 * 0.5 + 1 + 0) / 4),
        ("categories", (0.5 + (1.0 + 0.0) / 2) / 2),
    ],
)
def test_each_kind_weighs_parts_in_its_way(kind: Any, figure: float) -> None:
    given = [*rows("x", [0.0, 1.0]), *rows("y", [1.0]), *rows("z", [0.0])]
    assert figures(Suite("s", kind, PARTS), given)["suite:s"] == pytest.approx(figure)


def test_categories_and_buckets_have_figures_of_their_own() -> None:
    given = [
        *rows("x", [0.0, 1.0], groups={"length": "4000"}),
        *rows("y", [1.0], groups={"length": "4000"}),
        *rows("z", [0.0], groups={"length": "4000"}),
        *rows("x", [0.5], groups={"length": "16000"}),
    ]
    found = figures(Suite("s", "categories", PARTS, "length"), given)
    assert found["suite:s/one"] == pytest.approx(0.5)
    assert found["suite:s/two"] == pytest.approx(0.5)
    assert found["suite:s/length=4000"] == pytest.approx(0.5)
    # Two of its parts have no row of that length.
    assert found["suite:s/length=16000"] is None


def test_there_is_no_figure_without_a_part_or_with_rows_that_have_no_score() -> None:
    given = [*rows("x", [0.0, 1.0]), *rows("y", [1.0])]
    assert figures(Suite("s", "macro", PARTS), given)["suite:s"] is None
    unscored = [*given, EvalRow("a", "z0", {}, 0, 0, dataset="z", primary_score="f1")]
    found = figures(Suite("s", "macro", PARTS), unscored)
    assert (found["suite:s"], found["suite_unscored:s"]) == (None, 1.0)
    # What the system itself got wrong counts, at worst.
    failed = EvalRow("a", "z0", {}, 0, 0, dataset="z", primary_score="f1")
    failed.failure = Failure("system", "REASON", "message")
    assert figures(Suite("s", "macro", PARTS), [*given, failed])["suite:s"] == pytest.approx(0.5)
    limited = Suite("s", "macro", PARTS, withheld="at most 5 examples")
    found = figures(limited, [*given, failed])
    assert (found["suite:s"], found["suite_part:s"]) == (None, pytest.approx(0.5))
    assert "suite:s_ci_low" not in found


def test_each_part_counts_its_own_score() -> None:
    given = [*rows("x", [0.0, 1.0]), *rows("y", [1.0]), *rows("z", [0.0])]
    other = [EvalRow("a", "z1", {"em": 1.0}, 0, 0, dataset="z", primary_score="em")]
    found = figures(Suite("s", "macro", PARTS), given[:3] + other)
    assert found["suite:s"] == pytest.approx((0.5 + 1 + 1) / 3)


def test_a_sum_of_parts_is_as_uncertain_as_they_are_together() -> None:
    whole = combined([(0.5, Estimate(0.4, 0.03, 0.34, 0.46)), (0.5, Estimate(0.8, 0.04, 0.7, 0.9))])
    assert whole.value == pytest.approx(0.6)
    assert whole.stderr == pytest.approx(0.5 * math.hypot(0.03, 0.04))
    assert whole.low == pytest.approx(0.6 - 0.5 * math.hypot(0.06, 0.1))
    assert whole.high == pytest.approx(0.6 + 0.5 * math.hypot(0.06, 0.1))
    assert combined([(0.5, Estimate(0.4)), (0.5, Estimate(0.8, 0.1, 0.7, 0.9))]).low is None
    assert combined([(0.5, Estimate()), (0.5, Estimate(0.8))]) == Estimate()


def test_its_interval_holds_the_true_figure_as_often_as_it_says() -> None:
    draw = np.random.default_rng(5)
    shares = {"x": 0.9, "y": 0.5, "z": 0.05}
    truth, held, tries = sum(shares.values()) / 3, 0, 200
    for _ in range(tries):
        given = [
            row
            for label, share in shares.items()
            for row in rows(label, (draw.random(30) < share).astype(float).tolist())
        ]
        found = figures(Suite("s", "macro", PARTS), given)
        low, high = found["suite:s_ci_low"], found["suite:s_ci_high"]
        assert low is not None
        assert high is not None
        held += low <= truth <= high
    assert 0.91 <= held / tries <= 0.99
