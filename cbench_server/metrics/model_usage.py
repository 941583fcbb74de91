"""Usage of models: requests, tokens as reported, and rows whose prompt or answer was cut."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra
from cbench_server.results import (
    ANSWER_CUT,
    JUDGE_PROMPT_CUT,
    PROMPT_CUT,
    PROMPT_OVER_WINDOW,
    EvalRow,
)

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

MARKS = {
    PROMPT_CUT: "num_prompts_cut",
    JUDGE_PROMPT_CUT: "num_judge_prompts_cut",
    PROMPT_OVER_WINDOW: "num_prompts_over_window",
    ANSWER_CUT: "num_answers_cut",
}
_COUNTS = {
    "requests": "requests",
    "abandoned_requests": "abandoned_requests",
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "cached_prompt_tokens": "cached_prompt_tokens",
}
_KINDS = ("reader", "system")


class _Sums:
    """What the rows add up to; the rows themselves are not kept."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def append(self, row: EvalRow) -> None:
        """Take one row."""
        for mark in row.marks:
            if mark in MARKS:
                self.sums[MARKS[mark]] += 1
        if row.reader_usage:
            self._add("reader", row.reader_usage)
        # Only a model's usage counts requests.
        if row.usage and "requests" in row.usage:
            self._add("system", row.usage)
        failure = row.failure
        if failure is not None and failure.origin == "reader":
            self._add("reader", {"requests": failure.attempts}, answers=0)
            if failure.reason == "DEADLINE_EXCEEDED":
                self.sums["reader_abandoned_requests"] += 1

    def _add(self, kind: str, usage: dict[str, Any], answers: int = 1) -> None:
        for name, key in _COUNTS.items():
            value = usage.get(name)
            if isinstance(value, int):
                self.sums[f"{kind}_{key}"] += value
        # All but the first request for an answer repeat it, and so do all that led to none.
        self.sums[f"{kind}_retries"] += max(0, usage.get("requests", answers) - 1)


_USAGE = Extra(lambda row: row, _Sums)


class ModelUsage(FrameMetric):
    """Gives what the reader, or a proxy under test, was asked and read, as its endpoint counts it.

    `reader_retries` are the requests that repeat another one, and
    `reader_abandoned_requests` those given up before an answer came. A value
    that nothing was reported for is None.
    """

    name = "model-usage"
    description = "Requests, retries and tokens of readers and proxies, and what was cut."
    extras = (_USAGE,)
    keys = (
        *(f"{kind}_{key}" for kind in _KINDS for key in (*_COUNTS.values(), "retries")),
        *MARKS.values(),
    )

    def over(self, frame: "Frame") -> Values:
        sums = frame.kept(_USAGE).sums
        values: Values = {key: float(sums[key]) if key in sums else None for key in self.keys}
        asked = [kind for kind in _KINDS if f"{kind}_requests" in sums]
        # Of a model that was asked, none given up means zero; tokens may not have been reported.
        values |= {f"{kind}_abandoned_requests": float(_abandoned(sums, kind)) for kind in asked}
        return values | {key: float(sums[key]) for key in MARKS.values()}


def _abandoned(sums: Counter[str], kind: str) -> int:
    return sums[f"{kind}_abandoned_requests"]
