"""The instruction accuracy of the IFEval paper."""

from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute
from cbench_server.results import EvalRow


class IFEvalAccuracy:
    """Gives the share of all instructions followed, each counting once whatever its row.

    A mean of the rows' shares would count an instruction that stands alone
    more than one among three. Rows that the `ifeval` evaluator did not score
    are left out.
    """

    name = "ifeval-accuracy"
    description = "Share of all IFEval instructions followed, as the paper counts them."
    keys = ("ifeval_accuracy_strict", "ifeval_accuracy_loose", "num_instructions")

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _IFEvalAccuracy()


class _IFEvalAccuracy:
    def __init__(self) -> None:
        self._instructions = 0
        self._strict = 0
        self._loose = 0

    def add(self, row: EvalRow) -> None:
        if row.failure is None and (counts := row.details.get("ifeval")):
            self._instructions += counts["instructions"]
            self._strict += counts["followed_strict"]
            self._loose += counts["followed_loose"]

    def result(self) -> Values:
        total = self._instructions
        return {
            "ifeval_accuracy_strict": self._strict / total if total else None,
            "ifeval_accuracy_loose": self._loose / total if total else None,
            "num_instructions": float(total),
        }
