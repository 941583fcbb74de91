"""Comparisons on suites: each part weighs as in the figure, and claims are as rare as they say."""

import numpy as np
import pytest

from cbench_server.comparison import compare
from cbench_server.comparison.policies import parse_policy
from cbench_server.comparison.quantities import Measures
from cbench_server.comparison.suites import weighted_mean
from cbench_server.errors import InvalidInput
from cbench_server.metrics.suites import Suite
from cbench_server.results import EvalRow

SIZES = {"x": 60, "y": 20, "z": 10}
SUITE = Suite("s:all", "macro", dict.fromkeys(SIZES, ""))


def rows(system: str, scores: dict[str, list[float]]) -> list[EvalRow]:
    return [
        EvalRow(system, n, {"f1": score}, 0, 0, dataset=label, primary_score="f1", ordinal=n)
        for label, listed in scores.items()
        for n, score in enumerate(listed)
    ]


def test_parts_weigh_as_in_the_figure_and_fronts_agree() -> None:
    a = {"x": [1.0] * 60, "y": [0.0] * 20, "z": [0.0] * 10}
    b = {"x": [0.0] * 60, "y": [1.0] * 20, "z": [1.0] * 10}
    sides = {"a": rows("a", a), "b": rows("b", b)}
    for side in sides.values():
        for row in side:
            row.context_tokens_in, row.context_tokens_out = 10, 5
    found = compare(sides, suites=[SUITE])
    (pair,) = found.pairs
    assert (pair.mean_a, pair.mean_b) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert pair.difference.value == pytest.approx(-1 / 3)
    assert pair.score == "s:all"
    quality = {point.system: point.quality.value for point in found.fronts[0].points}
    assert quality == {"a": pytest.approx(1 / 3), "b": pytest.approx(2 / 3)}
    by_rows = compare(sides).pairs[0]
    assert by_rows.difference.value == pytest.approx(30 / 90)
    assert compare(sides, suites=[SUITE], score_field="f1").pairs[0].score == "f1"
    some = {name: [row for row in side if row.dataset != "z"] for name, side in sides.items()}
    assert compare(some, suites=[SUITE]).pairs[0].score == "f1"


def test_an_interval_holds_the_true_difference_as_often_as_it_says() -> None:
    draw = np.random.default_rng(11)
    shift = np.repeat([0.1, 0.0, -0.1], [*SIZES.values()])
    spread = np.repeat([0.3, 0.6, 0.9], [*SIZES.values()])
    parts = np.repeat([0, 1, 2], [*SIZES.values()])
    weights = np.repeat([1 / 3 / size for size in SIZES.values()], [*SIZES.values()])
    held, tries = 0, 1000
    for _ in range(tries):
        found = weighted_mean(draw.normal(shift, spread), weights, parts, None)
        assert found.low is not None
        assert found.high is not None
        # The shifts cancel each other out in the mean of the parts.
        held += found.low <= 0.0 <= found.high
    assert 0.93 <= held / tries <= 0.97


def test_a_gate_is_about_the_figure_and_refuses_where_there_is_none() -> None:
    given = rows("a", {"x": [1.0] * 60, "y": [0.0] * 20, "z": [0.0] * 10})
    measured = Measures(given, suite=SUITE).value(parse_policy("score at least 0.5"))
    assert measured.estimate.value == pytest.approx(1 / 3)
    part = [row for row in given if row.dataset != "z"]
    with pytest.raises(InvalidInput, match="s:all has no figure"):
        Measures(part, suite=SUITE).value(parse_policy("s:all at least 0.5"))


def test_one_example_of_a_part_does_not_make_the_rest_certain() -> None:
    a = rows("a", {"x": [1.0, 0.0, 1.0, 1.0], "y": [1.0], "z": [1.0]})
    b = rows("b", {"x": [0.0, 0.0, 1.0, 0.0], "y": [0.0], "z": [0.0]})
    (pair,) = compare({"a": a, "b": b}, suites=[SUITE]).pairs
    assert pair.difference.low is not None
    assert pair.difference.low < pair.difference.value - 0.3
