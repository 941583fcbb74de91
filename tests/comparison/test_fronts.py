"""Fronts: layers as measured, and how sure a place on the front is."""

import numpy as np
import pytest

from cbench_server.comparison import Front, compare
from cbench_server.results import EvalRow
from tests.comparison.conftest import MakeRows


def front(axis: str, **sides: list[EvalRow]) -> Front:
    return next(front for front in compare(sides).fronts if front.axis == axis)


def test_a_system_that_is_worse_and_longer_is_behind(make_rows: MakeRows) -> None:
    found = front(
        "context_tokens",
        good=make_rows("good", [0.9, 0.8] * 20, context_tokens_out=100),
        short=make_rows("short", [0.5, 0.6] * 20, context_tokens_out=10),
        poor=make_rows("poor", [0.4, 0.5] * 20, context_tokens_out=90),
    )
    layers = {point.system: (point.layer, point.probability) for point in found.points}
    assert layers == {"good": (1, 1.0), "short": (1, 1.0), "poor": (2, 0.0)}
    assert found.points[0].cost.value == 100.0


def test_the_interval_of_a_cost_does_not_reach_below_zero(make_rows: MakeRows) -> None:
    slow = [0.001, 0.001, 0.001, 1.0]
    found = front(
        "latency",
        a=make_rows("a", [0.5] * 4, latency=slow),
        b=make_rows("b", [0.6] * 4, latency=slow),
    )
    assert [point.cost.low for point in found.points] == [0.0, 0.0]


def test_the_interval_of_a_score_stays_between_0_and_1(make_rows: MakeRows) -> None:
    found = front(
        "context_tokens",
        a=make_rows("a", [0.0, 0.0, 0.0, 0.4], context_tokens_out=9),
        b=make_rows("b", [1.0, 1.0, 1.0, 0.6], context_tokens_out=10),
    )
    ends = {point.system: (point.quality.low, point.quality.high) for point in found.points}
    assert ends["a"][0] == 0.0
    assert ends["b"][1] == 1.0
    # Scores of another range keep theirs.
    free = front(
        "context_tokens",
        a=make_rows("a", [0.0, 0.0, 0.0, -4.0], context_tokens_out=9),
        b=make_rows("b", [3.0, 0.0, 0.0, 4.0], context_tokens_out=10),
    )
    assert min(point.quality.low or 0.0 for point in free.points) < -1.0


def test_equals_in_truth_are_on_the_front_about_half_the_time(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(1)
    a, b = draw.random(400), draw.random(400)
    found = front(
        "context_tokens",
        a=make_rows("a", a - a.mean() + 0.5, context_tokens_out=50),
        b=make_rows("b", b - b.mean() + 0.5, context_tokens_out=50),
    )
    for point in found.points:
        assert point.probability == pytest.approx(0.5, abs=0.1)


def test_time_and_money_have_fronts_of_their_own(make_rows: MakeRows) -> None:
    dear, cheap = {"cost_usd": 0.5}, {"cost_usd": 0.25}
    sides = {
        "a": make_rows("a", [0.9, 0.8], latency=1.0, usage=dear),
        "b": make_rows("b", [0.9, 0.8], latency=2.0, usage=cheap),
    }
    found = {front.axis: [p.layer for p in front.points] for front in compare(sides).fronts}
    assert found == {"latency": [1, 2], "cost_usd": [2, 1]}


def test_a_system_without_a_price_is_left_off_that_front(make_rows: MakeRows) -> None:
    priced = {"cost_usd": 0.5}
    sides = {
        "a": make_rows("a", [0.9], usage=priced),
        "b": make_rows("b", [0.9], usage=priced),
        "free": make_rows("free", [0.9]),
    }
    money = next(each for each in compare(sides).fronts if each.axis == "cost_usd")
    assert [point.system for point in money.points] == ["a", "b"]
