"""Mean of a score."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class MeanScore(FrameMetric):
    """Gives `mean_score` over the rows that have the score, and what became of the others.

    `num_failed` counts every failed row. In `mean_score_with_failures` those
    count as 0 where the system, its reader or the way there failed; a failure
    of ours says nothing about the system.
    """

    name = "mean-score"
    description = "Mean of the primary score, without and with failed rows as 0."
    keys = (
        *estimate_keys("mean_score"),
        *estimate_keys("mean_score_with_failures"),
        "num_scored",
        "num_failed",
    )

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        scores, has_score = frame.scores_and_presence(self.score_field)
        in_unit = frame.is_in_unit(scores, has_score)
        counted, is_counted = frame.with_failures_as_zero(scores)
        return {
            **frame.mean(scores, has_score, in_unit=in_unit).named("mean_score"),
            **frame.mean(counted, is_counted, in_unit=in_unit).named("mean_score_with_failures"),
            "num_scored": float(has_score.sum()),
            "num_failed": float((~frame.has_answer).sum()),
        }
