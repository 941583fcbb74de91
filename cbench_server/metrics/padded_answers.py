"""Padded answers: how many responses won, or tried to win, a score by saying everything."""

from array import array
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.columns import Extra
from cbench_server.results import PADDED

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_IS_PADDED = Extra(lambda row: PADDED in row.marks, lambda: array("b"))


class PaddedAnswers(FrameMetric):
    """Gives `num_padded`, a count of rows."""

    name = "padded-answers"
    description = "Responses far longer than the answer that a score looks for in them."
    keys = ("num_padded",)
    extras = (_IS_PADDED,)

    def over(self, frame: "Frame") -> Values:
        return {"num_padded": float(frame.extra(_IS_PADDED).sum())}
