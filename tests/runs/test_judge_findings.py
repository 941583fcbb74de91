"""What is said of judges, labels, leaks and saturation, from rows alone."""

import math
from typing import Any

import pytest

from cbench_server.errors import BadDataset
from cbench_server.metrics.stats.raters import (
    agreement,
    corrected_rate,
    prediction_powered,
    rank_correlation,
)
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.errata import Ceilings, Errata, corrected
from cbench_server.runs.judge_notes import explain
from cbench_server.runs.labels import Labels
from cbench_server.runs.leaks import leaks_in
from cbench_server.runs.saturation import saturation_notes
from cbench_server.runs.verdicts import by_judge
from cbench_server.spec import ModelRef, RunSpec, SystemRef


def record(evaluator: str = "memory-judge", **more: Any) -> dict[str, Any]:
    suffix = evaluator.partition(":")[2]
    return {
        "evaluator": evaluator,
        "dataset": "d",
        "scores": [f"memory_judge:{suffix}" if suffix else "memory_judge"],
        "url": "http://j",
        "model": "gpt-4",
        "pack": "strict",
        "kind": "yes-no",
        "kinds": {
            "right": {"asked": 100, "rate": 0.9, "low": 0.83, "high": 0.94},
            "specific-wrong": {"asked": 100, "rate": 0.1, "low": 0.06, "high": 0.17},
        },
        "qualified": True,
        "why": "",
        **more,
    }


def row(n: int, scores: dict[str, float], system: str = "s", **more: Any) -> EvalRow:
    metadata = {"qa_type": "temporal" if n % 2 else "single"}
    processed = {"response": "word " * (n + 1)}
    return EvalRow(
        system, n, scores, 1, 1, metadata, dataset="d", processed=processed, index=n, **more
    )


def texts(judges: list[dict[str, Any]], rows: list[EvalRow], **spec: Any) -> dict[str, str]:
    found = explain(by_judge(judges, iter(rows)), RunSpec((), (), **spec), None)
    return {note.code: note.text for note in found.notes}


# Statistics.


def test_kappa_is_agreement_beyond_chance() -> None:
    assert agreement([1, 1, 0, 0], [1, 1, 0, 0]) == (1.0, 1.0)
    assert agreement([1, 0, 1, 0], [1, 1, 0, 0]) == (0.5, 0.0)
    assert agreement([1, 1], [1, 1]) == (1.0, None)
    # The example of Cohen's coefficient in every textbook: 20, 5, 10, 15.
    a = [1.0] * 25 + [0.0] * 25
    b = [1.0] * 20 + [0.0] * 5 + [1.0] * 10 + [0.0] * 15
    share, kappa = agreement(a, b)
    assert (share, kappa) == (0.7, pytest.approx(0.4))


@pytest.mark.parametrize("truth", [0.0, 0.2, 0.5, 1.0])
def test_a_corrected_rate_undoes_known_errors(truth: float) -> None:
    seen = truth * 0.9 + (1 - truth) * 0.2
    estimate = corrected_rate(seen, 1000, (0.9, 100), (0.2, 100))
    assert estimate.value == pytest.approx(truth)
    assert estimate.low is not None
    assert estimate.high is not None
    assert 0 <= estimate.low <= truth <= estimate.high <= 1


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    assert corrected_rate(0.5, 100, (0.5, 100), (0.5, 100)).value is None


def test_labels_move_the_judges_mean_by_how_far_it_is_off() -> None:
    judged = [1.0] * 80 + [0.0] * 20
    labelled = [(1.0, 1.0)] * 30 + [(0.0, 1.0)] * 10
    estimate = prediction_powered(judged, labelled)
    assert estimate.value == pytest.approx(0.8 - 0.25)
    spread = math.sqrt(0.16 * 100 / 99 / 100 + 0.1875 * 40 / 39 / 40)
    assert estimate.high == pytest.approx(0.55 + 1.96 * spread, abs=1e-4)
    assert prediction_powered(judged, labelled[:1]).value is None
    # Beyond the scale, all of it is at its end.
    beyond = prediction_powered([0.9] * 100, [(1.0, 0.0)] * 10)
    assert (beyond.value, beyond.low, beyond.high) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("labels", [5, 40, 200])
def test_labels_that_all_agree_leave_doubt(labels: int) -> None:
    estimate = prediction_powered([1.0] * 200, [(1.0, 1.0)] * labels)
    assert estimate.value == 1.0
    # With none of n off, about 3 in n may be.
    assert estimate.low is not None
    assert max(0.0, 1 - 5 / labels) <= estimate.low < 1 - 2 / labels


def test_controls_that_were_all_told_apart_leave_doubt() -> None:
    estimate = corrected_rate(1.0, 8, (1.0, 10), (0.0, 10))
    assert estimate.value == 1.0
    assert estimate.low is not None
    assert 0.5 < estimate.low < 0.85


def test_rank_correlation_has_ties_and_an_interval() -> None:
    assert rank_correlation([1, 2, 3, 4, 5], [10, 20, 30, 40, 50]).value == 1.0
    # 1 - 6 * 8 / (5 * 24)
    assert rank_correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).value == pytest.approx(0.8)
    assert rank_correlation([1.0] * 9, list(range(9))).value is None


# Notes.


def test_packs_side_by_side_are_a_range() -> None:
    judges = [record(), record("memory-judge:lenient", pack="lenient")]
    rows = [
        row(n, {"memory_judge": float(n < 7), "memory_judge:lenient": float(n < 18)})
        for n in range(20)
    ]
    assert "s: 0.35-0.90 by what the judge is asked" in texts(judges, rows)["JUDGE_RANGE"]
    judges[1]["qualified"] = False
    said = texts(judges, rows)["JUDGE_RANGE"]
    assert said.endswith("0.35-0.90† by what the judge is asked (strict 0.35, lenient 0.90†).")


def test_two_judges_that_order_systems_differently_are_named() -> None:
    judges = [record(), record("memory-judge:m2", model="claude-x")]
    rows = [row(n, {"memory_judge": 1.0, "memory_judge:m2": 0.0}, "a") for n in range(4)]
    rows += [row(n, {"memory_judge": 0.0, "memory_judge:m2": 1.0}, "b") for n in range(4)]
    said = texts(judges, rows)
    assert "prefers a" in said["JUDGES_DISAGREE"]
    assert "agree on 0% of 8 rows, Cohen's kappa -1.00" in said["JUDGE_AGREEMENT"]
    assert "temporal" in said["JUDGE_AGREEMENT"]


def test_a_score_that_goes_with_length_and_a_judge_of_the_family_are_named() -> None:
    rows = [row(n, {"memory_judge": float(n > 9)}) for n in range(20)]
    reader = ModelRef("http://r", "gpt-4o-mini")
    said = texts([record()], rows, reader=reader)
    assert "goes with the length" in said["JUDGE_LENGTH"]
    assert "same family as gpt-4o-mini" in said["JUDGE_SAME_FAMILY"]


def test_every_row_is_in_the_denominator_once() -> None:
    broken = {"memory-judge": Failure("evaluator", "NO_VERDICT", "hm")}
    rows = [
        row(0, {"memory_judge": 1.0}),
        row(1, {}, evaluator_failures=broken),
        row(2, {}, failure=Failure("system", "X", "y")),
        row(3, {}, not_applicable=("memory_judge",)),
        row(4, {}),
    ]
    [verdicts] = by_judge([record()], iter(rows))
    counts = verdicts.denominators()["s"]
    assert counts[""] == {
        "asked": 5,
        "answered": 3,
        "judged": 1,
        "without verdict": 1,
        "failed": 1,
        "excluded": 1,
        "not answered": 1,
    }
    assert counts["single"]["asked"] + counts["temporal"]["asked"] == 5
    assert "5 asked, 1 judged" in texts([record()], rows)["JUDGE_DENOMINATOR"]


def test_a_pack_may_average_over_types_of_questions() -> None:
    rows = [row(n, {"memory_judge": float(n in (0, 1))}) for n in range(6)]
    rows += [row(n, {"memory_judge": 1.0}) for n in (6, 8)]
    judges = by_judge([record(averages_types=True)], iter(rows))
    values = explain(judges, RunSpec((), ()), None).values["s"]
    # Three of five, and one of three.
    assert values["task_averaged:memory_judge"] == pytest.approx((3 / 5 + 1 / 3) / 2)


def test_requests_and_flips_are_added_up() -> None:
    details = {"llm-judge": {"requests": 2, "retries": 1, "usage": {"prompt_tokens": 7}}}
    pair = record("llm-judge", kind="pairwise", scores=["judge_score"], kinds={})
    rows = [
        row(n, {"judge_score": 0.5, "judge_flip": float(n == 0)}, details=details) for n in range(4)
    ]
    found = explain(by_judge([pair], iter(rows)), RunSpec((), ()), None)
    assert found.facts["effort"]["llm-judge"] == {
        "requests": 8,
        "retries": 4,
        "prompt_tokens": 28,
    }
    assert found.facts["flips"]["llm-judge"] == 0.25


# Files.


def test_labels_say_what_is_wrong_with_them() -> None:
    with pytest.raises(BadDataset, match="label 1 should have example_id"):
        Labels([{"verdict": 1}])
    with pytest.raises(BadDataset, match="label 1 has the verdict 'maybe'"):
        Labels([{"example_id": 1, "verdict": "maybe"}])
    labels = Labels([{"example_id": 1, "verdict": "Yes", "system": "a"}])
    assert labels.of(("d", "a", "1", 0)) == 1.0
    assert labels.of(("d", "b", "1", 0)) is None


def test_two_verdicts_on_one_row_must_be_the_same() -> None:
    same = {"id": 1, "system": "s", "verdict": "yes"}
    assert len(Labels([same, {**same, "verdict": 1}, {"id": 1, "verdict": "no"}])) == 2
    with pytest.raises(BadDataset, match="label 2 is another verdict"):
        Labels([same, {**same, "verdict": "no"}])


def test_a_label_is_of_one_dataset() -> None:
    examples = [("d", 1), ("suite:a", 1), ("suite:b", 2)]
    with pytest.raises(BadDataset, match='"1" may be of dataset d or suite:a'):
        Labels([{"id": 1, "verdict": 1}]).check_ids(examples, ["s"])
    lines = [{"id": 1, "verdict": "yes", "dataset": "d"}, {"id": 1, "verdict": 0, "dataset": "e"}]
    lines.append({"id": 2, "verdict": 1, "system": "s", "dataset": "suite"})
    labels = Labels(lines)
    labels.check_ids([*examples, ("e", 1)], ["s", "t"])
    labels.check([("d", "t", "1", 0), ("e", "s", "1", 0), ("suite:b", "s", "2", 0)])
    assert (labels.of(("d", "t", "1", 0)), labels.of(("e", "s", "1", 0))) == (1.0, 0.0)
    assert labels.of(("suite:b", "s", "2", 0)) == 1.0
    assert labels.of(("suite:b", "t", "2", 0)) is None
    assert labels.of(("f", "s", "1", 0)) is None
    with pytest.raises(BadDataset, match='such as "1" of dataset "e"'):
        labels.check_ids(examples, ["s"])


def test_errata_mend_examples() -> None:
    lines = [
        {"id": 1, "replace": True, "answers": ["B"]},
        {"id": 2, "accept_also": True, "answers": "C"},
        {"id": 3, "action": "exclude", "dataset": "locomo"},
    ]
    errata = Errata(lines)
    one, two, three = errata.of("x", 1), errata.of("x", 2), errata.of("locomo:all", 3)
    assert corrected({"answer": "A"}, one) == {"answer": "B", "answers": ["B"]}
    assert corrected({"answer": "A"}, two) == {"answer": "A", "answers": ["A", "C"]}
    assert corrected({"answer": "A"}, three) is None
    assert errata.of("other", 3) == []
    ceilings = Ceilings()
    for place, known in enumerate([one, two, [], []]):
        ceilings.take("odd" if place % 2 else "even", known)
    assert ceilings.describe() == {"": 0.75, "even": 0.5, "odd": 1.0}


def test_all_that_is_known_of_an_example_mends_it() -> None:
    errata = Errata(
        [
            {"id": 1, "action": "accept_also", "answers": ["B"]},
            {"id": 1, "action": "evidence", "evidence": ["It is A or B."], "dataset": "locomo"},
            {"id": 1, "action": "accept_also", "answers": ["C"]},
            {"id": 2, "evidence": True},
        ]
    )
    assert len(errata) == 4
    mended = corrected({"answer": "A", "evidence": ["Old."]}, errata.of("locomo:all", 1))
    assert mended == {"answer": "A", "answers": ["A", "B", "C"], "evidence": ["It is A or B."]}
    assert corrected({"answer": "A", "evidence": ["Old."]}, errata.of("x", 2)) == {
        "answer": "A",
        "evidence": ["Old."],
    }


def test_what_is_said_of_a_judge_is_of_all_datasets_of_the_run() -> None:
    judges = [record(), record(dataset="e")]
    rows = [row(n, {"memory_judge": float(n < 30)}) for n in range(40)]
    rows += [row(n, {"memory_judge": float(n < 2)}) for n in range(40, 80)]
    for each in rows[40:]:
        each.dataset = "e"
    labels = Labels([{"id": n, "verdict": int(n % 3 == 0)} for n in range(0, 80, 2)])
    found = explain(by_judge(judges, iter(rows)), RunSpec((), ()), labels)
    judged = [each.scores["memory_judge"] for each in rows]
    pairs = [(float(n % 3 == 0), judged[n]) for n in range(0, 80, 2)]
    plain = prediction_powered(judged, pairs)
    assert found.values["s"]["labelled_rate"] == pytest.approx(plain.value)
    assert found.facts["denominators"]["memory-judge"]["s"][""]["asked"] == 80
    # By hand: (0.75 - 0.1) / 0.8 on one, and less than nothing on the other.
    assert found.facts["corrected"]["memory-judge"]["s"]["value"] == pytest.approx(0.8125 / 2)
    (agreed,) = found.facts["agreement"]
    assert agreed["rows"] == 40
    controls = [note.text for note in found.notes if note.code == "JUDGE_CONTROLS"]
    assert ["on d:" in controls[0], "on e:" in controls[1]] == [True, True]


def test_leaks_are_found_in_what_systems_see_only() -> None:
    example = {
        "id": "x_abs",
        "question": "Where?",
        "answer": "in Oslo",
        "hint": "It is in Oslo, I think",
        "category": "places",
        "context": "She lives in Oslo.",
    }
    said = " ".join(leaks_in([example], ["answer"], is_memory=False))
    assert 'the field "category"' in said
    assert 'the reference in the field "hint"' in said
    assert "an id that marks" in said
    assert leaks_in([example], ["answer", "hint", "category", "id"], is_memory=False) == []
    turns = [{"role": "user", "content": "Oslo", "has_answer": True}]
    said = " ".join(leaks_in([{**example, "turns": turns}], ["answer"], is_memory=False))
    assert "turns that are marked" in said
    # A memory system is not sent the mark, but the session's name.
    assert leaks_in([{**example, "turns": turns}], ["answer"], is_memory=True) == []
    turns[0]["session"] = "answer_4be1"
    [said] = leaks_in([{**example, "turns": turns}], ["answer"], is_memory=True)
    assert "turns that are marked" in said


def test_a_memory_that_returns_everything_is_not_tested() -> None:
    rows = [
        row(n, {}, context_tokens_in=1000, context_tokens_out=950 if n < 8 else 10)
        for n in range(10)
    ]
    spec = RunSpec((SystemRef(),), (), reader=ModelRef("u", "m", context_window=4000))
    first, second = saturation_notes(rows, spec)
    assert "8 of 10 questions: that tests the reader, not the memory" in first.text
    assert "fits the reader's window of 4,000" in second.text
    assert saturation_notes(rows[8:], RunSpec((), ())) == []
