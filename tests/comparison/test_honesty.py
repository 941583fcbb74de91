"""The whole comparison by simulation: how often it errs, and how often its intervals hold."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cbench_server.comparison.differences import (
    mean_of_differences,
    minimum_detectable,
    paired_shares,
)
from cbench_server.comparison.significance import sign_flip_p
from cbench_server.metrics.stats.bootstrap import sums_by_cluster
from cbench_server.metrics.stats.estimate import Estimate

RUNS = 2000
WITHIN = 0.015

CLUSTERS = np.repeat(np.arange(25), 4)


def scores(draw: np.random.Generator, gain: float) -> NDArray[np.float64]:
    """Differences of two scores on 60 examples, skewed as F1 is."""
    return draw.beta(0.5, 0.5, 60) - draw.beta(0.5, 0.5, 60) + gain


def grouped(draw: np.random.Generator, gain: float) -> NDArray[np.float64]:
    """Differences on 25 documents with four questions each, alike within a document."""
    return draw.normal(0, 0.2, 25)[CLUSTERS] + draw.normal(0, 0.1, 100) + gain


def holds(found: Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_intervals_of_a_difference_cover_it() -> None:
    draw = np.random.default_rng(1)
    hits = sum(holds(mean_of_differences(scores(draw, 0.05), None), 0.05) for _ in range(RUNS))
    assert hits / RUNS == pytest.approx(0.95, abs=WITHIN)


def test_intervals_of_a_clustered_difference_cover_it() -> None:
    draw = np.random.default_rng(2)
    hits = sum(holds(mean_of_differences(grouped(draw, 0.05), CLUSTERS), 0.05) for _ in range(RUNS))
    assert hits / RUNS == pytest.approx(0.95, abs=WITHIN)


def test_intervals_of_a_difference_of_shares_cover_it() -> None:
    draw = np.random.default_rng(3)
    hits = 0
    for _ in range(RUNS):
        # Of 100 pairs about 15 go one way and 8 the other.
        wins, losses, _ = draw.multinomial(100, [0.15, 0.08, 0.77])
        hits += holds(paired_shares(int(wins), int(losses), 100), 0.07)
    assert hits / RUNS == pytest.approx(0.95, abs=WITHIN)


@pytest.mark.parametrize("is_grouped", [False, True])
def test_where_there_is_no_difference_five_percent_are_claimed(is_grouped: bool) -> None:
    draw = np.random.default_rng(4)
    claims = 0
    for run in range(RUNS):
        differences = grouped(draw, 0.0) if is_grouped else scores(draw, 0.0)
        sums = sums_by_cluster([differences], CLUSTERS if is_grouped else None)[:, 0]
        claims += sign_flip_p(sums, flips=499, seed=run)[0] < 0.05
    assert claims / RUNS == pytest.approx(0.05, abs=WITHIN)


def test_the_detectable_difference_is_detected_four_times_in_five() -> None:
    draw = np.random.default_rng(5)
    typical = np.mean(
        [
            minimum_detectable(mean_of_differences(scores(draw, 0.0), None), 60) or 0.0
            for _ in range(200)
        ]
    )
    seen = sum(
        sign_flip_p(scores(draw, float(typical)), flips=499, seed=run)[0] < 0.05
        for run in range(RUNS)
    )
    assert seen / RUNS == pytest.approx(0.8, abs=0.03)
