"""Resampling: what else might have come out, had other examples been drawn."""

from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Codes, Floats, t95

RESAMPLES = 2000
# More clusters than this are first put together at random into as many blocks:
# the spread of a sum stays the same, and the work no longer grows with the run.
_BLOCKS = 2048
_AT_ONCE = 100


def resample(columns: Floats, seed: int = 0) -> Floats:
    """Draw rows with replacement, as many as there are, and sum each column; 2,000 times."""
    columns = _in_blocks(columns, seed)
    weights = _weights(len(columns), seed)
    parts = np.split(weights, range(_AT_ONCE, RESAMPLES, _AT_ONCE))
    return np.concatenate([part.astype(np.float64) @ columns for part in parts])


def _in_blocks(columns: Floats, seed: int) -> Floats:
    if len(columns) <= _BLOCKS:
        return columns
    # Another stream than that of the weights, which are the same for all long runs.
    block = np.random.default_rng((seed, 1)).permutation(len(columns)) % _BLOCKS
    return np.stack([np.bincount(block, column, _BLOCKS) for column in columns.T], axis=1)


# At most 4 MB each. Drawing them takes ten times as long as using them.
@lru_cache(maxsize=2)
def _weights(count: int, seed: int) -> NDArray[np.uint8]:
    """Return how often each of `count` things is drawn, in every resample.

    A byte is enough: that one of many is drawn 256 times does not happen.
    """
    draw = np.random.default_rng(seed)
    weights = np.empty((RESAMPLES, count), np.uint8)
    for first in range(0, RESAMPLES, _AT_ONCE):
        some = weights[first : first + _AT_ONCE]
        drawn = draw.integers(0, count, some.shape)
        drawn += np.arange(len(some))[:, None] * count
        some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
    return weights


def sums_by_cluster(columns: list[Floats], clusters: Codes | None) -> Floats:
    """Sum each column over the rows of each cluster; without clusters each row is its own."""
    if clusters is None:
        return np.stack(columns, axis=1)
    return np.stack([np.bincount(clusters, column) for column in columns], axis=1)


def bootstrap(columns: Floats, statistic: Callable[[Floats], Floats], seed: int = 0) -> Estimate:
    """Estimate a statistic of column sums, such as a ratio; one line of `columns` per cluster.

    `statistic` takes lines of sums and gives a number for each. The interval
    is by percentiles, which are widened as Student's t is for few clusters.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(columns.sum(axis=0, keepdims=True))[0])
        if not np.isfinite(value):
            return Estimate()
        if len(columns) < 2:
            return Estimate(value)
        drawn = statistic(resample(columns, seed))
    return Estimate(value, _spread(drawn), *percentile_interval(drawn, len(columns)))


def percentile_interval(drawn: Floats, clusters: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of resampled values; an end that is not finite is None."""
    low, high = percentile_ends(drawn, clusters)
    return _finite(low), _finite(high)


def percentile_ends(drawn: Floats, clusters: int) -> tuple[float, float]:
    """Return the ends of the 95 % interval of resampled values, which may be infinite."""
    wide = t95(clusters - 1) * (clusters / (clusters - 1)) ** 0.5
    tail = NormalDist().cdf(-wide)
    # Undefined values, from resamples without anything to divide by, count as infinite.
    ordered = np.sort(np.where(np.isnan(drawn), np.inf, drawn))
    last = len(ordered) - 1
    return float(ordered[int(tail * last)]), float(ordered[last - int(tail * last)])


def _spread(drawn: Floats) -> float | None:
    return float(np.std(drawn, ddof=1)) if np.isfinite(drawn).all() else None


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
