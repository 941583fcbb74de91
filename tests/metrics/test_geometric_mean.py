"""The geometric mean of several scores' means, with failed rows at nothing."""

import pytest

from cbench_server.metrics import GeometricMean, summarize
from cbench_server.results import EvalRow, Failure


def _row(ordinal: int, *scores: float) -> EvalRow:
    names = ("rouge_1_f1", "rouge_2_f1", "rouge_l_f1")
    return EvalRow("s", ordinal, dict(zip(names, scores, strict=False)), 0, 0, ordinal=ordinal)


def test_it_is_that_of_the_means_not_the_mean_of_the_rows() -> None:
    rows = [_row(0, 0.4, 0.0, 0.2), _row(1, 0.4, 0.2, 0.4)]
    values = summarize(rows, [GeometricMean()])["s"]
    assert values["geometric_mean"] == pytest.approx((0.4 * 0.1 * 0.3) ** (1 / 3))


def test_a_failed_row_counts_as_nothing_and_one_without_scores_nowhere() -> None:
    failed = _row(1)
    failed.failure = Failure("system", "EXCEPTION", "no")
    rows = [_row(0, 0.5, 0.5, 0.5), failed]
    assert summarize(rows, [GeometricMean()])["s"]["geometric_mean"] == pytest.approx(0.25)
    rows = [_row(0, 0.5, 0.5, 0.5), _row(1, 0.5)]
    assert summarize(rows, [GeometricMean()])["s"]["geometric_mean"] == pytest.approx(0.5)


def test_without_the_scores_there_is_none() -> None:
    assert summarize([_row(0, 0.5)], [GeometricMean()])["s"]["geometric_mean"] is None
