"""Significance tests for paired scores."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from cbench_server.metrics.stats.intervals import Floats

_EXACT_UP_TO = 16
_FLIPS = 9999
# Beyond this many, the sum of flipped differences is normal to more digits than
# random flips would give.
_NORMAL_BEYOND = 5_000
_AT_ONCE = 2_000_000


def sign_flip_p(sums: Floats, *, flips: int = _FLIPS, seed: int = 0) -> tuple[float, str]:
    """Test whether paired differences centre on 0: two-sided p, and how it was found.

    If A and B were the same, each difference might as well have the other
    sign. `sums` has one number per cluster, which is flipped as a whole.
    """
    sums = sums[sums != 0.0]
    observed = abs(float(sums.sum()))
    # Equal sums must count as equal, however they were rounded.
    least = observed - 1e-9 * float(np.abs(sums).sum())
    if len(sums) <= _EXACT_UP_TO:
        totals = np.zeros(1)
        for each in sums:
            totals = np.concatenate([totals + each, totals - each])
        return float((np.abs(totals) >= least).mean()), "exact paired permutation"
    if len(sums) > _NORMAL_BEYOND:
        z = observed / math.sqrt(float(np.square(sums).sum()))
        return 2 * NormalDist().cdf(-z), "paired permutation, normal limit"
    draw = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // len(sums))
    width = math.ceil(len(sums) / 8)
    extreme = 0
    for first in range(0, flips, step):
        rows = min(step, flips - first)
        # A bit for each sign: drawing whole numbers instead takes most of the time.
        drawn = np.frombuffer(draw.bytes(rows * width), np.uint8).reshape(rows, width)
        kept = np.unpackbits(drawn, axis=1, count=len(sums))
        totals = 2 * (kept.astype(np.float64) @ sums) - sums.sum()
        extreme += int((np.abs(totals) >= least).sum())
    return (1 + extreme) / (1 + flips), "paired permutation"


def mcnemar_p(wins: int, losses: int) -> float:
    """Test 0/1 scores by the examples on which they differ: two-sided mid-p of McNemar's test."""
    total, fewer = wins + losses, min(wins, losses)
    if wins == losses:
        return 1.0
    # Half of the chance of what was seen, and all of what would be more extreme.
    chance = math.exp(
        math.lgamma(total + 1)
        - math.lgamma(fewer + 1)
        - math.lgamma(total - fewer + 1)
        - total * math.log(2)
    )
    tail = chance / 2
    for count in range(fewer, 0, -1):
        chance *= count / (total - count + 1)
        tail += chance
        if chance < 1e-18 * tail:
            break
    return min(2 * tail, 1.0)


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p-values so that the chance of any false claim among them stays at the level."""
    adjusted = [0.0] * len(ps)
    running = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, min(ps[place] * (len(ps) - rank), 1.0))
        adjusted[place] = running
    return adjusted
