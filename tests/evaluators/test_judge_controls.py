"""Controls: judges that deserve no belief do not pass, and one that compares does."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cbench_server.datasets.conversations import questions
from cbench_server.errors import EvaluatorBroken
from cbench_server.evaluators import LLMJudge, MemoryJudge
from cbench_server.evaluators.judge.control_answers import is_apart, other_form, shifted, type_of
from cbench_server.evaluators.judge.controls import make_controls
from cbench_server.evaluators.judge.qualification import auc
from cbench_server.registry import registry
from cbench_server.texts.answers import normalize_answer
from tests.fixtures import scripted_judges as scripted
from tests.fixtures.model_server import ModelServer

MINI_QA = Path("cbench_server/datasets/embedded/mini-qa.jsonl")
EXAMPLES = [json.loads(line) for line in MINI_QA.read_text().splitlines()]


async def check(server: ModelServer, rule: Any, pack: str = "memory-qa") -> dict[str, Any]:
    scripted.script(server, rule)
    kind = MemoryJudge if pack != "correctness" else LLMJudge
    judge = kind(server.url, "m", "", 20.0, pack=pack)
    record = await judge.qualify(EXAMPLES, len(EXAMPLES), 0)
    await judge.close_connections()
    return record


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (scripted.always("YES"), "specific-wrong"),
        (scripted.always("NO"), "right"),
        (scripted.topical, "right"),
        (scripted.at_random(), "right"),
        (scripted.verbose, "right"),
        (scripted.always("I would rather not say."), "right"),
        (scripted.hostile, "right"),
    ],
    ids=["always-yes", "always-no", "topical", "random", "verbose", "silent", "hostile"],
)
async def test_a_judge_that_deserves_no_belief_does_not_pass(
    server: ModelServer, rule: Any, why: str
) -> None:
    record = await check(server, rule)
    assert record["qualified"] is False
    assert why in record["why"]


@pytest.mark.parametrize("pack", ["memory-qa", "strict", "lenient", "locomo", "longmemeval"])
async def test_a_judge_that_compares_passes(server: ModelServer, pack: str) -> None:
    record = await check(server, scripted.exact, pack)
    assert record["qualified"] is True, record
    right = record["kinds"]["right"]
    assert right["low"] < right["rate"] <= right["high"]
    assert record["kinds"]["instructs the judge"]["accepted"] == 0
    # What was empty was not asked about.
    asked = sum(kind["asked"] for kind in record["kinds"].values())
    assert record["effort"]["requests"] == asked - record["kinds"]["empty"]["asked"]


async def test_replies_without_a_verdict_are_counted_apart(server: ModelServer) -> None:
    right = (await check(server, scripted.always("Hm.")))["kinds"]["right"]
    assert right["without_verdict"] == right["asked"]


def silent_where_wrong(accepts: str) -> scripted.Rule:
    """Gives its verdict on right answers only."""
    return lambda sections: accepts if scripted.exact(sections) == "YES" else "Hard to say."


@pytest.mark.parametrize(("pack", "accepts"), [("strict", "YES"), ("correctness", "5")])
async def test_silence_about_wrong_answers_is_no_rejection(
    server: ModelServer, pack: str, accepts: str
) -> None:
    record = await check(server, silent_where_wrong(accepts), pack)
    assert record["kinds"]["right"]["rate"] > 0.9
    assert record["kinds"]["specific-wrong"]["accepted"] == 0
    assert record["qualified"] is False
    assert "without a grade: 97" in record["why"] or "no verdict on 100%" in record["why"]


def on_topic(sections: dict[str, str]) -> str:
    """Takes all that is on the topic, right or not."""
    return "YES" if "YES" in (scripted.exact(sections), scripted.topical(sections)) else "NO"


@pytest.mark.parametrize(
    ("rule", "passes"),
    [(scripted.always("YES"), False), (on_topic, False), (scripted.exact, True)],
    ids=["always the same", "by topic", "by reference"],
)
async def test_a_graded_pack_passes_by_how_well_it_tells_right_from_wrong(
    server: ModelServer, rule: Any, passes: bool
) -> None:
    def grade(sections: dict[str, str]) -> str:
        return "5" if rule(sections) == "YES" else "2"

    record = await check(server, grade, "correctness")
    assert record["qualified"] is passes
    assert (record["auc"] >= 0.9) is passes


def knowing(sections: dict[str, str]) -> str:
    """Knows the references below."""
    word = sections["QUESTION"].removeprefix("Write about ").removesuffix(".")
    return "A" if f"The {word} is a {word} indeed." in sections["RESPONSE A"] else "B"


@pytest.mark.parametrize(
    ("rule", "passes"),
    [(scripted.first_response, False), (scripted.topical_response, False), (knowing, True)],
)
async def test_a_pairwise_pack_passes_if_the_reference_wins_in_both_orders(
    server: ModelServer, rule: Any, passes: bool
) -> None:
    words = [
        "harbour",
        "lantern",
        "mountain",
        "violin",
        "orchard",
        "glacier",
        "carpet",
        "thunder",
        "pepper",
        "saddle",
    ]
    examples = [
        {"id": n, "question": f"Write about {word}.", "answer": f"The {word} is a {word} indeed."}
        for n, word in enumerate(words)
    ]
    scripted.script(server, rule)
    judge = LLMJudge(server.url, "m", "", 20.0, pack="alpaca-eval")
    record = await judge.qualify(examples, len(examples), 0)
    await judge.close_connections()
    assert record["qualified"] is passes, record


async def test_without_references_no_judge_qualifies_and_none_is_asked(server: ModelServer) -> None:
    judge = LLMJudge(server.url, "m", "", pack="helpfulness")
    assert "without a reference" in (await judge.qualify(EXAMPLES, 40, 0))["why"]
    plain = LLMJudge(server.url, "m", "")
    record = await plain.qualify([{"question": "Why?"}] * 5, 5, 0)
    assert "no references" in record["why"]
    assert server.requests == []


async def test_a_judge_that_cannot_be_asked_is_broken_not_unqualified(server: ModelServer) -> None:
    server.answer(401, "bad key")
    judge = MemoryJudge(server.url, "m", "", 20.0)
    with pytest.raises(EvaluatorBroken, match="401 Unauthorized"):
        await judge.qualify(EXAMPLES, 40, 0)
    await judge.close_connections()


# How controls are made.


def test_controls_are_the_same_for_the_same_seed_and_mixed() -> None:
    controls = make_controls(EXAMPLES, 1000, seed=3)
    assert controls == make_controls(EXAMPLES, 1000, seed=3)
    assert controls != make_controls(EXAMPLES, 1000, seed=4)
    kinds = [control.kind for control in controls]
    assert len(set(kinds[:20])) > 3
    counts = Counter(kinds)
    assert counts["right"] == counts["specific-wrong"] == counts["vague"] == len(EXAMPLES)
    assert counts["empty"] <= 20


def test_there_are_never_more_than_a_hundred_of_a_kind_and_fewer_for_short_runs() -> None:
    many = [{"id": n, "question": f"Which number is {n}?", "answer": str(n)} for n in range(300)]
    assert Counter(c.kind for c in make_controls(many, 300))["right"] == 100
    assert Counter(c.kind for c in make_controls(many, 7))["right"] == 7


def test_what_is_wrong_is_never_accepted_and_what_is_vague_holds_no_answer() -> None:
    for control in make_controls(EXAMPLES, 1000):
        accepted = control.original["answers"]
        words = set(normalize_answer(control.response).split())
        if control.kind == "specific-wrong":
            assert normalize_answer(control.response) not in map(normalize_answer, accepted)
        if control.kind == "vague":
            assert not any(set(normalize_answer(text).split()) <= words for text in accepted)


def test_a_changed_detail_does_not_leave_an_accepted_answer_standing() -> None:
    accepted = ["an anchor of four tonnes", "an anchor"]
    examples = [{"id": 1, "question": "What was found?", "answers": accepted}, *EXAMPLES]
    recipe = "Take 2 eggs and stir them into the flour until the dough is smooth and even."
    examples += [{"id": n, "question": f"How, {n}?", "answer": f"{recipe} {n}."} for n in (2, 3)]
    for seed in range(5):
        for control in make_controls(examples, 1000, seed):
            if control.kind == "specific-wrong":
                assert is_apart(control.response, control.original["answers"]), control


@pytest.mark.parametrize("rows", [1, 2, 9, 13, 25, 49, 100])
@pytest.mark.parametrize("kind", ["number", "unanswerable"])
def test_who_looks_for_the_reference_finds_it_in_nine_of_ten_right_answers(
    rows: int, kind: str
) -> None:
    examples = [
        {"id": n, "question": f"How many, {n}?", "answer": f"{n % 20} cats"}
        if kind == "number"
        else {"id": n, "question": f"Who, {n}?", "answer": "It is not said.", "is_abstention": True}
        for n in range(rows)
    ]
    right = [each for each in make_controls(examples, rows) if each.kind == "right"]
    found = sum(
        normalize_answer(each.original["answers"][0]) in normalize_answer(each.response)
        for each in right
    )
    assert found >= 0.9 * rows


@pytest.mark.parametrize("name", ["mini-memory", "long-memory"])
async def test_a_judge_that_compares_passes_on_conversations(
    server: ModelServer, name: str
) -> None:
    asked = list(questions(iter(registry.dataset(name).examples("")), label=name))
    scripted.script(server, scripted.exact)
    judge = MemoryJudge(server.url, "m", "", 20.0)
    record = await judge.qualify(asked, len(asked), 0)
    await judge.close_connections()
    assert record["qualified"] is True, record
    # Only the long conversations say what was true before.
    assert record["kinds"].get("stale", {"asked": 0})["asked"] == (20 if "long" in name else 0)


def test_an_older_value_is_a_control_where_the_data_has_one() -> None:
    examples = [
        {"id": n, "question": "Where now?", "answer": town, "previous_answer": "Bergen"}
        for n, town in enumerate(["Oslo", "Rome", "Lima"])
    ]
    stale = [c for c in make_controls(examples, 3) if c.kind == "stale"]
    assert {control.response for control in stale} == {"Bergen"}


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        ("21 June", "June 21"),
        ("7 May 2023", "May 7, 2023"),
        ("May 7, 2023", "7 May 2023"),
        ("2023-04-22", "22 April 2023"),
        ("Bora and Levant", "Levant, Bora"),
        ("seven", "7"),
        ("3 cats", "three cats"),
        ("Paris", None),
    ],
)
def test_the_same_in_another_form(answer: str, other: str | None) -> None:
    assert other_form(answer) == other


@pytest.mark.parametrize("answer", ["1794", "21 June", "seven", "640 metres", "June", "07:35"])
def test_a_shifted_number_or_date_is_another_one(answer: str) -> None:
    import random

    changed = shifted(answer, random.Random(0))
    assert changed is not None
    assert changed != answer
    assert type_of(changed) == type_of(answer)


def test_answers_that_contain_each_other_are_not_apart() -> None:
    assert not is_apart("Thomas Reddle", ["Reddle"])
    assert not is_apart("the Reddle", ["Thomas Reddle"])
    assert is_apart("Duarte", ["Reddle"])


def test_auc_counts_ties_as_half() -> None:
    assert auc([1.0, 1.0], [0.0, 0.0]) == 1.0
    assert auc([0.5], [0.5]) == 0.5
    assert auc([], [1.0]) is None
