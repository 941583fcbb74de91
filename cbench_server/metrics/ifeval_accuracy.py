"""The instruction accuracy of the IFEval paper."""

from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute
from cbench_server.metrics.columns import Columns
from cbench_server.metrics.estimate import estimate_keys
from cbench_server.results import EvalRow


class IFEvalAccuracy:
    """Gives the share of all instructions followed, each counting once whatever its row.

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

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _IFEvalAccuracy()


class _IFEvalAccuracy:
    def __init__(self) -> None:
        self._columns = Columns(())
        self._instructions = array("i")
        self._strict = array("i")
        self._loose = array("i")

    def add(self, row: EvalRow) -> None:
        if row.failure is None and (counts := row.details.get("ifeval")):
            self._columns.add(row)
            self._instructions.append(counts["instructions"])
            self._strict.append(counts["followed_strict"])
            self._loose.append(counts["followed_loose"])

    def result(self) -> Values:
        from cbench_server.metrics.frame import Frame

        frame = Frame(self._columns)
        instructions = frame.column(self._instructions)
        strict = frame.ratio(frame.column(self._strict), instructions, frame.everything)
        loose = frame.ratio(frame.column(self._loose), instructions, frame.everything)
        return {
            **strict.named("ifeval_accuracy_strict"),
            **loose.named("ifeval_accuracy_loose"),
            "num_instructions": float(instructions.sum()),
        }
