"""Every program in examples/ does what its first lines say."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient, RemoteEvaluator, RemoteSystem
from cbench_server.registry import load_dataset
from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until_listed

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "python"
TESTED_HERE = {
    "attached.py",
    "bm25.py",
    "embedding_retriever.py",
    "extractive.py",
    "follow_a_run.py",
    "in_process.py",
    "keyword_windows.py",
    "numbers_kept.py",
    "topic_notes.py",
    "rules_of_thumb.py",
}
TESTED_WITH_THE_SDK = {"hello_evaluator.py", "hello_memory.py", "hello_system.py", "lexrank.py"}
TESTED_WITH_ADAPTERS = {"embedding_memory.py"}

Start = Callable[..., str]


def run_example(name: str, *arguments: str) -> str:
    done = preloaded.run(
        [sys.executable, EXAMPLES / name, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bm25_keeps_the_passages_with_the_answers(start: Start) -> None:
    address = start(sys.executable, EXAMPLES / "bm25.py")
    examples = list(load_dataset("long-notes"))[:8]
    kept = 0
    with RemoteSystem(address) as system:
        for example in examples:
            processed = system.process({key: example[key] for key in ("id", "context", "question")})
            assert len(processed["context"].split()) < 0.4 * len(example["context"].split())
            kept += example["answer"] in processed["context"]
    assert kept >= 6


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == (
        TESTED_HERE | TESTED_WITH_THE_SDK | TESTED_WITH_ADAPTERS
    )


@pytest.mark.parametrize("name", ["extractive", "keyword-windows"])
def test_a_compressor_shortens_a_long_context_and_keeps_the_answer(name: str, start: Start) -> None:
    address = start(sys.executable, EXAMPLES / f"{name.replace('-', '_')}.py")
    example = next(iter(load_dataset("long-notes")))
    with RemoteSystem(address) as system:
        processed = system.process({key: example[key] for key in ("id", "context", "question")})
        assert system.name == name
    assert len(processed["context"]) < 0.5 * len(example["context"])
    assert example["answer"] in processed["context"]


def test_a_retriever_by_embeddings_keeps_the_sentence_that_was_asked_for(start: Start) -> None:
    packages = EXAMPLES.parent.parent / ".demo" / "embedding"
    if not (packages / "wordllama").is_dir():
        missing = "wordllama is not here: python scripts/demo_model.py --fetch-only"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    address = start(
        "env", f"PYTHONPATH={packages}", sys.executable, EXAMPLES / "embedding_retriever.py"
    )
    example = next(iter(load_dataset("mini-qa")))
    with RemoteSystem(address) as system:
        processed = system.process({key: example[key] for key in ("id", "context", "question")})
    assert len(processed["context"]) < 0.6 * len(example["context"])
    assert example["answer"] in processed["context"]


@pytest.mark.parametrize(
    ("dataset", "example_id", "response"),
    [
        ("mini-choice", "mini-choice-003", "The answer is B."),
        ("mini-code", "mini-code-006", "math.gcd(*given[0])"),
        ("mini-maths", "mini-maths-016", "The answer is 3/50."),
        ("mini-nli", "mini-nli-002", "contradiction"),
        ("mini-instructions", "mini-instructions-027", '"Here you are: Invent a saying'),
        ("mini-qa", "mini-qa-001", "learned to bake on a ferry"),
    ],
)
def test_rules_of_thumb_respond_to_every_kind_of_question(
    dataset: str, example_id: str, response: str, start: Start
) -> None:
    address = start(sys.executable, EXAMPLES / "rules_of_thumb.py")
    (example,) = (each for each in load_dataset(dataset) if each["id"] == example_id)
    with RemoteSystem(address) as system:
        assert response in system.process({**example, "answer": ""})["response"]


def test_an_evaluator_of_ones_own_is_served(start: Start) -> None:
    address = start(sys.executable, EXAMPLES / "numbers_kept.py")
    with RemoteEvaluator(address) as evaluator:
        assert evaluator.score({"context": "7 of 10"}, {"context": "7"}) == {"numbers_kept": 0.5}
        assert evaluator.score({"context": "none"}, {"context": "7"}) == {}


def test_an_attached_system_takes_part_in_a_run(daemon_address: str) -> None:
    process = preloaded.Popen([sys.executable, EXAMPLES / "attached.py", daemon_address])
    try:
        spec = {
            "systems": [{"attached": "first-and-last"}],
            "datasets": [{"name": "mini-qa", "max_examples": 5}],
        }
        with BenchClient(daemon_address) as client:
            wait_until_listed(client, "first-and-last")
            rows = [event.row for event in client.evaluate(spec) if event.HasField("row")]
    finally:
        process.terminate()
        assert process.wait(30) == 0
    assert [row.HasField("failure") for row in rows] == [False] * 5


def test_a_run_is_followed_from_python(daemon_address: str) -> None:
    lines = run_example("follow_a_run.py", daemon_address).splitlines()
    assert len(lines) == 11
    assert lines[-1].endswith(": 10 rows")


def test_an_object_is_evaluated_in_process() -> None:
    assert "mean_score: 0.775" in run_example("in_process.py").splitlines()


def test_a_memory_is_fed_and_asked(start: Start, daemon_address: str) -> None:
    address = start(sys.executable, EXAMPLES / "topic_notes.py")
    spec = {
        "kind": "memory",
        "systems": [{"target": address}],
        "datasets": [{"name": "mini-memory", "max_examples": 2}],
    }
    with BenchClient(daemon_address) as client:
        rows = [event.row for event in client.evaluate(spec) if event.HasField("row")]
    assert {row.system for row in rows} == {"topic-notes"}
    assert not any(row.HasField("failure") for row in rows)
    assert all(0 <= row.context_tokens_out < row.context_tokens_in for row in rows)
    retained = [row.scores["answer_retained"] for row in rows if "answer_retained" in row.scores]
    assert sum(retained) > 0


def test_an_example_says_how_to_start_it() -> None:
    for name in TESTED_HERE | TESTED_WITH_THE_SDK:
        head = (EXAMPLES / name).read_text().split('"""')[1]
        assert f"python examples/python/{name}" in head, name
