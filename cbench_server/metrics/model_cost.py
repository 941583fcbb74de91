"""Cost of models: what they charged for a system's rows, and the tokens that they reported."""

import math
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra
from cbench_server.metrics.stats.estimate import estimate_keys
from cbench_server.results import COST_UNKNOWN, EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_KINDS = ("system", "reader", "judge")
_TOKENS = ("prompt_tokens", "completion_tokens")


class _Bills:
    """What the rows say of money and tokens; the rows themselves are not kept."""

    def __init__(self) -> None:
        self.amounts: dict[str, array[float]] = {}
        self.unknown = 0
        self.tokens = {name: array("d") for name in _TOKENS}
        self.judged = dict.fromkeys(_TOKENS, 0)

    def append(self, row: EvalRow) -> None:
        """Take one row."""
        if row.marks:
            self.unknown += COST_UNKNOWN in row.marks
        for who, usd in row.cost_usd.items():
            kind = who if who in _KINDS else "judge"
            self.amounts.setdefault(kind, array("d")).append(usd)
        for name, values in self.tokens.items():
            count = row.reported_tokens(name)
            values.append(math.nan if count is None else count)
        for said in row.details.values():
            self._add_judged(said.get("usage"))

    def _add_judged(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            for name in _TOKENS:
                if isinstance(usage.get(name), int):
                    self.judged[name] += usage[name]


_BILLS = Extra(lambda row: row, _Bills)


class ModelCost(FrameMetric):
    """Gives `cost_usd`, the sum of what is known of the rows' costs, and whose they are.

    `num_cost_unknown` rows cost something that nobody told of, so that sums are
    at least that much. Tokens are those that the system or the reader reports,
    as a mean over the rows that have them and as a sum. What nobody has a price
    for, or reports, is left out.
    """

    name = "model-cost"
    description = "What models charged, by who, and the tokens of prompts and answers they report."
    extras = (_BILLS,)
    keys = (
        "cost_usd",
        *(f"{kind}_cost_usd" for kind in _KINDS),
        "num_cost_unknown",
        *(key for name in _TOKENS for key in estimate_keys(f"mean_{name}")),
        *(f"total_{name}" for name in _TOKENS),
        "num_usage_reported",
        *(f"judge_{name}" for name in _TOKENS),
    )

    def over(self, frame: "Frame") -> Values:
        import numpy as np

        bills: _Bills = frame.kept(_BILLS)
        values: Values = {}
        if bills.amounts or bills.unknown:
            whole = [usd for each in bills.amounts.values() for usd in each]
            values["cost_usd"] = math.fsum(whole) if whole else None
            for kind, amounts in bills.amounts.items():
                values[f"{kind}_cost_usd"] = math.fsum(amounts)
            values["num_cost_unknown"] = float(bills.unknown)
        for name, counts in bills.tokens.items():
            column = frame.column(counts)
            is_reported = ~np.isnan(column)
            if is_reported.any():
                values |= frame.mean(column, is_reported).never_negative().named(f"mean_{name}")
                values[f"total_{name}"] = float(column[is_reported].sum())
                values["num_usage_reported"] = float(is_reported.sum())
        values |= {f"judge_{name}": float(count) for name, count in bills.judged.items() if count}
        return {key: values[key] for key in self.keys if key in values}
