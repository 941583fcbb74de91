"""Gates, which check whether a run meets policies.

The end of the 95 % interval that is worse for the run decides. What cannot be
shown with this many examples does not pass. Where nothing but the best possible
value will do, the measured value decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cbench_server.comparison.policies import Policy
from cbench_server.comparison.quantities import (
    Measures,
    Quantity,
    rows_needed,
    write_change,
    write_value,
)
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.texts.junit_xml import Case, Outcome, document

Verdict = Literal["passed", "failed", "not shown", "not measured"]


_OUTCOMES: dict[Verdict, Outcome] = {"not measured": "error"}


@dataclass(frozen=True)
class Check:
    """A policy and its verdict."""

    policy: Policy
    verdict: Verdict
    measured: Estimate
    """The quantity, or for policies about a baseline its difference or relative change."""
    explanation: str
    """What was measured, and which number decided."""

    @property
    def passed(self) -> bool:
        """Whether the policy holds."""
        return self.verdict == "passed"


def check(policy: Policy, measures: Measures) -> Check:
    """Check a policy; raises InvalidInput for a quantity that the rows do not have."""
    quantity = measures.change(policy) if policy.needs_baseline else measures.value(policy)
    wants_high, limit = _demand(policy, quantity)
    estimate = quantity.estimate
    assert estimate.value is not None
    if quantity.best is not None and limit == quantity.best:
        # Nothing but the best will do: "failures at most 0" means that none was seen.
        policy = replace(policy, as_measured=True)

    def is_kept_by(value: float) -> bool:
        return value >= limit if wants_high else value <= limit

    def verdict_on(measured: Estimate) -> Verdict:
        worse, better = measured.low, measured.high
        if not wants_high:
            worse, better = better, worse
        if policy.as_measured:
            worse = better = measured.value
        if worse is not None and is_kept_by(worse):
            return "passed"
        return "not shown" if better is None or is_kept_by(better) else "failed"

    verdict = verdict_on(estimate)
    text = _explain(policy, quantity, limit, wants_high)
    worst_case = quantity.worst_case
    if verdict == "passed" and worst_case is not None and verdict_on(worst_case) != "passed":
        # What could not be scored may not help a run through.
        explained = _explain(policy, replace(quantity, estimate=worst_case), limit, wants_high)
        text += f". With the rows that could not be scored at their worst: {explained}"
        return Check(policy, "failed", worst_case, f"{text}.")
    if verdict == "not shown":
        text += f". {_few(policy, estimate)}"
        if is_kept_by(estimate.value):
            demand = policy.text.rstrip(".")
            text += f', or let the value itself decide: "{demand} as measured"'
    return Check(policy, verdict, estimate, f"{text}.")


def _few(policy: Policy, estimate: Estimate) -> str:
    """Say what it takes to tell."""
    needed = rows_needed(policy.metric)
    if needed and None in (estimate.low, estimate.high):
        return (
            f"So few rows leave the interval open; it takes {needed:,}: run with --timed-rows "
            f"{needed} on as many examples"
        )
    return "Too few examples to tell: take more"


def not_measured(policy: Policy, why: str) -> Check:
    """Return what becomes of a policy about something that the rows do not have."""
    return Check(policy, "not measured", Estimate(), f"{why.rstrip('.')}.")


def _demand(policy: Policy, quantity: Quantity) -> tuple[bool, float]:
    """Return whether the quantity must be high, and what it must reach or keep below."""
    if policy.kind == "at least":
        return True, policy.value
    if policy.kind == "at most":
        return False, policy.value
    margin = policy.value if policy.kind == "better" else -policy.value
    is_cost = policy.lower_is_better or quantity.lower_is_better
    return (False, -margin) if is_cost else (True, margin)


def _explain(policy: Policy, quantity: Quantity, limit: float, wants_high: bool) -> str:
    """Say what was measured, and which number decides."""
    estimate = quantity.estimate

    def write(value: float | None) -> str:
        if policy.needs_baseline:
            return write_change(value, policy, in_points=quantity.in_points)
        return write_value(value, policy)

    text = f"{quantity.words} {write(estimate.value)}"
    if estimate.low is not None or estimate.high is not None:
        text += f" (95% CI {write(estimate.low)} to {write(estimate.high)})"
    side = "lower" if wants_high else "upper"
    which = "the measured value" if policy.as_measured else f"the interval's {side} end"
    must = "at least" if wants_high else "at most"
    return f"{text} on {quantity.count}; {which} must be {must} {write(limit)}"


def to_junit(checks: Sequence[Check], name: str) -> str:
    """Render the checks as JUnit XML, one test case per policy."""
    cases = [
        Case(
            classname=name,
            name=each.policy.text,
            outcome="passed" if each.passed else _OUTCOMES.get(each.verdict, "failure"),
            message=each.verdict,
            kind="policy",
            text=each.explanation,
        )
        for each in checks
    ]
    return document("cbench gate", cases)
