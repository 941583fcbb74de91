"""Tallies: counters and histograms that cost little for each row, and are read when scraped.

The library's own take a lock and several calls for every value, which is a tenth of what a row
costs. These belong to one event loop, which is also where they are read.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric


class Tally:
    """A count that only grows."""

    __slots__ = ("name", "text", "value")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.value: float = 0

    def metric(self) -> Metric:
        """Return it as Prometheus reads it."""
        return CounterMetricFamily(f"cbench_{self.name}", self.text, value=self.value)


class Spread:
    """A histogram: how many values were at most as large as each bound."""

    __slots__ = ("_bounds", "_counts", "_sum", "name", "text")

    def __init__(self, name: str, text: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.text = text
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Take one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def metric(self) -> Metric:
        """Return it as Prometheus reads it."""
        total = 0
        buckets = []
        bounds = [*map(repr, map(float, self._bounds)), "+Inf"]
        for bound, count in zip(bounds, self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        return HistogramMetricFamily(
            f"cbench_{self.name}", self.text, buckets=buckets, sum_value=self._sum
        )


class Tallies:
    """What the library asks for its metrics."""

    def __init__(self) -> None:
        self._all: list[Tally | Spread] = []

    def tally(self, name: str, text: str) -> Tally:
        """Add a counter."""
        self._all.append(made := Tally(name, text))
        return made

    def spread(self, name: str, text: str, bounds: Sequence[float]) -> Spread:
        """Add a histogram."""
        self._all.append(made := Spread(name, text, bounds))
        return made

    def collect(self) -> Iterable[Metric]:
        """Return all of them."""
        return [each.metric() for each in self._all]
