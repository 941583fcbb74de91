"""Geometric mean of the means of several scores, which is how SCROLLS sums up summaries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import Estimate, estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame
    from cbench_server.metrics.stats.intervals import Floats
    from cbench_server.metrics.stats.scored_rows import Flags

KEY = "geometric_mean"
ROUGE = ("rouge_1_f1", "rouge_2_f1", "rouge_l_f1")


class GeometricMean(FrameMetric):
    """Gives `geometric_mean` of the means of `scores`, with failed rows as 0.0.

    Rows that have none of the scores, and did not fail, count nowhere.
    """

    name = "geometric-mean"
    description = "Geometric mean of the means of several scores, as SCROLLS has it for ROUGE."
    keys = estimate_keys(KEY)
    every_score = True

    def __init__(self, scores: Sequence[str] = ROUGE) -> None:
        self.scores = tuple(scores)

    def over(self, frame: "Frame") -> Values:
        return geometric_mean(frame, self.scores, frame.everything).named(KEY)


def geometric_mean(frame: "Frame", scores: Sequence[str], part: "Flags") -> Estimate:
    """Estimate the geometric mean of the means of `scores` on a part of the rows."""
    import numpy as np

    from cbench_server.metrics.stats.bootstrap import bootstrap, sums_by_cluster

    known = frame.every_score()
    if not scores or any(name not in known for name in scores):
        return Estimate()
    columns = np.array([known[name] for name in scores])
    has_all = ~np.isnan(columns).any(axis=0)
    where = part & (has_all | frame.failed_by_system)
    if not where.any():
        return Estimate()
    chosen = np.where(has_all, columns, 0.0)[:, where]
    clusters = None
    if frame.clusters is not None:
        clusters = np.unique(frame.clusters[where], return_inverse=True)[1]
    power = 1 / len(scores)

    def statistic(sums: "Floats") -> "Floats":
        means = np.maximum(sums[:, :-1] / sums[:, -1:], 0.0)
        combined: Floats = means.prod(axis=1) ** power
        return combined

    ones = np.ones(int(where.sum()))
    return bootstrap(sums_by_cluster([*chosen, ones], clusters), statistic)
