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
_UNDER_LOAD = ("latency_under_load", "handler_under_load")


def _percentile_keys(key: str) -> tuple[str, ...]:
    return (key, f"{key}_ci_low", f"{key}_ci_high")


class Latency(FrameMetric):
    """Gives the seconds from call to reply by our clock, and what came around them.

    `latency_*` is over the `num_timed_alone` rows that were timed while nothing
    else was called; in a run that has none, over all. Percentiles are by
    nearest rank: each is a time that some row really took. A call that ran into
    its time limit counts with the time it was given, else a system that hangs
    would look quick; other failed rows are left out.
    `latency_under_load_*` is over the other rows, made while other calls were in
    flight, and `handler_under_load_*` is what the system's own code took on
    them, where its SDK says so; `handler_median` is the same over the rows timed
    alone. `num_retried_alone` rows were late among others, and tried again.
    `queue_*` is the wait for a free place, `scoring_*` our own work, `reader_*`
    the time of the model that answered from the processed context.
    """

    name = "latency"
    description = "Seconds per row: alone and under load, waiting, reader, scoring."
    keys = (
        *estimate_keys("latency_mean"),
        *(each for key in _PERCENTILES for each in _percentile_keys(key)),
        "latency_max",
        "handler_median",
        "num_timed_alone",
        *(f"{key}_{which}" for key in _UNDER_LOAD for which in ("median", "p95")),
        "num_timed_out",
        "num_retried_alone",
        *(f"{stage}_{which}" for stage in _STAGES for which in ("mean", "p95", "max")),
    )

    def over(self, frame: "Frame") -> Values:
        latency, timed = frame.latency, frame.timed
        values = frame.mean(latency, timed).never_negative().named("latency_mean")
        found = frame.percentiles(latency, timed, *_PERCENTILES.values(), 100)
        for key, estimate in zip(_PERCENTILES, found, strict=False):
            bounds = (estimate.value, estimate.low, estimate.high)
            values.update(zip(_percentile_keys(key), bounds, strict=True))
        values["latency_max"] = found[-1].value
        handler, said = frame.handler, frame.has_handler_time
        alone = frame.has_latency & frame.is_alone
        values["handler_median"] = frame.percentiles(handler, alone & said, 50)[0].value
        values["num_timed_alone"] = float(alone.sum())
        crowded = frame.has_latency & ~frame.is_alone
        for key, seconds, where in zip(
            _UNDER_LOAD, (latency, handler), (crowded, crowded & said), strict=True
        ):
            median, p95 = frame.percentiles(seconds, where, 50, 95)
            values[f"{key}_median"], values[f"{key}_p95"] = median.value, p95.value
        values["num_timed_out"] = float(frame.timed_out.sum())
        values["num_retried_alone"] = float(frame.was_retried_alone.sum())
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
