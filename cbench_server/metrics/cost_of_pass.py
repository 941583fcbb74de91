"""What one good answer costs."""

from array import array
from collections.abc import Sequence
from math import fsum

from cbench_server.metrics.accumulate import Accumulator, Values, compute, score_of
from cbench_server.results import EvalRow


class CostOfPass:
    """Gives `cost_of_pass`: the output tokens of all rows, failed ones too, per passing row.

    None where no row passes. `cost_of_pass_usd` is there only if every row
    that did not fail reports its `cost_usd`, for a part would flatter.
    """

    name = "cost-of-pass"
    description = "Output tokens, and money where reported, spent for each passing row."
    keys = ("cost_of_pass", "num_passing", "cost_of_pass_usd")

    def __init__(self, threshold: float = 0.7, score_field: str | None = None) -> None:
        self.threshold = float(threshold)
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _CostOfPass(self.threshold, self.score_field)


class _CostOfPass:
    def __init__(self, threshold: float, score_field: str | None) -> None:
        self._threshold = threshold
        self._score_field = score_field
        self._output = 0
        self._passing = 0
        self._usd = array("d")
        self._unpriced = 0

    def add(self, row: EvalRow) -> None:
        self._output += row.output_tokens
        cost = (row.usage or {}).get("cost_usd")
        if cost is not None:
            self._usd.append(cost)
        elif row.failure is None:
            self._unpriced += 1
        score = None if row.failure else score_of(row, self._score_field)
        if score is not None:
            self._passing += score >= self._threshold

    def result(self) -> Values:
        passing = self._passing
        values: Values = {
            "cost_of_pass": self._output / passing if passing else None,
            "num_passing": float(passing),
        }
        if self._usd and not self._unpriced:
            values["cost_of_pass_usd"] = fsum(self._usd) / passing if passing else None
        return values
