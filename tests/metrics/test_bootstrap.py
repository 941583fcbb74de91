"""The bootstrap: seeded, of a known spread, and right by simulation."""

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from cbench_server.metrics.stats.bootstrap import bootstrap, resample, sums_by_cluster
from cbench_server.metrics.stats.estimate import Estimate

Floats = NDArray[np.float64]


def ratio(sums: Floats) -> Floats:
    return sums[:, 0] / sums[:, 1]


def pairs(draw: np.random.Generator, count: int) -> Floats:
    """Tokens before, and what is left of them: long contexts are shortened more."""
    before = draw.gamma(2.0, 50.0, count)
    after = before * draw.beta(3, 3, count)
    return np.stack([after, before], axis=1)


def test_the_same_rows_give_the_same_interval() -> None:
    columns = pairs(np.random.default_rng(1), 60)
    assert bootstrap(columns, ratio) == bootstrap(columns, ratio)
    assert bootstrap(columns, ratio) != bootstrap(columns, ratio, seed=1)


def test_a_ratio_equals_scipys_bootstrap() -> None:
    columns = pairs(np.random.default_rng(2), 400)
    theirs = scipy.stats.bootstrap(
        (columns[:, 0], columns[:, 1]),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=10_000,
        method="percentile",
        rng=np.random.default_rng(3),
    )
    ours = bootstrap(columns, ratio)
    assert ours.stderr == pytest.approx(theirs.standard_error, rel=0.05)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.06 * width)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.06 * width)


def test_blocks_of_a_long_run_have_the_spread_of_its_rows() -> None:
    values = np.random.default_rng(4).exponential(size=(50_000, 1))
    drawn = resample(values)[:, 0] / len(values)
    assert drawn.std() == pytest.approx(values.std() / len(values) ** 0.5, rel=0.06)
    assert drawn.mean() == pytest.approx(values.mean(), rel=1e-3)


def test_a_denominator_that_may_vanish_leaves_the_upper_end_open() -> None:
    columns = np.array([[10.0, 1.0], [10.0, 0.0], [10.0, 0.0], [10.0, 0.0]])
    found = bootstrap(columns, ratio)
    assert (found.value, found.stderr, found.high) == (40.0, None, None)
    assert found.low is not None


def test_nothing_to_divide_by_gives_nothing() -> None:
    assert bootstrap(np.zeros((5, 2)), ratio) == Estimate()


def test_one_cluster_has_a_value_and_no_error() -> None:
    assert bootstrap(np.array([[1.0, 2.0]]), ratio) == Estimate(0.5)


@pytest.mark.parametrize("in_clusters", [False, True])
def test_intervals_of_a_ratio_cover_the_truth(in_clusters: bool) -> None:
    draw = np.random.default_rng(6)
    clusters = np.repeat(np.arange(60), 3)
    hits = 0
    for _ in range(1000):
        if in_clusters:
            # One factor a cluster: its rows are shortened alike.
            before = draw.gamma(2.0, 50.0, 180)
            after = before * draw.beta(3, 3, 60)[clusters]
            columns = sums_by_cluster([after, before], clusters)
        else:
            columns = pairs(draw, 60)
        found = bootstrap(columns, ratio)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    assert hits / 1000 == pytest.approx(0.95, abs=0.015)
