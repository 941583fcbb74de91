"""The Python SDK: its page and README, its examples, and conformance.

Its own tests are in clients/python/tests, the other examples' in tests/test_examples.py, and
`make lint` checks its code and its stubs.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import RemoteEvaluator, RemoteMemorySystem
from tests.sdks.toolchain import ROOT, conformance, evaluate, fences, follow

PYTHON = ROOT / "clients" / "python"
EXAMPLES = ROOT / "examples" / "python"
README = PYTHON / "README.md"

Start = Callable[..., str]


def headings(page: Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if line.startswith("## ")]


def test_every_sdk_has_the_same_sections_in_its_readme() -> None:
    for language in ("go", "node", "rust"):
        assert headings(ROOT / "clients" / language / "README.md") == headings(README), language


def test_every_sdk_has_a_page_that_starts_in_an_empty_folder() -> None:
    for language in ("go", "node", "python", "rust"):
        page = ROOT / "docs" / f"{language}.md"
        assert page.read_text().startswith("# From an empty folder to a scored run, in ")
        assert len(fences(page, "sh")) <= 5


def test_it_passes_every_conformance_case(tmp_path: Path) -> None:
    known_failing = PYTHON / "conformance" / "known-failing.txt"
    assert known_failing.read_text() == ""
    program = (sys.executable, PYTHON / "conformance" / "program.py")
    report = conformance(known_failing, *program, home=tmp_path)
    assert report["sdk"] == "cbench-python/0.1.0"
    assert set(report["counts"]) == {"passed"}, report["counts"]


def test_the_page_leads_from_an_empty_folder_to_a_table(tmp_path: Path) -> None:
    printed = follow(ROOT / "docs" / "python.md", tmp_path / "empty")
    lines = [line.split() for line in printed.splitlines()]
    header = next(line for line in lines if line[:1] == ["System"])
    rows = {line[0]: line for line in lines if line[:1] in (["mine"], ["truncate-tail"])}
    assert header[-1] == "Failed"
    assert [row[-1] for row in rows.values()] == ["0", "0"]


def test_hello_is_at_most_ten_lines_and_shown_in_the_readme() -> None:
    hello = (EXAMPLES / "hello_system.py").read_text()
    assert len(hello.splitlines()) <= 10
    assert fences(README, "python")[0] == hello


def test_hello_answers_every_question(tmp_path: Path) -> None:
    launch = f"{sys.executable} {EXAMPLES / 'hello_system.py'}"
    report = evaluate("--launch", launch, "--dataset", "mini-qa", home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == (["hello"], 0)
    assert report["completed_rows"] == report["total_rows"] > 0


def test_the_evaluator_scores_a_pair_and_a_run(start: Start, tmp_path: Path) -> None:
    address = start(sys.executable, EXAMPLES / "hello_evaluator.py")
    with RemoteEvaluator(address) as evaluator:
        scores = evaluator.score({"answer": "abc"}, {"response": "xyz"})
        assert scores == {"same_length": 1.0}
        assert evaluator.score({}, {"response": "xyz"}) == {}
    report = evaluate(
        *("--launch", f"{sys.executable} {EXAMPLES / 'hello_system.py'}"),
        *("--dataset", "mini-qa", "-n", "3", "--evaluator", f"same-length@{address}"),
        home=tmp_path,
    )
    assert [sorted(row["scores"]).count("same_length") for row in report["rows"]] == [1, 1, 1]


def test_the_memory_system_remembers(start: Start) -> None:
    with RemoteMemorySystem(start(sys.executable, EXAMPLES / "hello_memory.py")) as memory:
        memory.reset()
        memory.ingest([{"role": "user", "content": "My garden has three apple trees."}])
        memory.ingest([{"role": "user", "content": "Lunch is at noon."}])
        answer = memory.query("How many trees grow in the garden?")
    assert "three apple trees" in str(answer)


@pytest.mark.parametrize("ratio", [0.05, 0.3])
def test_the_summariser_keeps_the_answers_within_its_budget(ratio: float, tmp_path: Path) -> None:
    launch = f"{sys.executable} {EXAMPLES / 'lexrank.py'}"
    report = evaluate(
        *("--launch", launch, "--option", f"ratio={ratio}", "--dataset", "long-notes"),
        home=tmp_path,
    )
    summary = report["summary"]["python-lexrank"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] >= 0.9
    assert summary["context_compression"] > 0.95 * (1 - ratio)


def test_an_option_that_is_no_share_fails_every_row_by_name(tmp_path: Path) -> None:
    report = evaluate(
        *("--launch", f"{sys.executable} {EXAMPLES / 'lexrank.py'}"),
        *("--option", "bias=7", "--dataset", "long-notes", "-n", "2"),
        home=tmp_path,
    )
    messages = {row["failure"]["message"] for row in report["rows"]}
    assert messages == {"bias is 7; it must be a number from 0 to 1"}
