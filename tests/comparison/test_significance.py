"""Tests of significance: equal to scipy's and statsmodels', and honest by simulation."""

import itertools

import numpy as np
import pytest
import scipy

from cbench_server.comparison.significance import holm, mcnemar_p, sign_flip_p

WITHIN = 0.015
"""How far the share of false alarms may be from 5 %."""


@pytest.mark.parametrize("count", [1, 5, 12])
def test_few_differences_are_flipped_in_every_way(count: int) -> None:
    differences = np.random.default_rng(count).normal(0.3, 1.0, count)
    p, how = sign_flip_p(differences)
    flipped = [
        abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=count)
    ]
    expected = np.mean(np.array(flipped) >= abs(differences.sum()) - 1e-9)
    assert p == pytest.approx(expected)
    assert how == "exact paired permutation"


def test_many_differences_give_scipys_permutation_p() -> None:
    differences = np.random.default_rng(2).normal(0.2, 1.0, 60)
    theirs = scipy.stats.permutation_test(
        (differences, np.zeros(60)),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(3),
    )
    assert sign_flip_p(differences)[0] == pytest.approx(theirs.pvalue, abs=0.015)


def test_very_many_differences_give_what_random_flips_give() -> None:
    differences = np.random.default_rng(4).exponential(size=12_000) - 0.98
    p, how = sign_flip_p(differences)
    randomly, _ = sign_flip_p(differences[:4_999], flips=2000)
    assert how.endswith("normal limit")
    z = differences[:4_999].sum() / np.sqrt(np.square(differences[:4_999]).sum())
    assert randomly == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), abs=0.03)
    assert 0.0 <= p <= 1.0


def test_no_difference_at_all_is_no_evidence() -> None:
    assert sign_flip_p(np.zeros(50))[0] == 1.0
    assert mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize(("wins", "losses"), [(1, 0), (3, 9), (40, 22), (500, 430), (7000, 6800)])
def test_mcnemars_mid_p_follows_from_the_binomial(wins: int, losses: int) -> None:
    fewer, total = min(wins, losses), wins + losses
    exact = 2 * scipy.stats.binom.cdf(fewer, total, 0.5)
    expected = min(exact - scipy.stats.binom.pmf(fewer, total, 0.5), 1.0)
    assert mcnemar_p(wins, losses) == pytest.approx(expected, rel=1e-6)
    assert mcnemar_p(losses, wins) == mcnemar_p(wins, losses)


def test_holm_equals_statsmodels() -> None:
    # Here, since every worker of the suite imports what stands above, and this takes seconds.
    from statsmodels.stats.multitest import multipletests

    ps = [0.04, 0.001, 0.8, 0.012, 0.04]
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_without_a_difference_the_permutation_test_rejects_five_percent() -> None:
    draw = np.random.default_rng(5)
    rejected = sum(
        sign_flip_p(draw.normal(size=14) * draw.gamma(1.0, size=14))[0] < 0.05 for _ in range(2000)
    )
    assert rejected / 2000 == pytest.approx(0.05, abs=WITHIN)


def test_random_flips_reject_five_percent_too() -> None:
    draw = np.random.default_rng(6)
    rejected = sum(
        sign_flip_p(draw.normal(size=60), flips=999, seed=run)[0] < 0.05 for run in range(2000)
    )
    assert rejected / 2000 == pytest.approx(0.05, abs=WITHIN)


def test_without_a_difference_mid_p_rejects_five_percent() -> None:
    draw = np.random.default_rng(7)
    rejected = 0
    for _ in range(4000):
        # Correlated 0/1 scores with the same chance: hard examples are hard for both.
        chance = draw.beta(1, 1, 300)
        a, b = draw.random(300) < chance, draw.random(300) < chance
        rejected += mcnemar_p(int((a & ~b).sum()), int((b & ~a).sum())) < 0.05
    assert rejected / 4000 == pytest.approx(0.05, abs=WITHIN)
