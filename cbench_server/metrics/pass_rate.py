"""How often a score is good enough."""

from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute, score_of
from cbench_server.results import EvalRow


class PassRate:
    """Gives `pass_rate`: of the rows that have the score, the share with at least `threshold`."""

    name = "pass-rate"
    description = "Share of scored rows whose score reaches the threshold."
    keys = ("pass_rate", "num_scored", "num_failed")

    def __init__(self, threshold: float = 0.7, score_field: str | None = None) -> None:
        self.threshold = float(threshold)
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _PassRate(self.threshold, self.score_field)


class _PassRate:
    def __init__(self, threshold: float, score_field: str | None) -> None:
        self._threshold = threshold
        self._score_field = score_field
        self._scored = 0
        self._passing = 0
        self._failed = 0

    def add(self, row: EvalRow) -> None:
        if row.failure is not None:
            self._failed += 1
        elif (score := score_of(row, self._score_field)) is not None:
            self._scored += 1
            self._passing += score >= self._threshold

    def result(self) -> Values:
        return {
            "pass_rate": self._passing / self._scored if self._scored else None,
            "num_scored": float(self._scored),
            "num_failed": float(self._failed),
        }
