"""Mean of a score on each dataset."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class PerDatasetBreakdown(FrameMetric):
    """Gives `dataset:<tag>`: the mean over the rows that have the score, for every tag.

    Rows that failed on the system's side count as the worst value, as in
    `mean_score_with_failures`. Rows without a tag count under "unknown"; a
    dataset of which no row counts gives None.
    """

    name = "per-dataset"
    description = "Mean of the primary score on each dataset."
    keys = estimate_keys("dataset:<tag>")

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        scored = frame.scored(self.score_field)
        values: Values = {}
        for tag, code in sorted((tag or "unknown", code) for tag, code in frame.datasets.items()):
            part = scored.of(frame.dataset == code)
            values |= frame.mean(*part.with_failures(), in_unit=part.in_unit).named(
                f"dataset:{tag}"
            )
        return values
