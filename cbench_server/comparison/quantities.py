"""Quantities that policies are about, measured on a run or against a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cbench_server.comparison.comparison import compare
from cbench_server.comparison.policies import Policy
from cbench_server.comparison.values import Axis
from cbench_server.errors import InvalidInput
from cbench_server.metrics.geometric_mean import KEY as GEOMETRIC
from cbench_server.metrics.stats.estimate import Estimate, estimate_keys
from cbench_server.metrics.suites import Suite, Suites
from cbench_server.results import EvalRow
from cbench_server.texts import numbers
from cbench_server.types import ScoreInfo

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_PERCENTILES = {"p50 latency": 50, "p95 latency": 95, "p99 latency": 99}
_AXES: dict[str, Axis] = {
    "context tokens": "context_tokens",
    "mean latency": "latency",
    "cost": "cost_usd",
}
_OTHERS = ("pass rate", "failures", "context compression")


@dataclass(frozen=True)
class Quantity:
    """A number with its interval, and what it is about."""

    estimate: Estimate
    words: str
    count: str
    in_points: bool = True
    """Whether a hundredth of it is a point."""
    worst_case: Estimate | None = None
    """The same with rows that could not be scored at their worst, where there are any."""
    best: float | None = None
    """The best value there can be, which no interval of a finite number of rows can reach."""
    lower_is_better: bool = False
    """Whether it is a score of which less is better."""


def rows_needed(metric: str) -> int | None:
    """Return on how many rows the interval of a percentile has two ends; None for others."""
    from cbench_server.metrics.stats.intervals import least_for_percentile

    return least_for_percentile(_PERCENTILES[metric]) if metric in _PERCENTILES else None


_KINDS = {"context compression": ", as reported,", "score": f", the {GEOMETRIC},"}


class Measures:
    """Measures the rows of one system, and how they differ from those of a baseline."""

    def __init__(
        self,
        rows: Sequence[EvalRow],
        baseline: Sequence[EvalRow] | None = None,
        threshold: float = 0.7,
        scores: Mapping[str, ScoreInfo] | None = None,
        *,
        estimates: Mapping[str, Estimate] | None = None,
        baseline_estimates: Mapping[str, Estimate] | None = None,
        suite: Suite | None = None,
    ) -> None:
        """`scores` is what is known of the scores, by name.

        Estimates are quantities that the rows alone do not tell, such as `labelled rate`.
        Of a suite, its figure is the `score`, and goes by its name as well.
        """
        self._estimates = estimates or {}
        self._baseline_estimates = baseline_estimates or {}
        self._rows = rows
        self._baseline = baseline
        self._threshold = threshold
        self._scores = scores or {}
        self._suite = suite
        self._suites = (suite,) if suite else ()
        self._score_names = ("score", suite.label) if suite else ("score",)

    def value(self, policy: Policy) -> Quantity:
        """Measure a quantity on the rows."""
        if policy.metric in self._estimates:
            estimate = self._estimates[policy.metric]
            if estimate.value is None:
                raise InvalidInput(f"{policy.metric} is unknown: rows have no score to make it of")
            # Context where the rows tell it, and scores that are means of rows, are no estimates.
            said = _KINDS.get(policy.metric, "")
            return Quantity(estimate, f"{policy.metric}{said}", _count(len(self._rows)))
        measured = self._measure(policy, self._rows)
        return Quantity(
            measured.estimate,
            policy.metric,
            measured.count,
            worst_case=measured.worst_case,
            best=measured.best,
        )

    def change(self, policy: Policy) -> Quantity:
        """Measure how a quantity differs from the baseline's, or changes relative to it."""
        if self._baseline is None:
            raise InvalidInput(
                f'the policy "{policy.text}" needs a baseline: name one with --baseline'
            )
        words = f"{policy.metric} against the baseline"
        if policy.metric == "score" and "score" in self._estimates:
            words = f"score, row by row and no {GEOMETRIC}, against the baseline"
        if policy.metric in self._estimates and policy.metric in self._baseline_estimates:
            count = f"{_count(len(self._rows))} against {_count(len(self._baseline))}"
            ours, theirs = (
                known[policy.metric] for known in (self._estimates, self._baseline_estimates)
            )
            return Quantity(_apart(policy, ours, theirs), words, count)
        if policy.metric in _PERCENTILES or policy.metric in _OTHERS:
            count = f"{_count(len(self._rows))} against {_count(len(self._baseline))}"
            return Quantity(self._far_ends(policy, self._baseline), words, count)
        measured = [self._measure(policy, side) for side in (self._rows, self._baseline)]
        field = None if policy.metric in (*_AXES, *self._score_names) else policy.metric
        sides = {"the run": self._rows, "the baseline": self._baseline}
        settings: dict[str, Any] = {"scores": self._scores, "suites": self._suites}
        pair = compare(sides, score_field=field, **settings).pairs[0]
        strict = pair
        if any(each.has_unscored for each in measured):
            strict = compare(sides, score_field=field, unscored_at_worst=True, **settings).pairs[0]
        has_unscored = strict.examples > pair.examples
        of = f" of {strict.examples:,}" if has_unscored else ""
        count = f"{pair.examples:,}{of} pairs"
        if policy.metric in _AXES:
            cost = next(each for each in pair.costs if each.axis == _AXES[policy.metric])
            change = cost.change if policy.is_relative else _scaled(cost.change, cost.mean_b)
            return Quantity(change, words, count)
        if pair.in_points and policy.unit == "" and policy.value >= 1:
            raise InvalidInput(
                f'the policy "{policy.text}" allows or demands {policy.value * 100:g} points, and '
                f'{policy.metric} goes from 0 to 1. Write "{policy.value:g} points" or a share.'
            )
        difference, worst_case = pair.difference, strict.difference
        if policy.is_relative:
            if not pair.mean_b:
                raise _no_share(policy, '"points"')
            difference = _scaled(difference, 1 / pair.mean_b)
            worst_case = _scaled(worst_case, 1 / pair.mean_b)
        return Quantity(
            difference,
            words,
            count,
            pair.in_points,
            worst_case if has_unscored else None,
            lower_is_better=not pair.higher_is_better,
        )

    def _far_ends(self, policy: Policy, baseline: Sequence[EvalRow]) -> Estimate:
        """Compare the far ends of two intervals, which is too wide rather than too narrow."""
        ours = self._measure(policy, self._rows).estimate
        return _apart(policy, ours, self._measure(policy, baseline).estimate)

    def _measure(self, policy: Policy, rows: Sequence[EvalRow]) -> "_Measured":
        if self._suite is not None and policy.metric in self._score_names:
            return _measure_suite(self._suite, rows, self._scores)
        measured = _measure(policy.metric, rows, self._threshold, self._scores)
        if measured.estimate.value is None:
            raise InvalidInput(_unknown(policy, rows))
        return measured


@dataclass(frozen=True)
class _Measured:
    estimate: Estimate
    count: str
    has_unscored: bool
    worst_case: Estimate | None = None
    best: float | None = None


def _apart(policy: Policy, ours: Estimate, theirs: Estimate) -> Estimate:
    def apart(one: float | None, other: float | None) -> float | None:
        if one is None or other is None or (policy.is_relative and not other):
            return None
        return one / other - 1 if policy.is_relative else one - other

    value = apart(ours.value, theirs.value)
    if value is None:
        raise _no_share(policy, "a difference")
    low, high = apart(ours.low, theirs.high), apart(ours.high, theirs.low)
    return Estimate(value, None, low, high)


def _no_share(policy: Policy, instead: str) -> InvalidInput:
    return InvalidInput(
        f"the baseline's {policy.metric} is 0, so there can be no share of it. "
        f'Write {instead} instead of "%".'
    )


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    parts = (estimate.value, estimate.stderr, estimate.low, estimate.high)
    return Estimate(*(None if part is None else part * factor for part in parts))


def _measure(
    metric: str, rows: Sequence[EvalRow], threshold: float, infos: Mapping[str, ScoreInfo]
) -> _Measured:
    from cbench_server.metrics.stats.columns import Columns
    from cbench_server.metrics.stats.frame import Frame

    named = _PERCENTILES.keys() | _AXES.keys() | {*_OTHERS, "score"}
    field = None if metric in named else metric
    columns = Columns([field])
    columns.extend(rows)
    frame = Frame(columns, infos)
    other = _measure_other(metric, frame)
    scored = frame.scored(field)
    has_unscored = bool(scored.is_unscored.any())
    if other is not None:
        best = 0.0 if metric == "failures" else None
        is_timed = metric in _PERCENTILES or metric == "mean latency"
        count = _count_timed(frame) if is_timed else _count(len(rows))
        return _Measured(other, count, has_unscored, best=best)
    is_judged = scored.is_scored | scored.is_failed
    judged = int(is_judged.sum())
    count = _count(judged) if judged == len(rows) else f"{judged:,} of {_count(len(rows))}"
    if not scored.is_scored.any():
        return _Measured(Estimate(), count, has_unscored)
    if metric == "pass rate":
        passed = scored.passed(threshold)
        estimate = frame.mean(passed, is_judged)
        worst_case = frame.mean(passed, is_judged | scored.is_unscored)
        best = 1.0
    else:
        best = None
        if scored.in_unit:
            best = 0.0 if scored.lower_is_better.all() else 1.0
        estimate = frame.mean(*scored.with_failures(), in_unit=scored.in_unit)
        worst_case = frame.mean(*scored.worst_case(), in_unit=scored.in_unit)
    return _Measured(estimate, count, has_unscored, worst_case if has_unscored else None, best)


def _measure_suite(
    suite: Suite, rows: Sequence[EvalRow], infos: Mapping[str, ScoreInfo]
) -> _Measured:
    """Measure the figure of a suite; raises InvalidInput where there is none."""
    from cbench_server.metrics.summary import Summarizer

    summarizer = Summarizer([Suites([suite.describe()])], scores=infos)
    summarizer.extend(rows)
    values = next(iter(summarizer.result().summary.values()), {})
    if values.get(suite.key) is None:
        why = suite.withheld or "a part of it has no rows, or rows without a score"
        raise InvalidInput(f"{suite.label} has no figure: {why}")
    estimate = Estimate(*(values.get(key) for key in estimate_keys(suite.key)))
    return _Measured(estimate, _count(len(rows)), has_unscored=False, best=1.0)


def _measure_other(metric: str, frame: "Frame") -> Estimate | None:
    """Measure what is not about a score; None if it is."""
    if metric in _PERCENTILES:
        return frame.percentiles(frame.latency, frame.timed, _PERCENTILES[metric])[0]
    if metric == "mean latency":
        return frame.mean(frame.latency, frame.timed).never_negative()
    if metric == "failures":
        return frame.mean(frame.failed_by_system, frame.everything)
    if metric == "context compression":
        return frame.ratio(frame.context_out, frame.context_in, frame.has_context, saved=True)
    if metric == "context tokens":
        return frame.mean(frame.context_out, frame.has_context).never_negative()
    if metric == "cost":
        return frame.mean(*frame.cost_usd()).never_negative()
    return None


def _unknown(policy: Policy, rows: Sequence[EvalRow]) -> str:
    if policy.metric in ("context compression", "context tokens") and rows:
        return (
            f'the policy "{policy.text}" cannot be checked: no row tells what the system left of '
            "the context. A system that answers by itself tells it by returning the context it "
            "read; for a proxy, run it with --direct URL, the same model without the proxy."
        )
    if policy.metric.endswith("latency") and all(not row.latency for row in rows):
        return (
            f'the policy "{policy.text}" cannot be checked: no row tells what a call took, since '
            "none was made, as for predictions and controls."
        )
    scores = sorted({name for row in rows for name in row.scores})
    others = [*scores, "score", *_OTHERS, *_PERCENTILES, *_AXES]
    known = ", ".join(each for each in others if each != policy.metric)
    return (
        f'no row has "{policy.metric}", which the policy "{policy.text}" is about. Known: {known}'
    )


def _count_timed(frame: "Frame") -> str:
    counted = _count(int(frame.timed.sum()))
    return f"{counted} timed alone" if frame.is_alone.any() else counted


def _count(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def write_value(value: float | None, policy: Policy) -> str:
    """Write a value in the unit of its quantity."""
    if value is None:
        return numbers.MISSING
    if policy.metric.endswith("latency"):
        return numbers.seconds(value)
    if policy.metric in ("failures", "pass rate", "context compression"):
        return numbers.share(value)
    if policy.metric == "context tokens":
        return f"{value:,.1f}"
    return numbers.usd(value) if policy.metric == "cost" else numbers.score(value)


def write_change(value: float | None, policy: Policy, *, in_points: bool = True) -> str:
    """Write a difference from the baseline, or a change relative to it."""
    if value is None:
        return numbers.MISSING
    if policy.is_relative:
        return numbers.change(value)
    if policy.metric.endswith("latency"):
        return ("-" if value < 0 else "+") + numbers.seconds(abs(value))
    if policy.metric in ("context tokens", "cost") or not in_points:
        return f"{value:+.4g}"
    return f"{value * 100:+.1f} points"
