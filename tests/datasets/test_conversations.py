"""Memory runs on the benchmarks, from a mirror in their publishers' own layout."""

from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate_memory
from cbench_server.datasets.catalog import memory
from cbench_server.evaluators import Abstention, AnswerQuality, ContextRetention
from cbench_server.registry import load_dataset, registry
from cbench_server.results import EvalRow
from cbench_server.systems.memories import FullHistory

MIRROR = Path(__file__).parent / "fixtures"
HUB = Path(__file__).parents[3] / "shared" / "data" / "hub"


class Listener:
    """Keeps everything it is told, and says nothing of use."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def reset(self, scope: str) -> None:
        self.heard.append(scope)

    def ingest(self, turns: list[dict[str, Any]], scope: str) -> None:
        self.heard.append(turns)

    def query(self, question: str, scope: str, asked_at: str | None) -> str:
        self.heard += [scope, question, asked_at]
        return "You never said that."


def run(name: str, folder: Path = MIRROR, **options: Any) -> tuple[Listener, list[EvalRow]]:
    listener = Listener()
    result = evaluate_memory(
        [listener, FullHistory],
        load_dataset(name, data_dir=str(folder)),
        [AnswerQuality(), Abstention(), ContextRetention()],
        progress=False,
        **options,
    )
    return listener, result.rows


def test_locomo_has_its_categories_and_scores_adversarial_questions_as_abstentions() -> None:
    listener, rows = run("locomo")
    said = {row.metadata["qa_type"]: row.scores for row in rows if row.system == "listener"}
    assert set(said) == {"temporal", "single_hop", "adversarial"}
    assert said["adversarial"] == {"abstention": 1.0}
    assert "f1" in said["temporal"]
    turns = next(each for each in listener.heard if isinstance(each, list))
    assert {turn["speaker"] for turn in turns} == {"Caroline", "Melanie"}
    assert [turn["time"] for turn in turns][:1] == ["2023-05-08T13:56"]
    assert [turn["session"] for turn in turns] == sorted(turn["session"] for turn in turns)


def test_longmemeval_has_dates_and_abstentions_and_gives_neither_away() -> None:
    listener, rows = run("longmemeval")
    mine = {row.example_id: row for row in rows if row.system == "listener"}
    assert mine["c9554601_0"].scores == {"abstention": 1.0}
    assert "f1" in mine["e47_0"].scores
    assert "2023-05-30T23:40" in listener.heard
    for telltale in ("_abs", "e47", "s_a", "has_answer", "temporal-reasoning"):
        assert telltale not in str(listener.heard)


def test_longmemeval_does_not_show_an_ordinary_system_which_questions_have_no_answer() -> None:
    withheld = registry.dataset("longmemeval").reference_fields
    examples = [*load_dataset("longmemeval:s", data_dir=MIRROR)]
    shown = [{k: v for k, v in each.items() if k not in withheld} for each in examples]
    assert [each["question_id"] for each in examples] == ["e47_abs", "e47"]
    assert "_abs" not in str(shown)
    assert len({each["id"] for each in shown}) == len(shown)


def test_longmemeval_can_be_narrowed_to_abstentions() -> None:
    _, rows = run("longmemeval", question_types=["abstention"])
    assert {row.example_id for row in rows} == {"c9554601_0"}


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_the_real_conversations_run_through(name: str) -> None:
    if not registry.dataset(name).is_available(HUB):
        pytest.skip(f"../shared/data/hub has no {name}")
    _, rows = run(name, HUB, max_examples=2)
    assert rows
    assert not [row for row in rows if row.failure]


def test_a_colon_in_what_somebody_says_makes_no_speaker() -> None:
    said = "Anna: I have a plan:\nStep one: rehearse\nAnna: And you?\nBob: I: none.\nBob: Bye."
    turns = memory._locomo_turns([f"1:56 pm on 8 May, 2023\n{said}"])
    assert [(turn["speaker"], turn["content"]) for turn in turns] == [
        ("Anna", "I have a plan:\nStep one: rehearse"),
        ("Anna", "And you?"),
        ("Bob", "I: none."),
        ("Bob", "Bye."),
    ]
