"""Pass rate: how often a score is good enough."""

from typing import TYPE_CHECKING

from cbench_server.metrics.mean_score import COUNTS, counts
from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class PassRate(FrameMetric):
    """Gives `pass_rate`: of the rows that have the score, the share with at least `threshold`.

    Where lower is better, it is the share with at most that. In
    `pass_rate_with_failures`, rows that failed on the system's side count as
    not passed.
    """

    name = "pass-rate"
    description = "Share of scored rows whose score reaches the threshold."
    keys = (
        *estimate_keys("pass_rate"),
        *estimate_keys("pass_rate_with_failures"),
        *COUNTS,
    )

    def __init__(self, threshold: float = 0.7, score_field: str | None = None) -> None:
        self.threshold = float(threshold)
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        rows = frame.scored(self.score_field)
        passed = rows.passed(self.threshold)
        is_counted = rows.is_scored | rows.is_failed
        return {
            **frame.mean(passed, rows.is_scored).named("pass_rate"),
            **frame.mean(passed, is_counted).named("pass_rate_with_failures"),
            **counts(rows),
        }
