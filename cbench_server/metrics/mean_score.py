"""Mean of a score."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame
    from cbench_server.metrics.stats.scored_rows import ScoredRows

COUNTS = ("num_scored", "num_failed", "num_unscored", "num_not_applicable")


class MeanScore(FrameMetric):
    """Gives the mean of a score, and on which rows it stands.

    `mean_score` is over the rows that have the score. In
    `mean_score_with_failures`, the headline, rows that failed on the system's
    side count as the score's worst value; in `mean_score_worst_case` so do
    those that we could not score. Rows to which the score does not apply count
    nowhere. What would need a worst value that is not known is None.
    """

    name = "mean-score"
    description = "Mean of the primary score, without and with failed rows at worst."
    keys = (
        *estimate_keys("mean_score"),
        *estimate_keys("mean_score_with_failures"),
        *estimate_keys("mean_score_worst_case"),
        *COUNTS,
    )

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        rows = frame.scored(self.score_field)
        unit = rows.in_unit
        headline, worst_case = rows.with_failures(), rows.worst_case()
        return {
            **frame.mean(rows.values, rows.is_scored, in_unit=unit).named("mean_score"),
            **frame.mean(*headline, in_unit=unit).named("mean_score_with_failures"),
            **frame.mean(*worst_case, in_unit=unit).named("mean_score_worst_case"),
            **counts(rows),
        }


def counts(rows: "ScoredRows") -> Values:
    """Count the rows of each kind."""
    kinds = (rows.is_scored, rows.is_failed, rows.is_unscored, rows.is_not_applicable)
    return dict(zip(COUNTS, [float(kind.sum()) for kind in kinds], strict=True))
