"""Comparisons: who is paired with whom, what is claimed, and how it is said."""

from dataclasses import replace

import numpy as np
import pytest
import scipy

from cbench_server.comparison import Comparison, compare, compare_two
from cbench_server.comparison.sentences import sentence
from cbench_server.errors import InvalidInput
from cbench_server.results import EvalRow, Failure
from tests.comparison.conftest import MakeRows


def both(a: list[EvalRow], b: list[EvalRow]) -> Comparison:
    return compare({"a": a, "b": b})


def test_a_clear_winner_is_named_with_its_margin_and_its_saving(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(1)
    base = draw.uniform(0.2, 0.7, 200)
    a = make_rows("a", base + 0.1 + draw.normal(0, 0.05, 200), context_tokens_out=59)
    b = make_rows("b", base, context_tokens_out=100)
    [pair] = both(a, b).pairs
    assert pair.sentence == (
        "a is better than b on f1 by 9.6 points (95% CI 8.9 to 10.2, p<0.001) "
        "and uses 41% fewer context tokens."
    )
    swapped = compare({"b": b, "a": a}).pairs[0]
    assert swapped.sentence == pair.sentence
    assert (swapped.wins, swapped.losses) == (pair.losses, pair.wins)
    assert swapped.difference.value == -(pair.difference.value or 0.0)


def test_without_a_difference_it_says_how_many_examples_would_show_one(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(2)
    base = draw.uniform(0.3, 0.7, 100)
    [pair] = both(make_rows("a", base + draw.normal(0, 0.1, 100)), make_rows("b", base)).pairs
    assert not pair.is_claimed
    assert "No difference can be claimed; about 80 more examples would be needed" in pair.sentence
    assert pair.sentence.endswith("to see 2 points.")


def test_enough_examples_without_a_difference_say_that_one_would_have_shown(
    make_rows: MakeRows,
) -> None:
    base = np.tile([0.5, 0.501], 100)
    [pair] = both(make_rows("a", base), make_rows("b", base[::-1])).pairs
    assert pair.more_examples == 0
    assert pair.sentence.endswith("one of 2 points would probably have shown.")


def test_equal_scores_are_called_equal(make_rows: MakeRows) -> None:
    [pair] = both(
        make_rows("a", [0.5, 0.7], context_tokens_out=50),
        make_rows("b", [0.5, 0.7], context_tokens_out=100),
    ).pairs
    assert pair.sentence == (
        "a and b have the same f1 on all 2 examples and a uses 50% fewer context tokens."
    )
    # With its mark, where it has one.
    said = sentence(replace(pair, score="judge_score†"))
    assert said.startswith("a and b have the same judge_score† on all 2")


def test_equal_scores_leave_room_for_examples_that_were_not_seen(make_rows: MakeRows) -> None:
    few, many = (
        both(make_rows("a", [0.5] * count), make_rows("b", [0.5] * count)).pairs[0].difference
        for count in (20, 400)
    )
    assert few.high is not None
    assert many.high is not None
    assert few.high > 10 * many.high > 0.0
    assert few.low == -few.high


def test_systems_that_never_score_may_still_differ_on_examples_not_seen(
    make_rows: MakeRows,
) -> None:
    [pair] = both(make_rows("a", [None] * 20), make_rows("b", [0.0] * 20)).pairs
    assert pair.difference.high == pytest.approx(0.126, abs=0.001)


def test_one_example_shows_nothing(make_rows: MakeRows) -> None:
    [same] = both(make_rows("a", [1.0]), make_rows("b", [1.0])).pairs
    assert same.sentence == "a and b have the same f1 on the only example."
    assert same.minimum_detectable is None
    [other] = both(make_rows("a", [1.0]), make_rows("b", [0.0])).pairs
    assert other.sentence.endswith("1 example is too few.")


def test_the_difference_equals_scipys_paired_interval(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(3)
    a, b = draw.random(50), draw.random(50)
    [pair] = both(make_rows("a", a), make_rows("b", b)).pairs
    interval = scipy.stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (pair.difference.low, pair.difference.high) == pytest.approx(
        (interval.low, interval.high)
    )
    assert (pair.wins, pair.losses) == (int((a > b).sum()), int((a < b).sum()))


def test_examples_of_a_group_are_one_witness(make_rows: MakeRows) -> None:
    # Here, since every worker of the suite imports what stands above, and this takes seconds.
    from statsmodels.regression.linear_model import OLS

    draw = np.random.default_rng(4)
    groups = [str(place // 5) for place in range(100)]
    shift = np.repeat(draw.normal(0, 0.2, 20), 5)
    a, b = 0.5 + shift + draw.normal(0, 0.02, 100), np.full(100, 0.5)
    [pair] = both(make_rows("a", a, group=groups), make_rows("b", b, group=groups)).pairs
    codes = np.arange(100) // 5
    fitted = OLS(a - b, np.ones(100)).fit(
        cov_type="cluster", cov_kwds={"groups": codes}, use_t=True
    )
    assert pair.clusters == 20
    assert pair.difference.stderr == pytest.approx(fitted.bse[0])
    alone = both(make_rows("a", a), make_rows("b", b)).pairs[0]
    assert alone.difference.stderr is not None
    assert pair.difference.stderr is not None
    assert pair.difference.stderr > 2 * alone.difference.stderr
    assert pair.p > alone.p


def test_examples_are_matched_by_dataset_and_id_whatever_their_order(make_rows: MakeRows) -> None:
    a = make_rows("a", [0.1, 0.2, 0.3])
    b = make_rows("b", [0.1, 0.2, 0.3])
    elsewhere = [replace(row, dataset="other") for row in make_rows("b", [0.9, 0.9, 0.9])]
    found = both(a, [*elsewhere, *reversed(b)])
    assert (found.pairs[0].examples, found.pairs[0].ties) == (3, 3)
    assert "3 examples of b have no counterpart in a: left out." in found.notes


def test_an_id_that_is_a_number_is_not_its_text(make_rows: MakeRows) -> None:
    a = [replace(row, example_id=7) for row in make_rows("a", [0.5])]
    b = [replace(row, example_id="7") for row in make_rows("b", [0.5])]
    with pytest.raises(InvalidInput, match="no example in common"):
        both(a, b)


def test_a_failure_of_the_system_counts_as_zero_and_ours_is_left_out(make_rows: MakeRows) -> None:
    a = make_rows("a", [None, 1.0, 0.75])
    a[1] = replace(a[1], scores={}, failure=Failure("evaluator", "BROKEN", "we broke"))
    found = both(a, make_rows("b", [0.5, 0.5, 0.5]))
    [pair] = found.pairs
    assert (pair.examples, pair.losses, pair.wins) == (2, 1, 1)
    assert pair.mean_a == 0.375
    assert "1 examples of a have no score and are left out." in found.notes


def test_repeats_are_averaged_before_they_are_compared(make_rows: MakeRows) -> None:
    once, again = make_rows("a", [1.0, 0.0]), make_rows("a", [0.0, 0.0], repeat=1)
    [pair] = both([*once, *again], make_rows("b", [0.5, 0.0])).pairs
    assert (pair.examples, pair.ties) == (2, 2)


def test_zeros_and_ones_are_compared_by_mcnemar(make_rows: MakeRows) -> None:
    a, b = [1.0] * 30 + [0.0] * 10, [1.0] * 15 + [0.0] * 20 + [1.0] * 5
    [pair] = both(make_rows("a", a), make_rows("b", b)).pairs
    assert pair.test == "mid-p McNemar"
    assert (pair.flipped_to_a, pair.flipped_to_b, pair.ties) == (15, 5, 20)
    expected = 2 * scipy.stats.binom.cdf(5, 20, 0.5) - scipy.stats.binom.pmf(5, 20, 0.5)
    assert pair.p == pytest.approx(expected)


def test_scores_of_different_names_are_not_compared(make_rows: MakeRows) -> None:
    a = make_rows("a", [0.5, 0.5])
    b = [
        replace(row, scores={"answer_retained": 1.0}, primary_score="answer_retained")
        for row in make_rows("b", [0.5, 0.5])
    ]
    with pytest.raises(InvalidInput, match=r"answer_retained and f1.*They share no score\."):
        both(a, b)
    for row in b:
        row.scores["f1"] = 0.5
    with pytest.raises(InvalidInput, match="Name one of f1 with --score-field"):
        both(a, b)


def test_several_systems_share_the_risk_of_a_false_claim(make_rows: MakeRows) -> None:
    draw = np.random.default_rng(5)
    base = draw.random(40)
    sides = {name: make_rows(name, base + draw.normal(0, 0.1, 40)) for name in "abc"}
    found = compare(sides)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in found.pairs:
        assert pair.comparisons == 3
        assert pair.p_adjusted >= pair.p
    smallest = min(found.pairs, key=lambda pair: pair.p)
    assert smallest.p_adjusted == pytest.approx(min(1.0, 3 * smallest.p))


def test_a_pair_without_common_examples_does_not_spoil_the_others(make_rows: MakeRows) -> None:
    apart = [replace(row, dataset="other") for row in make_rows("c", [0.5, 0.5])]
    sides = {"a": make_rows("a", [0.5, 0.5]), "b": make_rows("b", [0.5, 0.6]), "c": apart}
    found = compare(sides)
    assert [(pair.a, pair.b) for pair in found.pairs] == [("a", "b")]
    assert any('"a" and "c" have no example in common' in note for note in found.notes)


def test_a_dataset_that_changed_between_runs_is_noticed(make_rows: MakeRows) -> None:
    b = [replace(row, input_tokens=90) for row in make_rows("b", [0.5, 0.5])]
    notes = both(make_rows("a", [0.5, 0.5]), b).notes
    expected = "2 examples have the same id but a different length"
    assert any(note.startswith(expected) for note in notes)
    memory = {"metadata": {"conversation_id": "c"}}
    b = [replace(row, input_tokens=90) for row in make_rows("b", [0.5, 0.5], **memory)]
    assert both(make_rows("a", [0.5, 0.5], **memory), b).notes == ()


def test_scores_beyond_one_are_not_called_points(make_rows: MakeRows) -> None:
    scores = np.random.default_rng(6).uniform(5, 8, 60)
    [pair] = both(make_rows("a", scores + 1.5), make_rows("b", scores - 0.01)).pairs
    assert not pair.in_points
    assert "by 1.51 (95% CI" in pair.sentence


def test_flips_are_listed_with_the_widest_first(make_rows: MakeRows) -> None:
    [pair] = both(make_rows("a", [0.9, 0.2, 1.0]), make_rows("b", [0.6, 0.8, 0.1])).pairs
    assert [flip.example_id for flip in pair.flips] == ["e2", "e1", "e0"]
    assert (pair.flipped_to_a, pair.flipped_to_b) == (2, 1)


def test_two_systems_of_a_run_are_compared_by_name(make_rows: MakeRows) -> None:
    rows = [*make_rows("a", [0.5]), *make_rows("b", [0.25])]
    assert compare_two(rows, "a", "b").difference.value == 0.25
    with pytest.raises(InvalidInput, match='no rows of system "c"; there are: a, b'):
        compare_two(rows, "a", "c")
    with pytest.raises(InvalidInput, match="with itself"):
        compare_two(rows, "a", "a")
