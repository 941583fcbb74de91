"""Combination of independent estimates: a weighted sum, such as a mean of means."""

import math
from collections.abc import Sequence

from cbench_server.metrics.stats.estimate import Estimate

Weighted = tuple[float, Estimate]


def combined(parts: Sequence[Weighted], *, in_unit: bool = False) -> Estimate:
    """Estimate the weighted sum of parts that were measured on different examples.

    Each end of the interval is as far away as the weighted ends of the parts
    are together, by Pythagoras (Zou and Donner 2008). So a part that has an
    interval although all its rows are equal lends it to the sum. Without the
    value of a part there is none of the sum, and likewise the ends.
    """
    values = [estimate.value for _, estimate in parts]
    if not parts or any(value is None for value in values):
        return Estimate()
    value = math.fsum(weight * (estimate.value or 0.0) for weight, estimate in parts)
    stderr = _length([_times(weight, estimate.stderr) for weight, estimate in parts])
    below = _length([_times(weight, _apart(part.value, part.low)) for weight, part in parts])
    above = _length([_times(weight, _apart(part.high, part.value)) for weight, part in parts])
    low = None if below is None else value - below
    high = None if above is None else value + above
    if in_unit:
        low = None if low is None else max(low, 0.0)
        high = None if high is None else min(high, 1.0)
    return Estimate(value, stderr, low, high)


def _times(weight: float, length: float | None) -> float | None:
    return None if length is None else weight * length


def _apart(high: float | None, low: float | None) -> float | None:
    return None if high is None or low is None else high - low


def _length(sides: Sequence[float | None]) -> float | None:
    known = [side for side in sides if side is not None]
    return math.hypot(*known) if len(known) == len(sides) else None
