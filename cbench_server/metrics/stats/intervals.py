"""Standard errors and 95 % intervals: of means, of shares, of percentiles."""

import itertools
import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cbench_server.metrics.stats.estimate import Estimate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

Z95 = NormalDist().inv_cdf(0.975)

_HUGE = 1e150
_PIECE = 10_000

# Student's t at 97.5 % for 1 to 30 degrees of freedom; beyond, a series is exact enough.
# fmt: off
_T95 = (
    12.7062047364, 4.3026527297, 3.1824463053, 2.7764451052, 2.5705818356,
    2.4469118511, 2.3646242516, 2.3060041352, 2.2621571628, 2.2281388520,
    2.2009851601, 2.1788128297, 2.1603686565, 2.1447866879, 2.1314495456,
    2.1199052992, 2.1098155778, 2.1009220402, 2.0930240544, 2.0859634473,
    2.0796138447, 2.0738730679, 2.0686576104, 2.0638985616, 2.0595385528,
    2.0555294386, 2.0518305165, 2.0484071418, 2.0452296421, 2.0422724563,
)
# fmt: on


def t95(degrees: int) -> float:
    """Return the half width, in standard errors, of a 95 % interval."""
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    z, n = Z95, degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def mean_of(values: Floats, clusters: Codes | None = None, *, in_unit: bool = False) -> Estimate:
    """Estimate a mean; rows of one cluster vary together and count as one witness.

    Zeros and ones get Wilson's interval, which has a width even where all are
    equal; other values Student's. `in_unit` says that values lie between 0
    and 1, and so does their mean.
    """
    if not len(values):
        return Estimate()
    largest = float(np.abs(values).max())
    if largest > _HUGE:
        # Sums and squares of such values would be infinite.
        small = mean_of(values / largest, clusters)
        parts = (small.value, small.stderr, small.low, small.high)
        return Estimate(*(None if part is None else _finite(part * largest) for part in parts))
    mean = _exact_sum(values) / len(values)
    stderr, degrees = standard_error(values - mean, clusters)
    low: float | None = None
    high: float | None = None
    if is_binary(values):
        low, high = _wilson(mean, stderr, len(values), None if clusters is None else degrees)
    elif stderr is not None:
        half = t95(degrees) * stderr
        low, high = mean - half, mean + half
        if in_unit:
            low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(mean, stderr, low, high)


def _exact_sum(values: Floats) -> float:
    """Sum in pieces: of all values at once a list would take five times their memory."""
    pieces = (values[at : at + _PIECE].tolist() for at in range(0, len(values), _PIECE))
    return math.fsum(itertools.chain.from_iterable(pieces))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def standard_error(residuals: Floats, clusters: Codes | None) -> tuple[float | None, int]:
    """Return the standard error of a mean, robust to clusters, and its degrees of freedom."""
    sums = residuals if clusters is None else np.bincount(clusters, residuals)
    count = len(sums)
    if count < 2:
        return None, 0
    square = float(np.square(sums).sum()) * count / (count - 1)
    return math.sqrt(square) / len(residuals), count - 1


def is_binary(values: Floats) -> bool:
    """Whether all are 0 or 1."""
    return bool(((values == 0.0) | (values == 1.0)).all())


def _wilson(
    share: float, stderr: float | None, count: int, degrees: int | None
) -> tuple[float, float]:
    """Return Wilson's interval; with clusters, for as many rows as they are worth."""
    z, worth = Z95, float(count)
    if degrees is not None:
        z = t95(max(degrees, 1))
        spread = share * (1 - share)
        worth = min(worth, spread / stderr**2) if stderr and spread else degrees + 1.0
    centre = (share + z * z / (2 * worth)) / (1 + z * z / worth)
    half = z / (1 + z * z / worth) * math.sqrt(share * (1 - share) / worth + (z / worth) ** 2 / 4)
    # At the edge the interval ends there, which rounding would miss.
    low = 0.0 if share == 0.0 else max(centre - half, 0.0)
    high = 1.0 if share == 1.0 else min(centre + half, 1.0)
    return low, high


def percentile_of(ordered: Floats, percent: int) -> Estimate:
    """Estimate a percentile by nearest rank; the interval's ends are values, too.

    Its ranks follow from the binomial distribution, for values of any kind. An
    end that would lie beyond the values is None.
    """
    count = len(ordered)
    if not count:
        return Estimate()
    rank = max(math.ceil(count * percent / 100), 1)
    below, above = _ranks(count, percent)
    return Estimate(
        float(ordered[rank - 1]),
        None,
        float(ordered[below - 1]) if below >= 1 else None,
        float(ordered[above - 1]) if above <= count else None,
    )


def least_for_percentile(percent: int) -> int:
    """Return how many values it takes until both ends of a percentile's interval are there."""

    def has_ends(count: int) -> bool:
        below, above = _ranks(count, percent)
        return below >= 1 and above <= count

    return next(count for count in itertools.count(1) if has_ends(count))


def _ranks(count: int, percent: int) -> tuple[int, int]:
    share = percent / 100
    spread = Z95 * math.sqrt(count * share * (1 - share))
    return math.floor(count * share - spread), math.ceil(count * share + spread) + 1
