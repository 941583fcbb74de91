"""What a plan says about the rows it leads to."""

from cbench_server.runs.plan import DatasetPlan


def test_another_score_stands_in_unless_the_run_names_the_one_that_counts() -> None:
    scores = {"recall": 1.0, "answer_retained": 0.5}
    assert DatasetPlan([], primary_score="recall").score_name(scores) == "recall"
    assert DatasetPlan([], primary_score="f1").score_name(scores) == "answer_retained"
    assert DatasetPlan([], primary_score="f1").score_name({"recall": 1.0}) == "recall"
    chosen = DatasetPlan([], primary_score="f1", is_score_chosen=True)
    assert chosen.score_name(scores) == "f1"
