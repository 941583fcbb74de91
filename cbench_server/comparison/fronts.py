"""Pareto fronts: systems that no other beats on both quality and cost, and how sure that is."""

import numpy as np

from cbench_server.comparison.pairs import AXES, Matched
from cbench_server.comparison.suites import weighted_mean
from cbench_server.comparison.values import Axis, Front, FrontPoint
from cbench_server.metrics.pareto_rank import ParetoRank
from cbench_server.metrics.stats.bootstrap import resample, sums_by_cluster
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Floats, mean_of
from cbench_server.metrics.stats.scored_rows import Flags


def fronts(matched: Matched, seed: int = 0, *, higher_is_better: bool = True) -> tuple[Front, ...]:
    """Build a front for every kind of cost that two systems or more have."""
    found = (_front(matched, axis, seed, 1.0 if higher_is_better else -1.0) for axis in AXES)
    return tuple(front for front in found if front is not None)


def _front(matched: Matched, axis: Axis, seed: int, sign: float) -> Front | None:
    costs = matched.costs[axis]
    known = np.flatnonzero(~np.isnan(costs).all(axis=0))
    if len(known) < 2:
        return None
    names = [matched.names[place] for place in known]
    quality, cost = _draws(matched, costs[:, known], sign * matched.scores[:, known], seed)
    is_first = _on_front(quality[1:], cost[1:]).mean(axis=0)
    layers = ParetoRank.rank_systems(
        {
            name: {"quality": float(quality[0, place]), "cost": float(cost[0, place])}
            for place, name in enumerate(names)
        },
        "quality",
        "cost",
    )
    points = [
        FrontPoint(
            system=name,
            quality=_quality(matched, matched.scores[:, known[place]]),
            cost=_mean(matched, costs[:, known[place]]).never_negative(),
            layer=layers[name] or 0,
            probability=float(is_first[place]),
        )
        for place, name in enumerate(names)
    ]
    return Front(axis, len(matched.keys), tuple(points))


def _draws(matched: Matched, costs: Floats, scores: Floats, seed: int) -> tuple[Floats, Floats]:
    """Return quality and cost of each system: first as measured, then of every resample.

    All systems are drawn on the same examples, as they were measured.
    """
    has_cost = ~np.isnan(costs)
    weights = np.ones(len(scores)) if matched.weights is None else matched.weights
    weighed = scores * weights[:, None]
    columns = [weights, *weighed.T, *np.where(has_cost, costs, 0.0).T, *has_cost.T]
    by_cluster = sums_by_cluster(
        [column.astype(np.float64) for column in columns], matched.clusters
    )
    sums = np.concatenate([by_cluster.sum(axis=0, keepdims=True), resample(by_cluster, seed)])
    count = scores.shape[1]
    spent, times = sums[:, 1 + count : 1 + 2 * count], sums[:, 1 + 2 * count :]
    # A resample in which a system has no cost at all says that it is not on the front.
    cost = np.divide(spent, times, out=np.full_like(spent, np.inf), where=times > 0)
    return sums[:, 1 : 1 + count] / sums[:, :1], cost


def _on_front(quality: Floats, cost: Floats) -> Flags:
    """Tell, line by line, which systems none dominates."""
    better = (quality[:, None, :] >= quality[:, :, None]) & (cost[:, None, :] <= cost[:, :, None])
    strictly = (quality[:, None, :] > quality[:, :, None]) | (cost[:, None, :] < cost[:, :, None])
    return np.asarray(~(better & strictly).any(axis=2))


def _quality(matched: Matched, values: Floats) -> Estimate:
    if matched.weights is None or matched.parts is None:
        quality = _mean(matched, values)
    else:
        quality = weighted_mean(values, matched.weights, matched.parts, matched.clusters)
    in_unit = bool(((matched.scores >= 0.0) & (matched.scores <= 1.0)).all())
    return quality.in_unit() if in_unit else quality


def _mean(matched: Matched, values: Floats) -> Estimate:
    is_known = ~np.isnan(values)
    clusters = matched.clusters
    if clusters is not None:
        clusters = np.unique(clusters[is_known], return_inverse=True)[1]
    return mean_of(values[is_known], clusters)
