"""Passages that a memory system retrieves: recall by rank, and when there are too many of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Server
from cbench_server import evaluate_memory
from cbench_server.daemon.embedded import embedded
from cbench_server.evaluators import EvidenceRecall

_TALK = {
    "id": "talk",
    "turns": [
        {"role": "user", "content": text, "session": str(number)}
        for number, text in enumerate(
            ["Ann moved to Oslo.", "It rains a lot.", "Ben sings.", "Tea is served at four."]
        )
    ],
    "qa_pairs": [
        {"question": "Where is Ann?", "answer": "Oslo", "evidence": ["Ann moved to Oslo."]},
        {"question": "When is tea?", "answer": "four", "evidence": ["Tea is served at four."]},
    ],
}


class Ranked:
    """Returns its turns as passages, the latest first, as many as it was told."""

    name = "ranked"

    def __init__(self, top_k: int = 2) -> None:
        self.top_k = top_k
        self.turns: list[str] = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.turns += [turn["content"] for turn in turns]

    def query(self, question: str) -> dict[str, Any]:
        return {"retrieved": self.turns[::-1][: self.top_k]}

    def reset(self) -> None:
        self.turns.clear()


class RankedWhole(Ranked):
    """Returns as many passages as there are sessions."""

    name = "ranked-whole"

    def __init__(self) -> None:
        super().__init__(4)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[BenchClient]:
    with embedded(home=str(tmp_path)) as target, BenchClient(target) as connected:
        yield connected


def test_passages_over_the_wire_have_recall_by_rank_and_are_the_context(
    client: BenchClient,
) -> None:
    with Server(memory_systems=[Ranked, RankedWhole]) as server:
        spec = {
            "kind": "memory",
            "systems": [
                {"target": server.address, "served_name": name}
                for name in (Ranked.name, "ranked-whole")
            ],
            "datasets": [{"name": "mine", "upload": client.upload([_TALK])[0]}],
            "evaluators": [{"name": "evidence-recall"}],
        }
        for _ in client.evaluate(spec):
            pass
    (listed,) = client.list()
    run = client.get(listed.run_id)
    rows = {
        (row.system, row.example_id.text): dict(row.scores) for row in client.rows(listed.run_id)
    }
    first, second = rows["ranked", "talk_0"], rows["ranked", "talk_1"]
    assert (first["evidence_recall"], first["evidence_recall_at_1"]) == (0.0, 0.0)
    assert (second["evidence_recall"], second["evidence_recall_at_1"]) == (1.0, 1.0)
    whole = rows["ranked-whole", "talk_0"]
    assert (whole["evidence_recall_at_1"], whole["evidence_recall_at_5"]) == (0.0, 1.0)
    saturated = [note.system for note in run.notes if note.code == "SATURATED"]
    assert saturated == ["ranked-whole"]


def test_passages_in_process_have_recall_by_rank() -> None:
    result = evaluate_memory([Ranked()], [_TALK], evaluators=[EvidenceRecall()])
    assert [row.scores["evidence_recall_at_5"] for row in result.rows] == [0.0, 1.0]
