"""Resampling: what else might have come out, had other examples been drawn."""

from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np

from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Codes, Floats, t95

RESAMPLES = 2000
# More clusters than this are first put together at random into as many blocks:
# the spread of a sum stays the same, and the work no longer grows with the run.
_BLOCKS = 2048
_AT_ONCE = 100


def resample(columns: Floats, seed: int = 0) -> Floats:
    """Draw rows with replacement, as many as there are, and sum each column; 2,000 times."""
    draw = np.random.default_rng(seed)
    columns = _in_blocks(columns, draw)
    return np.concatenate([weights @ columns for weights in _weights(len(columns), draw)])


def _in_blocks(columns: Floats, draw: np.random.Generator) -> Floats:
    if len(columns) <= _BLOCKS:
        return columns
    block = draw.permutation(len(columns)) % _BLOCKS
    return np.stack([np.bincount(block, column, _BLOCKS) for column in columns.T], axis=1)


def _weights(count: int, draw: np.random.Generator) -> Iterator[Floats]:
    """Yield how often each of `count` things is drawn, for some resamples at a time."""
    for first in range(0, RESAMPLES, _AT_ONCE):
        rows = min(_AT_ONCE, RESAMPLES - first)
        drawn = draw.integers(0, count, (rows, count))
        drawn += np.arange(rows)[:, None] * count
        counted = np.bincount(drawn.ravel(), minlength=rows * count)
        yield counted.reshape(rows, count).astype(np.float64)


def sums_by_cluster(columns: list[Floats], clusters: Codes | None) -> Floats:
    """Sum each column over the rows of each cluster; without clusters each row is its own."""
    if clusters is None:
        return np.stack(columns, axis=1)
    return np.stack([np.bincount(clusters, column) for column in columns], axis=1)


def bootstrap(columns: Floats, statistic: Callable[[Floats], Floats], seed: int = 0) -> Estimate:
    """Estimate a statistic of column sums, such as a ratio; one line of `columns` a cluster.

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
    wide = t95(clusters - 1) * (clusters / (clusters - 1)) ** 0.5
    tail = NormalDist().cdf(-wide)
    # Undefined values, from resamples without anything to divide by, count as infinite.
    ordered = np.sort(np.where(np.isnan(drawn), np.inf, drawn))
    last = len(ordered) - 1
    low, high = ordered[int(tail * last)], ordered[last - int(tail * last)]
    return _finite(low), _finite(high)


def _spread(drawn: Floats) -> float | None:
    return float(np.std(drawn, ddof=1)) if np.isfinite(drawn).all() else None


def _finite(value: np.float64) -> float | None:
    return float(value) if np.isfinite(value) else None
