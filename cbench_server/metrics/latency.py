"""How long a system takes."""

import math
from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute, mean
from cbench_server.results import EvalRow


class Latency:
    """Gives mean, median, 95th and 99th percentile of the seconds a row took.

    Percentiles are by nearest rank: each is a time that some row really took.
    Failed rows are left out, since a refusal is quick and a timeout as slow as
    we allowed: neither is the system's time.
    """

    name = "latency"
    description = "Seconds per row: mean and percentiles, failed rows left out."
    keys = ("latency_mean", "latency_median", "latency_p95", "latency_p99")

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _Latency()


class _Latency:
    def __init__(self) -> None:
        self._seconds = array("d")

    def add(self, row: EvalRow) -> None:
        if row.failure is None:
            self._seconds.append(row.latency)

    def result(self) -> Values:
        ordered = sorted(self._seconds)
        return {
            "latency_mean": mean(self._seconds),
            "latency_median": nearest_rank(ordered, 50),
            "latency_p95": nearest_rank(ordered, 95),
            "latency_p99": nearest_rank(ordered, 99),
        }


def nearest_rank(ordered: Sequence[float], percent: int) -> float | None:
    """Return the smallest value that at least `percent` of the ordered values do not exceed."""
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]
