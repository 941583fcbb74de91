"""Suites in a comparison: how much each example counts in the figure that is published."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cbench_server.comparison.pairs import Matched
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Codes, Floats, standard_error, t95
from cbench_server.metrics.suites import Suite


def weighed(matched: Matched, suites: Iterable[Suite]) -> Matched:
    """Weigh examples as the suite does that consists of just their datasets, if there is one."""
    rows = Counter(dataset for dataset, _ in matched.keys)
    for suite in suites:
        if suite.withheld or suite.parts.keys() != rows.keys():
            continue
        weights = suite.weights(rows)
        codes = {label: code for code, label in enumerate(rows)}
        return replace(
            matched,
            score=suite.label,
            weights=np.array([weights[label] / rows[label] for label, _ in matched.keys]),
            parts=np.array([codes[label] for label, _ in matched.keys]),
        )
    return matched


def weighted_mean(
    values: Floats, weights: Floats, parts: Codes, clusters: Codes | None
) -> Estimate:
    """Estimate a weighted sum over parts that were drawn apart from each other.

    Rows vary around the mean of their part, and clusters lie within parts.
    """
    mean = float((weights * values).sum())
    counts = np.bincount(parts)
    means = np.bincount(parts, values) / counts
    # As many witnesses as clusters.
    witnesses = counts
    if clusters is not None:
        _, first = np.unique(clusters, return_index=True)
        witnesses = np.bincount(parts[first], minlength=len(counts))
    widened = np.sqrt(witnesses / np.maximum(witnesses - 1, 1))
    apart = (values - means[parts]) * widened[parts]
    is_lone = witnesses[parts] == 1
    if is_lone.any():
        # One witness shows no spread: it is taken to have that of the others.
        others = apart[~is_lone] if (~is_lone).any() else values - values.mean()
        apart[is_lone] = np.sqrt(np.square(others).mean())
    residuals = weights * len(values) * apart
    stderr, degrees = standard_error(residuals, clusters)
    if stderr is None:
        return Estimate(mean)
    # Each part was widened for itself already.
    stderr *= (degrees / (degrees + 1)) ** 0.5
    half = t95(max(degrees + 1 - len(counts), 1)) * stderr
    return Estimate(mean, stderr, mean - half, mean + half)
