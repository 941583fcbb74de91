"""Mean of a score on each type of question."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra, Labels
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_QA_TYPE = Extra(lambda row: str(row.metadata.get("qa_type", "unknown")), Labels)


class PerQAType(FrameMetric):
    """Gives `<score>_<type>` for every type of question, and `<score>_mean` over all of them.

    `<score>` is the score field, or `score` where each row's primary one
    counts. The type is `qa_type` of the row's metadata; rows without one count
    as "unknown". Rows that failed on the system's side count at worst, as in
    `mean_score_with_failures`. A type of which no row counts gives None.
    """

    name = "per-qa-type"
    description = "Mean of the primary score on each type of question, for memory runs."
    keys = (*estimate_keys("score_<type>"), *estimate_keys("score_mean"))
    extras = (_QA_TYPE,)

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def over(self, frame: "Frame") -> Values:
        prefix = self.score_field or "score"
        scored = frame.scored(self.score_field)
        types, codes = frame.labels(_QA_TYPE)
        values: Values = {}
        for name, code in sorted(types.items()):
            part = scored.of(codes == code)
            values |= frame.mean(*part.with_failures(), in_unit=part.in_unit).named(
                f"{prefix}_{name}"
            )
        if types:
            whole = frame.mean(*scored.with_failures(), in_unit=scored.in_unit)
            values |= whole.named(f"{prefix}_mean")
        return values
