"""Latency of a system, and the times its rows waited and were scored."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cbench_server.metrics.protocol import FrameMetric, Values
from cbench_server.metrics.stats.estimate import estimate_keys

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

_PERCENTILES = {"latency_median": 50, "latency_p95": 95, "latency_p99": 99}
_STAGES = ("queue", "scoring", "reader")


def _percentile_keys(key: str) -> tuple[str, ...]:
    return (key, f"{key}_ci_low", f"{key}_ci_high")


class Latency(FrameMetric):
    """Gives the seconds from call to reply, system and network together, and what came around.

    Percentiles are by nearest rank: each is a time that some row really took.
    A call that ran into its time limit counts with the time it was given,
    else a system that hangs would look quick; other failed rows are left out.
    `queue_*` is the wait for a free place, `scoring_*` our own work, `reader_*`
    the time of the model that answered from the processed context.
    """

    name = "latency"
    description = "Seconds per row: waiting, system and network, reader, scoring."
    keys = (
        *estimate_keys("latency_mean"),
        *(each for key in _PERCENTILES for each in _percentile_keys(key)),
        "latency_max",
        "num_timed_out",
        *(f"{stage}_{which}" for stage in _STAGES for which in ("mean", "p95", "max")),
    )

    def over(self, frame: "Frame") -> Values:
        counted = frame.has_answer | frame.timed_out
        values = frame.mean(frame.latency, counted).never_negative().named("latency_mean")
        found = frame.percentiles(frame.latency, counted, *_PERCENTILES.values(), 100)
        for key, estimate in zip(_PERCENTILES, found, strict=False):
            bounds = (estimate.value, estimate.low, estimate.high)
            values.update(zip(_percentile_keys(key), bounds, strict=True))
        values["latency_max"] = found[-1].value
        values["num_timed_out"] = float(frame.timed_out.sum())
        for stage, seconds in zip(
            _STAGES, (frame.queue_time, frame.scoring_time, frame.reader_time), strict=True
        ):
            p95, longest = frame.percentiles(seconds, frame.has_answer, 95, 100)
            values[f"{stage}_mean"] = frame.mean(seconds, frame.has_answer).value
            values[f"{stage}_p95"] = p95.value
            values[f"{stage}_max"] = longest.value
        return values


def nearest_rank(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that at least `percent` of the ordered values do not exceed."""
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]
