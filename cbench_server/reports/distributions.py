"""Distributions of scores and times, as numbers that a chart draws."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from cbench_server.metrics.latency import nearest_rank
from cbench_server.reports.tally import STAGES, Tally
from cbench_server.texts import numbers

_BINS = 20
_PERCENTILES = (50, 95, 99, 100)


def score_distributions(found: Tally, systems: Sequence[str]) -> list[dict[str, Any]]:
    """Count the values of every score in bins, those that counted in the summary first."""
    primary = {name for used in found.primary.values() for name in used}
    names = {name for _, name in found.scores}
    return [
        _distribution(found, systems, name)
        for name in sorted(names, key=lambda name: (name not in primary, name))
    ]


def _distribution(found: Tally, systems: Sequence[str], name: str) -> dict[str, Any]:
    values = {
        system: [value for value in found.scores[system, name] if math.isfinite(value)]
        for system in systems
        if (system, name) in found.scores
    }
    edges = bin_edges(value for listed in values.values() for value in listed)
    return {
        "score": name,
        "edges": edges,
        "systems": {system: bin_counts(listed, edges) for system, listed in values.items()},
    }


def bin_edges(values: Iterable[float]) -> list[float]:
    """Return the borders of the bins: two bins for a score of 0 or 1, else twenty."""
    distinct = set(values)
    if distinct <= {0.0, 1.0}:
        return [-0.5, 0.5, 1.5]
    low, high = min(0.0, *distinct), max(1.0, *distinct)
    return [low + (high - low) * step / _BINS for step in range(_BINS + 1)]


def bin_counts(values: Iterable[float], edges: Sequence[float]) -> list[int]:
    """Count the values in each bin; the last one holds its upper border too."""
    counts = [0] * (len(edges) - 1)
    width = (edges[-1] - edges[0]) / len(counts)
    for value in values:
        counts[min(int((value - edges[0]) / width), len(counts) - 1)] += 1
    return counts


def stage_times(found: Tally, systems: Sequence[str]) -> list[dict[str, Any]]:
    """Give percentiles, by nearest rank, of every stage in which time was spent."""
    lines = []
    for system in systems:
        for stage in STAGES:
            ordered = sorted(found.times.get((system, stage), ()))
            if ordered and ordered[-1] > 0:
                seconds = [nearest_rank(ordered, percent) for percent in _PERCENTILES]
                lines.append(
                    {
                        "system": system,
                        "stage": stage,
                        "seconds": seconds,
                        "texts": [numbers.seconds(value) for value in seconds],
                    }
                )
    return lines
