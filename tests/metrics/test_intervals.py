"""Standard errors and intervals: equal to scipy's and statsmodels', and right by simulation."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from cbench_server.metrics.stats.intervals import (
    least_for_percentile,
    mean_of,
    percentile_of,
    t95,
)

Floats = NDArray[np.float64]

WITHIN = 0.015
"""How far coverage may be from 95 %."""
RUNS = 2000


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 29, 30, 31, 40, 100, 1000, 10**6])
def test_students_t_equals_scipys(degrees: int) -> None:
    assert t95(degrees) == pytest.approx(scipy.stats.t.ppf(0.975, degrees), rel=1e-6)


def test_a_mean_equals_scipys() -> None:
    values = np.random.default_rng(1).beta(2, 3, 40)
    found = mean_of(values)
    interval = scipy.stats.t.interval(0.95, 39, values.mean(), scipy.stats.sem(values))
    assert found.value == pytest.approx(values.mean())
    assert found.stderr == pytest.approx(scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx(interval)


def test_a_clustered_mean_equals_statsmodels() -> None:
    # Here, since every worker of the suite imports what stands above, and this takes seconds.
    from statsmodels.regression.linear_model import OLS

    draw = np.random.default_rng(2)
    clusters = draw.integers(0, 12, 90)
    values = draw.normal(size=90) + clusters
    fitted = OLS(values, np.ones(90)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    found = mean_of(values, clusters)
    assert found.stderr == pytest.approx(fitted.bse[0])
    assert (found.low, found.high) == pytest.approx(tuple(fitted.conf_int()[0]))


@pytest.mark.parametrize(("passed", "count"), [(0, 7), (7, 7), (3, 7), (88, 100), (1, 1)])
def test_a_share_equals_statsmodels_wilson(passed: int, count: int) -> None:
    # Here, since every worker of the suite imports what stands above, and this takes seconds.
    from statsmodels.stats.proportion import proportion_confint

    values = np.repeat([1.0, 0.0], [passed, count - passed])
    found = mean_of(values)
    expected = proportion_confint(passed, count, method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_clusters_of_one_give_what_no_clusters_give() -> None:
    values = np.random.default_rng(3).random(25)
    assert mean_of(values, np.arange(25)) == mean_of(values)


def test_rows_that_repeat_each_other_add_no_certainty() -> None:
    values = np.random.default_rng(4).random(20)
    once = mean_of(values)
    fourfold = mean_of(np.repeat(values, 4), np.repeat(np.arange(20), 4))
    assert (fourfold.low, fourfold.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_equal_shares_leave_doubt_in_clusters_too(share: float) -> None:
    found = mean_of(np.full(40, share), np.repeat(np.arange(10), 4))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 0.2


def test_a_single_cluster_tells_nothing_about_its_error() -> None:
    found = mean_of(np.array([0.25, 0.5]), np.zeros(2, np.int64))
    assert (found.value, found.stderr, found.low) == (0.375, None, None)


def test_a_mean_of_scores_between_zero_and_one_stays_there() -> None:
    found = mean_of(np.array([1.0, 1.0, 1.0, 0.9]), in_unit=True)
    assert found.high == 1.0


def covered(truth: float, sample: Callable[[np.random.Generator], tuple[float, float]]) -> float:
    draw = np.random.default_rng(5)
    hits = 0
    for _ in range(RUNS):
        low, high = sample(draw)
        hits += low <= truth <= high
    return hits / RUNS


def ends(values: Floats, clusters: NDArray[np.int64] | None = None) -> tuple[float, float]:
    found = mean_of(values, clusters)
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_intervals_of_a_skewed_score_cover_the_truth() -> None:
    share = covered(0.4, lambda draw: ends(draw.beta(0.4, 0.6, 80)))
    assert share == pytest.approx(0.95, abs=WITHIN)


def test_intervals_of_shares_of_every_size_cover_the_truth() -> None:
    draw = np.random.default_rng(6)
    hits = 0
    for _ in range(RUNS):
        # For a single share coverage goes up and down with it, since counts are whole.
        share = draw.uniform(0.05, 0.95)
        low, high = ends((draw.random(100) < share).astype(np.float64))
        hits += low <= share <= high
    assert hits / RUNS == pytest.approx(0.95, abs=WITHIN)


def test_intervals_of_clustered_scores_cover_the_truth() -> None:
    clusters = np.repeat(np.arange(30), 5)

    def sample(draw: np.random.Generator) -> tuple[float, float]:
        return ends(draw.normal(size=30)[clusters] + draw.normal(size=150), clusters)

    assert covered(0.0, sample) == pytest.approx(0.95, abs=WITHIN)


def test_intervals_of_a_clustered_share_cover_the_truth() -> None:
    clusters = np.repeat(np.arange(40), 5)

    def sample(draw: np.random.Generator) -> tuple[float, float]:
        chance = draw.beta(2, 2, 40)[clusters]
        return ends((draw.random(200) < chance).astype(np.float64), clusters)

    assert covered(0.5, sample) == pytest.approx(0.95, abs=WITHIN)


def test_forgetting_the_clusters_would_show() -> None:
    clusters = np.repeat(np.arange(30), 5)

    def sample(draw: np.random.Generator) -> tuple[float, float]:
        return ends(draw.normal(size=30)[clusters] + draw.normal(size=150))

    assert covered(0.0, sample) < 0.85


@pytest.mark.parametrize("percent", [50, 95])
def test_intervals_of_a_percentile_cover_the_truth(percent: int) -> None:
    truth = float(scipy.stats.expon.ppf(percent / 100))

    def sample(draw: np.random.Generator) -> tuple[float, float]:
        found = percentile_of(np.sort(draw.exponential(size=300)), percent)
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    # Ranks are whole, so the interval is rather too wide.
    assert 0.95 - WITHIN <= covered(truth, sample) <= 0.98


def test_a_percentile_beyond_the_values_has_no_upper_end() -> None:
    found = percentile_of(np.arange(20.0), 99)
    assert (found.value, found.high) == (19.0, None)


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_an_interval_of_a_percentile_has_two_ends_from_so_many_values_on(percent: int) -> None:
    least = least_for_percentile(percent)
    whole, open_ = (percentile_of(np.arange(float(n)), percent) for n in (least, least - 1))
    assert None not in (whole.low, whole.high)
    assert None in (open_.low, open_.high)
