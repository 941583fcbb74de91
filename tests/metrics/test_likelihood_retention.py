"""Retention of likelihood: a ratio of sums, resampled by example, and guarded."""

import numpy as np
import pytest

from cbench_server.metrics import LikelihoodRetention
from cbench_server.results import EvalRow, Failure

GAINS = [0.5, 2.0, -0.5, 1.0, 0.0, 1.5, 0.8, 0.9, 2.2, -0.1]
ROOMS = [1.0, 2.5, 0.5, 1.0, 0.4, 2.0, 1.8, 1.1, 2.0, 0.2]


def row(ordinal: int, gain: float | None, room: float = 0.0) -> EvalRow:
    scores = {} if gain is None else {"answer_gain": gain, "answer_room": room}
    failure = Failure("system", "RAISED", "no") if gain is None else None
    return EvalRow(
        system="s",
        example_id=ordinal,
        ordinal=ordinal,
        dataset="d",
        scores=scores,
        failure=failure,
        input_tokens=0,
        output_tokens=0,
    )


def rows(gains: list[float], rooms: list[float]) -> list[EvalRow]:
    pairs = zip(gains, rooms, strict=True)
    return [row(place, gain, room) for place, (gain, room) in enumerate(pairs)]


def test_it_is_the_sum_of_gains_over_the_sum_of_rooms() -> None:
    found = LikelihoodRetention().compute(rows(GAINS, ROOMS))
    assert found["likelihood_retention"] == pytest.approx(sum(GAINS) / sum(ROOMS))
    assert found["likelihood_room"] == pytest.approx(np.mean(ROOMS))
    assert found["num_likelihood"] == 10.0


def test_its_interval_is_that_of_examples_drawn_with_both_their_numbers() -> None:
    found = LikelihoodRetention().compute(rows(GAINS, ROOMS))
    drawn = np.random.default_rng(5).integers(0, 10, (20_000, 10))
    ratios = np.array(GAINS)[drawn].sum(1) / np.array(ROOMS)[drawn].sum(1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    # Ours is bias-corrected and drawn with another seed.
    assert found["likelihood_retention_ci_low"] == pytest.approx(low, abs=0.12)
    assert found["likelihood_retention_ci_high"] == pytest.approx(high, abs=0.12)


def test_one_and_nothing_are_exact() -> None:
    whole = LikelihoodRetention().compute(rows(ROOMS, ROOMS))
    nothing = LikelihoodRetention().compute(rows([0.0] * 10, ROOMS))
    assert whole["likelihood_retention"] == 1.0
    assert nothing["likelihood_retention"] == 0.0


@pytest.mark.parametrize(
    "rooms",
    [[1.0, -1.0, 0.5, -0.4, 0.2], [-1.0, -1.2, -0.8, -1.1, -0.9], [2.0]],
    ids=["spans zero", "below zero", "one row"],
)
def test_there_is_none_where_the_whole_context_does_not_help(rooms: list[float]) -> None:
    found = LikelihoodRetention().compute(rows([0.3] * len(rooms), rooms))
    assert found["likelihood_retention"] is None
    assert found["likelihood_retention_ci_low"] is None
    assert found["likelihood_room"] == pytest.approx(np.mean(rooms))


def test_a_row_on_which_the_system_failed_kept_nothing() -> None:
    failed = [row(10, None), row(11, None)]
    found = LikelihoodRetention().compute([*rows(GAINS, ROOMS), *failed])
    assert found["likelihood_retention"] == pytest.approx(sum(GAINS) / (sum(ROOMS) * 1.2))
    assert found["num_likelihood"] == 10.0


def test_runs_without_the_evaluator_have_no_such_figure() -> None:
    assert LikelihoodRetention().compute([row(0, None)]) == {}
