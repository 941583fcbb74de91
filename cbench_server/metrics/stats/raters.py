"""Statistics of raters: agreement, rates corrected for known errors, and labels of people."""

import math
from collections.abc import Sequence

from cbench_server.metrics.stats.estimate import Estimate

_Z95 = 1.959963984540054
_NOTHING = 1e-12


def agreement(a: Sequence[float], b: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the share of equal verdicts, and Cohen's kappa; None where it is not defined."""
    if not a or len(a) != len(b):
        return None, None
    count = len(a)
    observed = sum(x == y for x, y in zip(a, b, strict=True)) / count
    chance = sum(a.count(value) * b.count(value) for value in {*a, *b}) / count**2
    return observed, None if chance == 1.0 else (observed - chance) / (1 - chance)


def corrected_rate(
    share: float, count: int, right: tuple[float, int], wrong: tuple[float, int]
) -> Estimate:
    """Estimate a rate from a judge that accepts known shares of right and of wrong answers.

    (p - wrong) / (right - wrong), clipped to 0 to 1, with an interval by the delta method. It has
    no value where the judge accepts no more right answers than wrong ones.
    """
    (sensitivity, rights), (false_yes, wrongs) = right, wrong
    gain = sensitivity - false_yes
    if gain <= 0 or not count or not rights or not wrongs:
        return Estimate()
    rate = (share - false_yes) / gain
    inside = min(max(rate, 0.0), 1.0)
    variance = (
        _of_share(share, count) / count
        + inside**2 * _of_share(sensitivity, rights) / rights
        + (1 - inside) ** 2 * _of_share(false_yes, wrongs) / wrongs
    ) / gain**2
    return _in_unit(inside, variance)


def weighted(parts: Sequence[tuple[int, Estimate]]) -> Estimate:
    """Return the estimate for parts together, each with its rows; none if one of them has none."""
    count = sum(rows for rows, _ in parts)
    if not count:
        return Estimate()
    value = variance = 0.0
    for rows, part in parts:
        if part.value is None or part.stderr is None:
            return Estimate()
        value += part.value * rows / count
        variance += (part.stderr * rows / count) ** 2
    return _in_unit(value, variance)


def prediction_powered(
    judged: Sequence[float], labelled: Sequence[tuple[float, float]]
) -> Estimate:
    """Estimate the mean that people would give, from all verdicts and a sample with labels.

    `labelled` pairs a person's verdict with the judge's. The judge's mean is moved by the mean
    difference on the sample; both add to the variance.
    """
    if not judged or len(labelled) < 2:
        return Estimate()
    differences = [person - judge for person, judge in labelled]
    value = _mean(judged) + _mean(differences)
    variance = _variance(judged)
    if variance < _NOTHING:
        variance = _of_share(_mean(judged), len(judged))
    of_differences = _variance(differences)
    if of_differences < _NOTHING:
        # Labels that all agree do not prove that others would: one more to each side is added.
        of_differences = 2 / (len(differences) + 2)
    return _in_unit(value, variance / len(judged) + of_differences / len(differences))


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Return Spearman's correlation with an interval by Fisher's transformation."""
    count = len(a)
    if count < 4:
        return Estimate()
    x, y = _ranks(a), _ranks(b)
    spread = math.sqrt(_variance(x) * _variance(y))
    if not spread:
        return Estimate()
    mean_x, mean_y = _mean(x), _mean(y)
    products = sum((p - mean_x) * (q - mean_y) for p, q in zip(x, y, strict=True))
    value = min(max(products / (count - 1) / spread, -1.0), 1.0)
    if abs(value) == 1.0:
        return Estimate(value, None, value, value)
    centre, half = math.atanh(value), _Z95 / math.sqrt(count - 3)
    return Estimate(value, None, math.tanh(centre - half), math.tanh(centre + half))


def _of_share(share: float, count: int) -> float:
    """Return the variance of one verdict; where all were equal, with two more of each kind."""
    if not 0.0 < share < 1.0:
        share = (share * count + 2) / (count + 4)
    return share * (1 - share)


def _in_unit(value: float, variance: float) -> Estimate:
    half = _Z95 * math.sqrt(variance)
    inside, low, high = (min(max(each, 0.0), 1.0) for each in (value, value - half, value + half))
    return Estimate(inside, math.sqrt(variance), low, high)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _variance(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for place in range(1, len(order) + 1):
        if place == len(order) or values[order[place]] != values[order[start]]:
            for tied in order[start:place]:
                ranks[tied] = (start + place - 1) / 2
            start = place
    return ranks
