"""What a plan says about the rows it leads to."""

from cbench_server.evaluators import Abstention, AnswerQuality, ContextRetention
from cbench_server.runs.plan import DatasetPlan


def test_the_score_that_counts_depends_on_the_original_alone() -> None:
    evaluators = [AnswerQuality(), ContextRetention(), Abstention()]
    plan = DatasetPlan(evaluators, primary_score="f1")
    assert plan.score_name({"answer": "x"}) == "f1"
    assert plan.score_name({"is_abstention": True}) == "abstention"
    assert DatasetPlan([AnswerQuality()], primary_score="f1").score_name({"is_abstention": True})
    chosen = DatasetPlan(evaluators, primary_score="f1", is_score_chosen=True)
    assert chosen.score_name({"is_abstention": True}) == "f1"


def test_scores_without_a_reference_do_not_apply() -> None:
    plan = DatasetPlan([AnswerQuality(), ContextRetention(), Abstention()], primary_score="f1")
    missing = plan.applicability.missing
    assert missing({"answer": "x"}) == ("abstention",)
    none = ("f1", "exact_match", "recall", "contains", "abstention")
    for answer in ("", " ", None, float("nan"), [], [None, ""]):
        assert missing({"answer": answer}) == none
    for answer in (0, False, ["", "x"]):
        assert missing({"answer": answer}) == ("abstention",)
    assert missing({"answer": "", "answers": ["x"]}) == ("abstention",)
    assert "f1" in missing({"answer": "x", "is_abstention": True})


def test_retention_needs_an_answer_that_can_be_found_in_the_context() -> None:
    applicability = DatasetPlan([ContextRetention()], primary_score="f1").applicability
    names = ("answer_retained", "answer_recall")
    assert applicability.missing({}) == ()
    assert applicability.missing_retention({"context": "to Rome", "answer": "Rome"}) == ()
    assert applicability.missing_retention({"context": "to Rome", "answer": "Oslo"}) == names
    assert applicability.missing_retention({"context": "yes, Rome", "answer": "yes"}) == names
