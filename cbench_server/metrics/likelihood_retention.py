"""Retention of the answer's likelihood: how much of what the whole context adds a system keeps."""

from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import Estimate, estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_GAIN, _ROOM = "answer_gain", "answer_room"


class LikelihoodRetention(FrameMetric):
    """Gives `likelihood_retention`: 0 is no context, 1 is the whole of it.

    The sum of the gains over the sum of the rooms of the evaluator
    `answer-likelihood`. It is None unless the interval of the mean room,
    `likelihood_room`, lies above 0: a model to which the context does not matter
    cannot tell what a system left of it. A row on which the system failed has
    no gain, and the room of the others.
    """

    name = "likelihood-retention"
    description = "Share of the likelihood kept that the whole context adds to the references."
    keys = (
        *estimate_keys("likelihood_retention"),
        *estimate_keys("likelihood_room"),
        "num_likelihood",
    )
    every_score = True

    def over(self, frame: "Frame") -> Values:
        import numpy as np

        scores = frame.every_score()
        if _GAIN not in scores or _ROOM not in scores:
            return {}
        gains, rooms = scores[_GAIN], scores[_ROOM]
        scored = ~np.isnan(gains) & ~np.isnan(rooms)
        if not scored.any():
            return {}
        room = frame.mean(rooms, scored)
        failed = frame.failed_by_system & ~scored
        kept = frame.ratio(
            np.where(scored, gains, 0.0),
            np.where(scored, rooms, room.value or 0.0),
            scored | failed,
        )
        is_told = room.low is not None and room.low > 0.0
        return {
            **(kept if is_told else Estimate()).named("likelihood_retention"),
            **room.named("likelihood_room"),
            "num_likelihood": float(scored.sum()),
        }
