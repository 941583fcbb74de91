"""The mean of a score."""

from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import (
    Accumulator,
    Values,
    compute,
    is_system_failure,
    mean,
    score_of,
)
from cbench_server.results import EvalRow


class MeanScore:
    """Gives `mean_score` over the rows that have the score, and what became of the others.

    `num_failed` counts every failed row. In `mean_score_with_failures` those
    count as 0 where the system, its reader or the way there failed; a failure
    of ours says nothing about the system.
    """

    name = "mean-score"
    description = "Mean of the primary score, without and with failed rows as 0."
    keys = ("mean_score", "mean_score_with_failures", "num_scored", "num_failed")

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _MeanScore(self.score_field)


class _MeanScore:
    def __init__(self, score_field: str | None) -> None:
        self._score_field = score_field
        self._scores = array("d")
        self._failed = 0
        self._failed_by_system = 0

    def add(self, row: EvalRow) -> None:
        if row.failure is not None:
            self._failed += 1
            self._failed_by_system += is_system_failure(row)
        elif (score := score_of(row, self._score_field)) is not None:
            self._scores.append(score)

    def result(self) -> Values:
        scored = len(self._scores)
        return {
            "mean_score": mean(self._scores),
            "mean_score_with_failures": mean(self._scores, scored + self._failed_by_system),
            "num_scored": float(scored),
            "num_failed": float(self._failed),
        }
