"""Geometric mean of the means of several scores, which is how SCROLLS sums up summaries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import Estimate, estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame
    from cbench_server.metrics.stats.intervals import Floats

ROUGE = ("rouge_1_f1", "rouge_2_f1", "rouge_l_f1")


class GeometricMean(FrameMetric):
    """Gives `geometric_mean` of the means of `scores`, with failed rows as 0.0.

    Rows that have none of the scores, and did not fail, count nowhere.
    """

    name = "geometric-mean"
    description = "Geometric mean of the means of several scores, as SCROLLS has it for ROUGE."
    keys = estimate_keys("geometric_mean")
    every_score = True

    def __init__(self, scores: Sequence[str] = ROUGE) -> None:
        self.scores = tuple(scores)

    def over(self, frame: "Frame") -> Values:
        return self._estimate(frame).named("geometric_mean")

    def _estimate(self, frame: "Frame") -> Estimate:
        import numpy as np

        from cbench_server.metrics.stats.bootstrap import bootstrap, sums_by_cluster

        known = frame.every_score()
        if not self.scores or any(name not in known for name in self.scores):
            return Estimate()
        columns = np.array([known[name] for name in self.scores])
        has_all = ~np.isnan(columns).any(axis=0)
        where = has_all | frame.failed_by_system
        chosen = np.where(has_all, columns, 0.0)[:, where]
        clusters = None
        if frame.clusters is not None:
            clusters = np.unique(frame.clusters[where], return_inverse=True)[1]
        power = 1 / len(self.scores)

        def statistic(sums: "Floats") -> "Floats":
            means = np.maximum(sums[:, :-1] / sums[:, -1:], 0.0)
            combined: Floats = means.prod(axis=1) ** power
            return combined

        ones = np.ones(int(where.sum()))
        return bootstrap(sums_by_cluster([*chosen, ones], clusters), statistic)
