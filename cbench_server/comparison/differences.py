"""Difference between two systems: its size, its p-value, and what could have been seen."""

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from cbench_server.comparison.pairs import AXES, Matched
from cbench_server.comparison.significance import mcnemar_p, sign_flip_p
from cbench_server.comparison.suites import weighted_mean
from cbench_server.comparison.values import CostChange, Flip, PairedDifference
from cbench_server.metrics.stats.bootstrap import bootstrap, sums_by_cluster
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Z95, Codes, Floats, is_binary, standard_error, t95
from cbench_server.metrics.stats.scored_rows import Flags

_POWER_Z = NormalDist().inv_cdf(0.8)
_FLIPS_KEPT = 50


def paired_difference(
    pair: Matched, *, threshold: float, effect: float, seed: int
) -> PairedDifference:
    """Compare the two systems of `pair`; p is not adjusted yet, and there is no sentence."""
    a, b = pair.scores.T
    differences = a - b
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    largest = float(np.abs(pair.scores).max())
    if not wins and not losses:
        difference = no_difference(pair.num_clusters, max(largest, 1.0))
        p, test = 1.0, "no example differs"
    elif pair.weights is not None and pair.parts is not None:
        difference = weighted_mean(differences, pair.weights, pair.parts, pair.clusters)
        sums = sums_by_cluster([differences * pair.weights], pair.clusters)[:, 0]
        p, test = sign_flip_p(sums, seed=seed)
    elif pair.clusters is None and is_binary(a) and is_binary(b):
        difference = paired_shares(wins, losses, len(differences))
        p, test = mcnemar_p(wins, losses), "mid-p McNemar"
    else:
        difference = mean_of_differences(differences, pair.clusters)
        sums = sums_by_cluster([differences], pair.clusters)[:, 0]
        p, test = sign_flip_p(sums, seed=seed)
    to_a, to_b = _flipped(a, b, threshold)
    in_points = largest <= 1.0
    if not in_points:
        effect *= largest
    detectable = minimum_detectable(difference, pair.num_clusters)
    return PairedDifference(
        a=pair.names[0],
        b=pair.names[1],
        score=pair.score,
        examples=len(pair.keys),
        clusters=pair.num_clusters,
        mean_a=float(np.average(a, weights=pair.weights)),
        mean_b=float(np.average(b, weights=pair.weights)),
        difference=difference,
        p=p,
        p_adjusted=p,
        test=test,
        comparisons=1,
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        minimum_detectable=detectable,
        effect=effect,
        more_examples=more_examples(detectable, effect, len(differences)),
        flipped_to_a=int(to_a.sum()),
        flipped_to_b=int(to_b.sum()),
        flips=_flips(pair, to_a | to_b),
        costs=tuple(_cost_changes(pair)),
        in_points=in_points,
        sentence="",
    )


def mean_of_differences(differences: Floats, clusters: Codes | None) -> Estimate:
    """Estimate the mean difference by Student's t, over clusters where there are some."""
    mean = math.fsum(differences.tolist()) / len(differences)
    stderr, degrees = standard_error(differences - mean, clusters)
    if stderr is None:
        return Estimate(mean)
    half = t95(degrees) * stderr
    return Estimate(mean, stderr, mean - half, mean + half)


def paired_shares(wins: int, losses: int, pairs: int) -> Estimate:
    """Estimate the difference of two shares by the adjusted Wald interval of Bonett and Price.

    It has a width even where all pairs agree.
    """
    more, less = (wins + 1) / (pairs + 2), (losses + 1) / (pairs + 2)
    stderr = math.sqrt((more + less - (more - less) ** 2) / (pairs + 2))
    centre = more - less
    low, high = max(centre - Z95 * stderr, -1.0), min(centre + Z95 * stderr, 1.0)
    return Estimate((wins - losses) / pairs, stderr, low, high)


def no_difference(clusters: int, largest: float) -> Estimate:
    """Estimate a difference that no example shows: a few unseen ones may still differ entirely."""
    unseen = paired_shares(0, 0, clusters)
    assert unseen.stderr is not None
    half = Z95 * unseen.stderr * largest
    return Estimate(0.0, unseen.stderr * largest, -half, half)


def minimum_detectable(difference: Estimate, clusters: int) -> float | None:
    """Return the true difference that would be seen with 80 % probability."""
    if difference.stderr is None or clusters < 2:
        return None
    return (t95(clusters - 1) + _POWER_Z) * difference.stderr


def more_examples(detectable: float | None, effect: float, examples: int) -> int | None:
    """Return how many further examples of the same kind would show `effect`; 0 if these do."""
    if detectable is None:
        return None
    return max(0, math.ceil(examples * (detectable / effect) ** 2) - examples)


def _flipped(a: Floats, b: Floats, threshold: float) -> tuple[Flags, Flags]:
    passed_a, passed_b = a >= threshold, b >= threshold
    return passed_a & ~passed_b, passed_b & ~passed_a


def _flips(pair: Matched, flipped: Flags) -> tuple[Flip, ...]:
    places = np.flatnonzero(flipped)
    gaps = np.abs(pair.scores[places, 0] - pair.scores[places, 1])
    chosen = places[np.argsort(-gaps, kind="stable")][:_FLIPS_KEPT]
    found = []
    for place in chosen:
        (dataset, example_id), (a, b) = pair.keys[place], pair.scores[place]
        found.append(Flip(dataset, example_id, float(a), float(b)))
    return tuple(found)


def _cost_changes(pair: Matched) -> Iterator[CostChange]:
    for axis in AXES:
        costs = pair.costs[axis]
        known = ~np.isnan(costs).any(axis=1)
        a, b = costs[known].T
        if not len(b) or not b.sum():
            continue
        clusters = pair.clusters
        if clusters is not None:
            clusters = np.unique(clusters[known], return_inverse=True)[1]
        change = bootstrap(
            sums_by_cluster([a, b], clusters), lambda sums: sums[:, 0] / sums[:, 1] - 1
        )
        yield CostChange(axis, float(a.mean()), float(b.mean()), change)
