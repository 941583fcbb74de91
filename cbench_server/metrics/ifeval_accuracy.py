"""Instruction accuracy of the IFEval paper."""

from array import array
from functools import partial
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import UNKNOWN, Extra
from cbench_server.metrics.stats.estimate import estimate_keys
from cbench_server.results import EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


def _count(name: str) -> Extra:
    def take(row: EvalRow) -> int:
        counts = None if row.failure else row.details.get("ifeval")
        return int(counts[name]) if counts else UNKNOWN

    return Extra(take, partial(array, "i"))


class IFEvalAccuracy(FrameMetric):
    """Gives the share of all instructions followed, each of which counts once.

    A mean of the rows' shares would count an instruction that stands alone
    more than one among three. Rows that the `ifeval` evaluator did not score
    are left out.
    """

    name = "ifeval-accuracy"
    description = "Share of all IFEval instructions followed, as the paper counts them."
    keys = (
        *estimate_keys("ifeval_accuracy_strict"),
        *estimate_keys("ifeval_accuracy_loose"),
        "num_instructions",
    )
    extras = (_count("instructions"), _count("followed_strict"), _count("followed_loose"))

    def over(self, frame: "Frame") -> Values:
        instructions, strict, loose = (frame.extra(extra) for extra in self.extras)
        scored = instructions != UNKNOWN
        return {
            **frame.ratio(strict, instructions, scored).named("ifeval_accuracy_strict"),
            **frame.ratio(loose, instructions, scored).named("ifeval_accuracy_loose"),
            "num_instructions": float(instructions[scored].sum()),
        }
