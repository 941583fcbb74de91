"""Curves of a sweep: the share of tokens that is enough, as an interval or not reached."""

from typing import Any

import numpy as np
import pytest

from cbench_server.comparison.sweeps import Arm, crossing, sweep_of
from cbench_server.errors import InvalidInput
from cbench_server.results import EvalRow, Failure
from cbench_server.types import ScoreInfo


def row(system: str, number: int, score: float, tokens: int | None, **fields: Any) -> EvalRow:
    return EvalRow(
        system,
        number,
        {"f1": score},
        100,
        0,
        ordinal=number,
        primary_score="f1",
        context_tokens_in=100,
        context_tokens_out=tokens,
        **fields,
    )


def arm(system: str, scores: Any, tokens: Any, value: float | None = None, cut: str = "") -> Arm:
    lengths = np.broadcast_to(tokens, (len(scores),))
    rows = [
        row(system, n, float(score), int(length))
        for n, (score, length) in enumerate(zip(scores, lengths, strict=True))
    ]
    return Arm(system, rows, value, cut)


def swept(points: list[Arm], whole: Arm | None, controls: Any = (), **settings: Any) -> Any:
    return sweep_of(
        points, whole, controls, tokens_of=lambda row: row.context_tokens_out, **settings
    )


@pytest.mark.parametrize(
    ("quality", "expected"),
    [
        ([0.1, 0.5, 0.9], 0.5 + 0.3 / 0.4 * 0.4),
        ([0.8, 0.9, 1.0], -np.inf),
        ([0.1, 0.2, 0.7], np.inf),
        # Not monotone: a dip after the goal counts, a peak before it does not.
        ([0.9, 0.5, 0.9], 0.5 + 0.3 / 0.4 * 0.4),
        ([0.1, 0.9, 0.7], np.inf),
        ([0.1, 0.8, 0.8], 0.5),
    ],
)
def test_the_share_from_which_on_a_curve_stays_good(quality: list[float], expected: float) -> None:
    shares = np.array([[0.1, 0.5, 0.9]])
    enough = np.array([0.8])
    (found,) = crossing(shares, np.array([quality]), enough)
    assert found == pytest.approx(expected)
    mixed = [2, 0, 1]
    (same,) = crossing(shares[:, mixed], np.array([quality])[:, mixed], enough)
    assert same == pytest.approx(expected)


def test_points_stand_on_measured_tokens_and_the_same_examples() -> None:
    scores = np.tile([0.0, 1.0], 20)
    lengths = np.tile([10, 30], 20)
    found = swept(
        [arm("s:r=0.5", scores, lengths, 0.5), arm("s:r=0.9", np.ones(40), 80, 0.9)],
        arm("identity", np.ones(40), 100),
        [arm("random-drop@s:r=0.5", np.zeros(40), 20, 0.5, "random-drop")],
    )
    first, second = found.points
    assert (first.tokens, first.share, first.score, first.of_whole) == (20.0, 0.2, 0.5, 0.5)
    assert (second.tokens, second.share, second.score) == (80.0, 0.8, 1.0)
    assert first.low < 0.5 < first.high
    (control,) = found.controls["random-drop"]
    assert (control.value, control.tokens, control.score) == (0.5, 20.0, 0.0)
    assert found.needed.state == "interpolated"
    assert found.needed.share == pytest.approx(0.2 + 0.45 / 0.5 * 0.6)
    assert found.needed.low < found.needed.share < found.needed.high
    assert (found.examples, found.clusters, found.is_flat) == (40, 40, False)


def test_an_end_of_the_interval_may_be_not_reached_or_below_the_smallest() -> None:
    draw = np.random.default_rng(1)
    whole = arm("identity", np.ones(30), 100)
    nearly = (draw.random(30) < 0.97).astype(float)
    poor = (draw.random(30) < 0.3).astype(float)
    found = swept([arm("a", poor, 10, 1), arm("b", nearly, 50, 2)], whole).needed
    assert (found.state, found.low_state, found.high_state) == (
        "interpolated",
        "interpolated",
        "not reached",
    )
    assert found.high is None
    found = swept([arm("a", nearly, 10, 1), arm("b", np.ones(30), 50, 2)], whole).needed
    assert (found.state, found.low_state) == ("smallest", "smallest")
    assert found.high_state == "interpolated"
    found = swept([arm("a", poor, 10, 1), arm("b", poor, 50, 2)], whole).needed
    assert (found.state, found.share, found.high_state) == ("not reached", None, "not reached")


def test_a_failure_counts_at_its_worst_and_has_no_tokens() -> None:
    rows = [row("a", n, 1.0, 20) for n in range(9)]
    failed = row("a", 9, 0.0, None, failure=Failure("system", "BROKE", "no"))
    failed.scores = {}
    found = swept(
        [Arm("a", [*rows, failed], 1.0), arm("b", np.ones(10), 90, 2.0)],
        arm("identity", np.ones(10), 100),
        scores={"f1": ScoreInfo("f1", "overlap")},
    )
    assert (found.points[0].score, found.points[0].tokens) == (pytest.approx(0.9), 20.0)
    assert found.points[0].share == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("whole", "scores", "why"),
    [
        (None, {}, "no arm of the run reads the whole context"),
        (0.0, {}, "the whole context scores 0.000"),
        (1.0, {"f1": ScoreInfo("f1", "overlap", higher_is_better=False)}, "of f1 less is better"),
    ],
)
def test_where_there_is_no_share_it_says_why(
    whole: float | None, scores: dict[str, ScoreInfo], why: str
) -> None:
    points = [arm("a", np.ones(4), 10, 1), arm("b", np.ones(4), 20, 2)]
    against = None if whole is None else arm("identity", np.full(4, whole), 100)
    found = swept(points, against, scores=scores)
    assert found.needed.state == "unknown"
    assert why in found.why_unknown


def test_points_that_tell_no_tokens_have_no_share() -> None:
    silent = Arm("a", [row("a", n, 1.0, None) for n in range(4)], 1.0)
    points = [silent, arm("b", np.ones(4), 20, 2)]
    found = swept(points, arm("identity", np.ones(4), 100))
    assert found.points[0].tokens is None
    assert found.why_unknown == "not every point tells its tokens"


def test_points_that_are_all_the_same_are_noticed() -> None:
    points = [arm("a", np.ones(4), 10, 1), arm("b", np.ones(4), 10, 2)]
    assert swept(points, None).is_flat
    with pytest.raises(InvalidInput, match="no example in common"):
        swept([points[0], Arm("b", [row("b", 99, 1.0, 1)], 2)], None)


def test_the_interval_covers_the_true_share() -> None:
    """A known curve: the chance of a right answer grows evenly with the tokens kept."""
    draw = np.random.default_rng(7)
    kept = np.array([0.2, 0.5, 0.8, 1.0])
    truth = 0.2 + (0.95 * 0.8 - 0.2) / 0.75
    covered = 0
    for _ in range(12):
        luck = draw.random(100)
        chances = 0.2 + (kept - 0.2) * 0.75
        points = [
            arm(str(share), (luck < chance).astype(float), share * 100, share)
            for share, chance in zip(kept, chances, strict=True)
        ]
        needed = swept(points, arm("identity", (luck < 0.8).astype(float), 100)).needed
        low = -np.inf if needed.low is None else needed.low
        high = np.inf if needed.high is None else needed.high
        covered += low <= truth <= high
    assert covered >= 10
