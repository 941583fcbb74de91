"""Mean of every score that any evaluator gave."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame


class EveryScore(FrameMetric):
    """Gives `mean_score:<score>` and `num_scored:<score>` for each score that rows have.

    The mean is over the rows that have the score.
    """

    name = "every-score"
    description = "Mean of each score of each evaluator, and the number of rows that have it."
    keys = (*estimate_keys("mean_score:<score>"), "num_scored:<score>")
    every_score = True

    def over(self, frame: "Frame") -> Values:
        # Here, as in the other metrics, numpy is there already.
        import numpy as np

        values: Values = {}
        for name, scores in frame.every_score().items():
            where = ~np.isnan(scores)
            chosen = scores[where]
            in_unit = bool(((chosen >= 0.0) & (chosen <= 1.0)).all())
            values |= frame.mean(scores, where, in_unit=in_unit).named(f"mean_score:{name}")
            values[f"num_scored:{name}"] = float(where.sum())
        return values
