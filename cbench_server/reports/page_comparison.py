"""Comparison on the page, as plain data with every number formatted."""

from typing import Any

from cbench_server.comparison import Axis, Comparison, Estimate, FrontPoint, PairedDifference
from cbench_server.texts import numbers

_TITLES: dict[Axis, str] = {
    "context_tokens": "Context tokens per example",
    "latency": "Seconds per example",
    "cost_usd": "US dollars per example",
}
_SHORT: dict[Axis, str] = {
    "context_tokens": "context tokens",
    "latency": "time",
    "cost_usd": "money",
}


def page_comparison(comparison: Comparison) -> dict[str, Any]:
    """Give the pairs and the fronts."""
    return {
        "notes": list(comparison.notes),
        "pairs": [_pair(pair) for pair in comparison.pairs],
        "groups": [
            {"field": each.field, "group": each.group, **_difference(each.pair)}
            for each in comparison.groups
        ],
        "fronts": [
            {
                "axis": front.axis,
                "title": _TITLES[front.axis],
                "examples": front.examples,
                "points": [_point(point, front.axis) for point in front.points],
            }
            for front in comparison.fronts
        ],
    }


def _difference(pair: PairedDifference) -> dict[str, Any]:
    low, high = pair.difference.low, pair.difference.high
    interval = ""
    if low is not None and high is not None:
        interval = f"{_points(low, pair)} to {_points(high, pair)}"
    return {
        "a": pair.a,
        "b": pair.b,
        "claimed": pair.is_claimed,
        "examples": pair.examples,
        "difference": _points(pair.difference.value, pair),
        "interval": interval,
        "value": pair.difference.value,
        "low": low,
        "high": high,
        "p": _probability(pair.p_adjusted),
    }


def _pair(pair: PairedDifference) -> dict[str, Any]:
    return {
        **_difference(pair),
        "score": pair.score,
        "sentence": pair.sentence,
        "unit": "points" if pair.in_points else "",
        "test": pair.test,
        "tally": [pair.wins, pair.ties, pair.losses],
        "detectable": _points(pair.minimum_detectable, pair).lstrip("+"),
        "costs": [
            f"{numbers.change(cost.change.value)} {_SHORT[cost.axis]}" for cost in pair.costs
        ],
        "flipped": [pair.flipped_to_a, pair.flipped_to_b],
        "flips": [
            {
                "dataset": flip.dataset,
                "id": str(flip.example_id),
                "a": numbers.score(flip.score_a),
                "b": numbers.score(flip.score_b),
                "to_a": flip.score_a > flip.score_b,
            }
            for flip in pair.flips
        ],
    }


def _points(value: float | None, pair: PairedDifference) -> str:
    if value is None or numbers.is_missing(value):
        return numbers.MISSING
    return f"{value * 100:+.1f}" if pair.in_points else f"{value:+.3f}"


def _probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _point(point: FrontPoint, axis: Axis) -> dict[str, Any]:
    return {
        "system": point.system,
        "quality": _estimate(point.quality, numbers.score),
        "cost": _estimate(point.cost, lambda value: _cost(value, axis)),
        "layer": point.layer,
        "probability": numbers.share(point.probability),
    }


def _estimate(estimate: Estimate, show: Any) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "text": show(estimate.value),
    }


def _cost(value: float | None, axis: Axis) -> str:
    if axis == "latency":
        return numbers.seconds(value)
    if axis == "context_tokens":
        return numbers.count(value)
    return numbers.MISSING if value is None or numbers.is_missing(value) else f"${value:.4f}"
