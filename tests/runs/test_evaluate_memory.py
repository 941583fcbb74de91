"""`evaluate_memory()`: memory systems that are Python objects, or look like it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from cbench_client import RemoteMemorySystem, Server
from cbench_server import evaluate_memory
from cbench_server.errors import BadDataset, InvalidInput, InvalidSpec
from cbench_server.evaluators import Abstention, AnswerQuality, ContextRetention
from cbench_server.metrics import MeanScore, PerQAType, TokenEfficiency
from cbench_server.results import EvalResult
from cbench_server.systems.memories import Bm25, FullHistory
from cbench_server.tokens import count_tokens


def conversations(count: int = 2) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "turns": [
                {"role": "user", "content": f"My name is N{number}.", "session": "1"},
                {"role": "assistant", "content": f"And my name is B{number}."},
            ],
            "qa_pairs": [
                {"question": "Who is the user?", "answer": f"N{number}", "type": "single"},
                {"question": "Who is the bot?", "answer": f"B{number}", "type": "multi"},
            ],
            "dataset": "names",
        }
        for number in range(count)
    ]


class Recalls:
    """Answers with everything it was told, and keeps a record of its calls."""

    name = "recalls"
    version = "1"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._turns: list[dict[str, Any]] = []

    def reset(self) -> None:
        self.calls.append("reset")
        self._turns = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.calls.append("ingest")
        self._turns += turns

    def query(self, question: str) -> str:
        self.calls.append("query")
        return " ".join(turn["content"] for turn in self._turns)


def run(*systems: Any, **options: Any) -> EvalResult:
    settings = {
        "dataset": conversations(),
        "evaluators": [AnswerQuality(), ContextRetention()],
        "metrics": [MeanScore(), PerQAType("f1"), TokenEfficiency("contains")],
        "progress": False,
        **options,
    }
    return evaluate_memory(list(systems), **settings)


def test_a_plain_object_is_reset_fed_and_asked_conversation_by_conversation() -> None:
    system = Recalls()
    result = run(system, max_workers=4)
    assert [row.example_id for row in result.rows] == ["0_0", "0_1", "1_0", "1_1"]
    assert [row.scores["contains"] for row in result.rows] == [1.0] * 4
    assert system.calls == ["reset", "ingest", "query", "query", "reset"] * 2


def test_a_row_has_what_the_model_of_this_function_gives() -> None:
    row = run(Recalls()).rows[1]
    assert (row.dataset, row.group, row.primary_score) == ("names", "0", "f1")
    assert {name: row.metadata[name] for name in ("qa_type", "conversation_id", "turn_count")} == {
        "qa_type": "multi",
        "conversation_id": "0",
        "turn_count": 2,
    }
    assert row.metadata["ingest_latency"] == row.ingest_time > 0
    assert row.metadata["query_latency"] == row.latency > 0
    answer = "My name is N0. And my name is B0."
    assert row.output_tokens == count_tokens(answer)
    # It does not say what it read, so it is taken to have read everything.
    assert row.input_tokens == count_tokens("user: My name is N0.\nassistant: And my name is B0.")
    assert row.context_tokens_out is None


def test_the_summary_has_a_mean_for_each_type_and_what_it_costs() -> None:
    summary = run(Recalls()).summary["recalls"]
    assert summary["f1_multi"] == summary["f1_single"] == summary["f1_mean"]
    assert summary["mean_score"] == summary["f1_mean"] != 1.0
    assert summary["mean_score:contains"] == 1.0
    tokens = summary["mean_input_tokens"]
    assert tokens is not None
    assert summary["token_efficiency"] == pytest.approx((100 / tokens) ** 0.1)
    assert summary["token_efficiency_raw"] == pytest.approx(1000 / tokens)


def test_what_a_system_says_it_read_counts() -> None:
    class Counts(Recalls):
        last_context_tokens = 7

    row = run(Counts()).rows[0]
    assert (row.input_tokens, row.context_tokens_out) == (7, 7)


def test_a_class_gets_an_object_for_each_conversation_and_they_run_at_once() -> None:
    together = threading.Barrier(2, timeout=20)

    class Meets(Recalls):
        name = "meets"

        def ingest(self, turns: list[dict[str, Any]]) -> None:
            together.wait()
            super().ingest(turns)

    result = run(Meets, max_workers=2, timed_rows=0)
    assert [row.failure for row in result.rows] == [None] * 4
    assert [row.scores["contains"] for row in result.rows] == [1.0] * 4


def test_an_object_that_names_scopes_is_handed_them() -> None:
    class Scoped:
        name = "scoped"

        def __init__(self) -> None:
            self.held: dict[str, str] = {}

        async def reset(self, scope: str) -> None:
            self.held.pop(scope, None)

        async def ingest(self, turns: list[dict[str, Any]], scope: str) -> None:
            await asyncio.sleep(0)
            self.held[scope] = turns[0]["content"]

        async def query(self, question: str, scope: str, budget: int | None) -> dict[str, Any]:
            return {"response": self.held[scope], "metadata": {"budget": budget}}

    system = Scoped()
    result = run(system, max_workers=8, budget=12)
    assert [row.scores["contains"] for row in result.rows] == [1.0, 0.0] * 2
    assert {row.metadata["budget"] for row in result.rows} == {12}
    assert system.held == {}


def test_a_remote_memory_is_evaluated_like_any_other() -> None:
    with (
        Server(memory_systems=[Bm25], address="127.0.0.1:0") as server,
        RemoteMemorySystem(server.address) as system,
    ):
        result = run(system, max_workers=4)
    assert [row.failure for row in result.rows] == [None] * 4
    assert [row.scores["answer_retained"] for row in result.rows] == [1.0] * 4
    assert all(row.stored_bytes for row in result.rows)


def test_a_retriever_is_scored_by_whether_the_answer_is_in_its_context() -> None:
    row = run(FullHistory).rows[0]
    assert row.scores == {"answer_retained": 1.0, "answer_recall": 1.0}
    assert (row.primary_score, row.score_name, row.score) == ("f1", "answer_retained", 1.0)
    assert row.context_tokens_in == row.context_tokens_out == row.input_tokens


def test_failures_are_rows_and_the_others_go_on() -> None:
    class Fails(Recalls):
        name = "fails"

        def ingest(self, turns: list[dict[str, Any]]) -> None:
            if "N0" in turns[0]["content"]:
                raise MemoryError("full")
            super().ingest(turns)

        def query(self, question: str) -> Any:
            return 17 if "bot" in question else super().query(question)

    rows = run(Fails()).rows
    assert [row.failure and row.failure.reason for row in rows] == [
        "EXCEPTION",
        "EXCEPTION",
        None,
        "BAD_RETURN",
    ]
    assert rows[0].failure is not None
    assert "full" in rows[0].failure.message


def test_a_query_that_hangs_fails_its_row() -> None:
    class Hangs(Recalls):
        name = "hangs"
        max_concurrency = 4

        async def aquery(self, question: str) -> str:
            if "bot" in question:
                await asyncio.sleep(3600)
            return "N0 N1"

    rows = run(Hangs(), timeout=0.3).rows
    reasons = [row.failure and row.failure.reason for row in rows]
    assert reasons == [None, "DEADLINE_EXCEEDED"] * 2


def test_turns_are_handed_out_as_copies() -> None:
    class Spoils(Recalls):
        name = "spoils"

        def ingest(self, turns: list[dict[str, Any]]) -> None:
            for turn in turns:
                turn["content"] = "spoiled"

    given = conversations()
    result = run(Spoils(), Recalls(), dataset=given)
    assert given == conversations()
    assert [row.scores["contains"] for row in result.rows[4:]] == [1.0] * 4


def test_a_long_conversation_comes_in_several_calls_in_order() -> None:
    class Lengths(Recalls):
        name = "lengths"

        def query(self, question: str) -> str:
            numbers = [turn["content"].split()[0] for turn in self._turns]
            return f"{self.calls.count('ingest')} calls, in order: {numbers == sorted(numbers)}"

    turns = [{"role": "user", "content": f"{number:03} " + "x" * 99_996} for number in range(25)]
    pairs = [{"question": "How many?", "answer": "3 calls, in order: True"}]
    result = run(Lengths(), dataset=[{"id": "long", "turns": turns, "qa_pairs": pairs}])
    assert result.rows[0].scores["exact_match"] == 1.0


def test_rows_are_kept_and_asked_again_only_where_the_conversation_changed(
    tmp_path: Path,
) -> None:
    first, again = Recalls(), Recalls()
    run(first, cache_dir=str(tmp_path))
    changed = conversations()
    changed[1]["turns"][0]["content"] = "My name is N1, by the way."
    result = run(again, cache_dir=str(tmp_path), dataset=changed)
    assert [row.reused for row in result.rows] == [True, True, False, False]
    assert again.calls == ["reset", "ingest", "query", "query", "reset"]


def test_abstentions_are_scored_as_such() -> None:
    class Unsure(Recalls):
        name = "unsure"

        def query(self, question: str) -> str:
            return "You never mentioned that." if "dog" in question else "N0"

    asked = [
        {"question": "What is the dog called?", "answer": "no dog", "is_abstention": True},
        {"question": "Who is the user?", "answer": "N0"},
        {"question": "What is the cat called?", "answer": "N0", "is_abstention": True},
    ]
    dataset = [{**conversations(1)[0], "qa_pairs": asked}]
    rows = run(Unsure(), dataset=dataset, evaluators=[AnswerQuality(), Abstention()]).rows
    assert [row.primary_score for row in rows] == ["abstention", "f1", "abstention"]
    assert [row.score for row in rows] == [1.0, 1.0, 0.0]


def test_max_examples_counts_conversations() -> None:
    assert len(run(Recalls(), dataset=conversations(5), max_examples=2).rows) == 4


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="different names; got recalls, recalls"):
        run(Recalls(), Recalls())
    with pytest.raises(InvalidSpec, match="budget must be at least 1, not 0"):
        run(Recalls(), budget=0)
    with pytest.raises(InvalidInput, match="object is not a memory system: it has no `name`"):
        run(object())


def test_a_type_of_question_that_there_is_not_is_named() -> None:
    with pytest.raises(BadDataset, match="no questions of type nonsense; it has: multi, single"):
        run(Recalls(), question_types=["single", "nonsense"])
    with pytest.raises(BadDataset, match="no questions of type nonsense"):
        run(Recalls(), question_types=["nonsense"])


def test_types_of_questions_may_be_written_either_way() -> None:
    talks = conversations()
    talks[0]["qa_pairs"][0]["type"] = "single_hop"
    talks[1]["qa_pairs"][1]["type"] = "Single-hop"
    result = run(Recalls(), dataset=talks, question_types=["single-hop"])
    assert [row.example_id for row in result.rows] == ["0_0", "1_1"]
