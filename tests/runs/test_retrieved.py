"""Passages that a memory system retrieves: recall by rank, and when there are too many of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Server
from cbench_client.messages.convert import fields_from_proto
from cbench_server import evaluate, evaluate_memory
from cbench_server.daemon.embedded import embedded
from cbench_server.evaluators import ContextRetention, EvidenceRecall
from cbench_server.systems.memories import Bm25

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


class Retells(Ranked):
    """Returns what it was told in other words."""

    name = "retells"

    def query(self, question: str) -> dict[str, Any]:
        told = {"moved to": "lives now in", "rains a lot": "pours", "sings": "is a singer"}
        text = "\n".join(self.turns).replace("is served at four", "comes at 4 pm")
        for said, retold in told.items():
            text = text.replace(said, retold)
        return {"context": text}


class Labelled(Ranked):
    """Returns its turns as they were, with who said them and when."""

    name = "labelled"

    def query(self, question: str) -> dict[str, Any]:
        return {"context": "\n".join(f"[session 2] user: {turn}" for turn in self.turns[1::2])}


def test_a_memory_that_rewrites_is_marked_verbatim_only(client: BenchClient) -> None:
    result = evaluate_memory(
        [Ranked(), Retells(), Labelled()], [_TALK], evaluators=[EvidenceRecall()], progress=False
    )
    noted = [note["system"] for note in result.config["notes"] if note["code"] == "VERBATIM_ONLY"]
    assert noted == ["retells"]
    with Server(memory_systems=[Ranked, Retells, Labelled]) as server:
        spec = {
            "kind": "memory",
            "systems": [
                {"target": server.address, "served_name": name}
                for name in ("ranked", "retells", "labelled")
            ],
            "datasets": [{"name": "mine", "upload": client.upload([_TALK])[0]}],
            "evaluators": [{"name": "evidence-recall"}],
        }
        for _ in client.evaluate(spec):
            pass
    (first,) = client.list()
    child = client.rescore(first.run_id)
    for _ in client.watch(child.run_id):
        pass
    for run_id in (first.run_id, child.run_id):
        notes = client.get(run_id).notes
        assert [note.system for note in notes if note.code == "VERBATIM_ONLY"] == ["retells"]


class Nosy:
    """Returns what it was given."""

    name = "nosy"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(dict(example))
        return {"context": " ".join(map(str, example.values()))}


def test_evidence_of_a_file_is_withheld_from_what_is_scored_by_it(client: BenchClient) -> None:
    example = {"id": 1, "context": "-", "question": "?", "evidence": ["Ann moved to Oslo."]}
    example["Evidence"] = "Ann moved to Oslo."
    local, served = Nosy(), Nosy()
    result = evaluate([local], [example], [EvidenceRecall()], progress=False, blind=True)
    assert [row.scores["evidence_recall"] for row in result.rows] == [0.0]
    with Server(served.process) as server:
        spec = {
            "systems": [{"target": server.address}],
            "datasets": [{"name": "mine", "upload": client.upload([example])[0]}],
            "evaluators": [{"name": "evidence-recall"}],
        }
        for _ in client.evaluate(spec):
            pass
    (listed,) = client.list()
    assert [dict(row.scores)["evidence_recall"] for row in client.rows(listed.run_id)] == [0.0]
    assert local.seen
    assert served.seen
    assert all("evidence" not in map(str.lower, each) for each in (*local.seen, *served.seen))
    # Where nothing scores by it, it is as often an input.
    evaluate([local], [example], [ContextRetention()], progress=False, blind=True)
    assert "evidence" in local.seen[-1]


def test_the_built_in_retriever_names_its_turns_best_first_and_saturates_nothing() -> None:
    result = evaluate_memory([Bm25], "mini-memory", progress=False)
    assert all(row.processed and len(row.processed["retrieved"]) <= 20 for row in result.rows)
    assert not [note for note in result.config["notes"] if note["code"] == "SATURATED"]


def test_a_published_file_keeps_its_benchmark_when_it_is_rescored_without_it(
    client: BenchClient, tmp_path: Path
) -> None:
    said = [{"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a red bike."}]
    row = {
        "sample_id": "c1",
        "conversation": {"speaker_a": "Ann", "session_1": said},
        "qa": [{"question": "What did Ann buy?", "answer": "bike", "category": 4}],
    }
    upload, _ = client.upload([row])
    spec = {
        "kind": "memory",
        "systems": [{"builtin": "bm25"}],
        "datasets": [{"name": "talks", "upload": upload}],
    }
    for _ in client.evaluate(spec):
        pass
    (first,) = client.list()
    for file in (tmp_path / "uploads").rglob("*"):
        if file.is_file():
            file.unlink()
    child = client.rescore(first.run_id)
    for _ in client.watch(child.run_id):
        pass
    runs = [client.get(run_id) for run_id in (first.run_id, child.run_id)]
    before, after = (fields_from_proto(run.config)["datasets"][0] for run in runs)
    assert before["protocol"]["follows"] == after["protocol"]["follows"]
    assert before["primary_score"] == after["primary_score"] == "locomo_f1"
    scores = [[dict(row.scores) for row in client.rows(each.run_id)] for each in (first, child)]
    assert scores[0] == scores[1]
