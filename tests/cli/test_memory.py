"""`cbench memory run`, as a person would type it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cbench, complaint, strict
from tests.systems.conftest import ModelServer, server  # noqa: F401 # a fixture

_SYSTEMS = Path(__file__).parent.parent / "e2e" / "memory_systems.py"
_CONVERSATION: dict[str, Any] = {
    "id": "c1",
    "turns": [
        {"role": "user", "content": "I moved to Oslo.", "time": "2024-05-01"},
        {"role": "assistant", "content": "How nice."},
    ],
    "qa_pairs": [
        {"question": "Where did I move?", "answer": "Oslo", "type": "single_hop"},
        {"question": "When did I move?", "answer": "May", "asked_at": "2024-06-02"},
        {"question": "What is my dog called?", "answer": "", "is_abstention": True},
    ],
}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(_CONVERSATION) + "\n")
    return path


def test_the_embedded_conversations_are_run_without_a_network(cbench: Cbench) -> None:
    finished = cbench(
        "memory", "run", "--builtin", "full-history", "--builtin", "bm25", "--dataset",
        "mini-memory", "-n", 2,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert "full-history" in finished.stdout
    assert "Mean score by type of question" in finished.stdout
    assert "Failed" in finished.stdout.splitlines()[0]
    listed = cbench("runs", "--output", "json")
    assert strict(listed.stdout)[0]["state"] == "succeeded"


def test_a_file_of_conversations_goes_to_a_daemon(
    cbench: Cbench, given: Path, daemon_address: str
) -> None:
    finished = cbench(
        "memory", "run", "--server", daemon_address, "--builtin", "full-history", "--dataset",
        given, "--qa-types", "single_hop, abstention", "--output", "jsonl",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    rows = [json.loads(line) for line in finished.stdout.splitlines()]
    assert sorted(row["example_id"] for row in rows) == ["c1_0", "c1_2"]
    assert {row["dataset"] for row in rows} == {"chats"}


def test_a_reader_answers_from_the_context_and_is_told_the_date(
    cbench: Cbench,
    given: Path,
    server: ModelServer,  # noqa: F811 # a fixture
) -> None:
    server.say("It was Oslo.", prompt_tokens=7, completion_tokens=3)
    finished = cbench(
        "memory", "run", "--builtin", "bm25", "--reader", server.url, "--dataset", given,
        "--no-anchors", "--output", "json", NO_PROXY="*",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    rows = {row["example_id"]: row for row in strict(finished.stdout)["rows"]}
    assert rows["c1_0"]["scores"]["contains"] == 1.0
    assert rows["c1_0"]["reader_usage"]["prompt_tokens"] == 7
    assert rows["c1_2"]["scores"] == {"abstention": 0.0}
    asked = [request["messages"] for request in server.requests]
    (dated,) = [messages[-1]["content"] for messages in asked if "2024-06-02" in str(messages)]
    assert "(Asked at 2024-06-02)\nWhen did I move?" in dated
    assert any("I moved to Oslo." in messages[0]["content"] for messages in asked)


def test_a_judge_is_the_memory_judge(
    cbench: Cbench,
    given: Path,
    server: ModelServer,  # noqa: F811 # a fixture
    start: Callable[..., str],
) -> None:
    server.say("YES\nbecause it is so")
    finished = cbench(
        "memory", "run", "--system", start(sys.executable, _SYSTEMS, "notes", "0"), "--dataset",
        given, "--judge-url", server.url, "--judge-unqualified", "--output", "json", NO_PROXY="*",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    rows = strict(finished.stdout)["rows"]
    assert [row["scores"]["memory_judge"] for row in rows] == [1.0] * 3


def test_what_a_process_under_launch_remembers_is_asked(cbench: Cbench, given: Path) -> None:
    command = f"{sys.executable} {_SYSTEMS} bare 0"
    finished = cbench(
        "memory", "run", "--launch", command, "--dataset", given, "--budget", 100, "--output", "csv"
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("\nbare,chats,c1_") == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--builtin", "bm26"], 'no memory system "bm26"; did you mean "bm25"?'),
        (["--builtin", "bm25", "--budget", "0"], '"0" is not a whole number of at least 1'),
        (["--builtin", "bm25", "--qa-types", ","], "is not a list of names"),
        (
            ["--builtin", "bm25", "--qa-types", "single_hop,nonsense", "-n", "1"],
            "has no questions of type nonsense; it has: ",
        ),
        (["--proxy", "http://x"], 'unknown flag "--proxy"'),
        (["--builtin", "bm25", "--option", "k=0"], "k is 0; it is how many turns to return"),
        ([], "--attached or --launch. For example: --builtin bm25"),
    ],
    ids=["name", "budget", "types", "type", "proxy", "option", "none"],
)
def test_a_mistake_is_one_line_with_the_way_out(
    cbench: Cbench, given: Path, words: list[str], expected: str
) -> None:
    finished = cbench("memory", "run", "--dataset", given, *words)
    assert finished.returncode != 0
    assert expected in complaint(finished)


def test_a_relay_answers_and_judges_as_context_bench_has_it(
    cbench: Cbench,
    given: Path,
    server: ModelServer,  # noqa: F811
) -> None:
    server.say("YES, to Oslo")
    words = ["--system", "bm25", "--system", "naive", "--relay", f"{server.url}/v1"]
    finished = cbench("memory", *words, "--dataset", given, "--api-key", "sk-1", "--model", "m")
    assert finished.returncode == 0, finished.stderr
    header, _, *lines = finished.stdout.splitlines()
    assert "memory_judge" in header
    assert [line.split()[0] for line in lines[:2]] == ["bm25", "naive"]
    judged = {line.split()[0]: line for line in lines[:2]}
    assert "1.000" in judged["naive"]
    assert {each["model"] for each in server.requests} == {"m"}
    assert {each.get("authorization") for each in server.headers} == {"Bearer sk-1"}
    assert set(server.paths) == {"/v1/models", "/v1/chat/completions"}


def test_a_key_is_not_sent_through_a_daemon(cbench: Cbench) -> None:
    words = ["--system", "naive", "--relay", "http://127.0.0.1:1", "--api-key", "k"]
    finished = cbench("memory", *words, "--server", "127.0.0.1:1")
    assert finished.returncode == 2
    assert "--api-key only works without --server" in complaint(finished)


def test_a_memory_system_of_another_project_is_no_name_here(cbench: Cbench) -> None:
    finished = cbench("memory", "--system", "mem0", "--dataset", "mini-memory")
    assert finished.returncode == 2
    assert 'no memory system "mem0". Known: bm25, full-history, last-n, no-context.' in complaint(
        finished
    )
