"""Padded answers: how many outputs won, or tried to win, a score by saying everything."""

from array import array
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra
from cbench_server.results import PADDED, STUFFED

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_IS_PADDED = Extra(lambda row: PADDED in row.marks, lambda: array("b"))
_IS_STUFFED = Extra(lambda row: STUFFED in row.marks, lambda: array("b"))


class PaddedAnswers(FrameMetric):
    """Gives `num_padded` and `num_stuffed`, counts of rows."""

    name = "padded-answers"
    description = "Responses far longer than the answer, and contexts that are lists of names."
    keys = ("num_padded", "num_stuffed")
    extras = (_IS_PADDED, _IS_STUFFED)

    def over(self, frame: "Frame") -> Values:
        return {
            "num_padded": float(frame.extra(_IS_PADDED).sum()),
            "num_stuffed": float(frame.extra(_IS_STUFFED).sum()),
        }
