"""Mean of a score on each dataset."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cbench_server.metrics.geometric_mean import geometric_mean
from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class PerDatasetBreakdown(FrameMetric):
    """Gives `dataset:<tag>`: the mean over the rows that have the score, for every tag.

    A tag in `geometric` has the geometric mean of the means of those scores instead.

    Rows that failed on the system's side count as the worst value, as in
    `mean_score_with_failures`. Rows without a tag count under "unknown"; a
    dataset of which no row counts gives None.
    """

    name = "per-dataset"
    description = "Mean of the primary score on each dataset."
    keys = estimate_keys("dataset:<tag>")

    def __init__(
        self,
        score_field: str | None = None,
        geometric: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.score_field = score_field
        self.geometric = dict(geometric or {})
        self.every_score = bool(self.geometric)

    def over(self, frame: "Frame") -> Values:
        scored = frame.scored(self.score_field)
        values: Values = {}
        for tag, code in sorted((tag or "unknown", code) for tag, code in frame.datasets.items()):
            rows = frame.dataset == code
            part = scored.of(rows)
            figure = geometric_mean(frame, self.geometric.get(tag, ()), rows)
            if figure.value is None:
                figure = frame.mean(*part.with_failures(), in_unit=part.in_unit)
            values |= figure.named(f"dataset:{tag}")
        return values
