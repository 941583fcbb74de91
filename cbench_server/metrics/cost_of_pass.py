"""Cost of a good answer, in tokens and in money."""

import math
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class CostOfPass(FrameMetric):
    """Gives `cost_of_pass`: the output tokens of all rows, failed ones too, per passing row.

    None where no row passes. What is in US dollars is there only if every row
    that did not fail has a cost that is known in full, for a part would flatter.
    """

    name = "cost-of-pass"
    description = "Output tokens, and money where reported, spent for each passing row."
    keys = (
        *estimate_keys("cost_of_pass"),
        "num_passing",
        *estimate_keys("cost_of_pass_usd"),
        *estimate_keys("mean_cost_usd"),
        "total_cost_usd",
    )

    def __init__(self, threshold: float = 0.7, score_field: str | None = None) -> None:
        self.threshold = float(threshold)
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        passed, everything = frame.scored(self.score_field).passed(self.threshold), frame.everything
        values = {
            **frame.ratio(frame.output_tokens, passed, everything).named("cost_of_pass"),
            "num_passing": float(passed.sum()),
        }
        prices, is_priced = frame.cost_usd()
        if is_priced.any() and not (frame.has_answer & ~is_priced).any():
            spent = prices.copy()
            spent[~is_priced] = 0.0
            values |= frame.ratio(spent, passed, everything).named("cost_of_pass_usd")
            values |= frame.mean(spent, is_priced).never_negative().named("mean_cost_usd")
            values["total_cost_usd"] = math.fsum(spent)
        return values
