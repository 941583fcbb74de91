"""The Go SDK: its own tests and linters, its page and README, its examples, and conformance."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient, RemoteEvaluator, RemoteMemorySystem
from tests.sdks.toolchain import ROOT, conformance, evaluate, fences, follow, needs, run

GO = ROOT / "clients" / "go"
EXAMPLES = GO / "examples"
README = GO / "README.md"
# Nothing but what is installed and pinned.
LOCAL = {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}

Start = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def programs() -> Path:
    """Build the examples and the conformance program, and return where they are."""
    needs("go")
    run("go", "build", "-o", "bin/", "./conformance", "./examples/...", cwd=GO, **LOCAL)
    return GO / "bin"


def test_its_own_tests_pass() -> None:
    # The race detector takes minutes to compile where its parts are not cached.
    race = ["-race"] if os.environ.get("CI") == "true" else []
    run("go", "test", *race, "./...", cwd=GO, **LOCAL)


def test_it_is_formatted_and_vetted() -> None:
    assert run("gofmt", "-l", ".", cwd=GO) == ""
    run("go", "vet", "./...", cwd=GO, **LOCAL)
    run("go", "mod", "tidy", "-diff", cwd=GO, **LOCAL)


def test_its_stubs_are_what_the_protos_give() -> None:
    needs("npm")
    run("python", "stubs.py", "--check", cwd=GO, **LOCAL)


def test_it_passes_every_conformance_case(programs: Path, tmp_path: Path) -> None:
    known_failing = GO / "conformance" / "known-failing.txt"
    assert known_failing.read_text() == ""
    report = conformance(known_failing, programs / "conformance", home=tmp_path)
    assert report["sdk"] == "cbench-go/0.1.0"
    assert set(report["counts"]) == {"passed"}, report["counts"]


def test_the_page_leads_from_an_empty_folder_to_a_table(tmp_path: Path) -> None:
    page = ROOT / "docs" / "go.md"
    assert len(fences(page, "sh")) == 5
    printed = follow(page, tmp_path / "empty", **LOCAL)
    lines = [line.split() for line in printed.splitlines()]
    header = next(line for line in lines if line[:1] == ["System"])
    rows = {line[0]: line for line in lines if line[:1] in (["mine"], ["truncate-tail"])}
    assert header[-1] == "Failed"
    assert [row[-1] for row in rows.values()] == ["0", "0"]


def test_hello_is_at_most_ten_lines_and_shown_in_the_readme() -> None:
    hello = (EXAMPLES / "hello" / "main.go").read_text()
    assert len(hello.splitlines()) <= 10
    assert fences(README, "go")[0] == hello


def test_every_program_of_the_readme_compiles(tmp_path: Path) -> None:
    # Overlaid onto the module, so that its dependencies are those of go.mod.
    overlay = {}
    for number, program in enumerate(fences(README, "go")):
        path = tmp_path / f"{number}.go"
        # Another package than main is compiled, and not linked, which takes longer.
        path.write_text(program.replace("package main", "package readme", 1))
        overlay[str(GO / "readme" / str(number) / "main.go")] = str(path)
    (tmp_path / "overlay.json").write_text(json.dumps({"Replace": overlay}))
    run("go", "build", "-overlay", tmp_path / "overlay.json", "./readme/...", cwd=GO, **LOCAL)
    assert run("gofmt", "-l", tmp_path) == ""


def test_every_example_is_tested() -> None:
    tested = {"attach", "bm25", "drive", "hello", "hello-evaluator", "hello-memory"}
    assert {path.name for path in EXAMPLES.iterdir()} == tested


def test_hello_answers_every_question(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "hello", "--dataset", "mini-qa")
    report = evaluate(*launch, home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == (["hello"], 0)
    assert report["completed_rows"] == report["total_rows"] > 0


def test_the_compressor_keeps_the_answers_in_a_third_of_the_words(
    programs: Path, tmp_path: Path
) -> None:
    launch = ("--launch", programs / "bm25", "--option", "ratio=0.3", "--dataset", "long-notes")
    report = evaluate(*launch, home=tmp_path)
    summary = report["summary"]["go-bm25"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.6


def test_the_compressor_gives_the_same_twice(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "bm25", "--dataset", "long-notes", "-n", "10")
    first, second = (evaluate(*launch, home=tmp_path)["summary"]["go-bm25"] for _ in range(2))
    assert first["mean_output_tokens"] == second["mean_output_tokens"]
    assert first["mean_score"] == second["mean_score"]


def test_the_evaluator_scores_a_pair_and_a_run(
    programs: Path, start: Start, tmp_path: Path
) -> None:
    address = start(programs / "hello-evaluator")
    with RemoteEvaluator(address) as evaluator:
        scores = evaluator.score({"answer": "abc"}, {"response": "xyz"})
        assert scores == {"same_length": 1.0}
        assert evaluator.score({}, {"response": "xyz"}) == {}
    report = evaluate(
        *("--launch", programs / "hello", "--dataset", "mini-qa", "-n", "3"),
        *("--evaluator", f"same-length@{address}"),
        home=tmp_path,
    )
    assert [sorted(row["scores"]).count("same_length") for row in report["rows"]] == [1, 1, 1]


def test_the_memory_system_remembers(programs: Path, start: Start) -> None:
    address = start(programs / "hello-memory")
    with RemoteMemorySystem(address) as memory:
        memory.reset()
        memory.ingest([{"role": "user", "content": "My garden has three apple trees."}])
        memory.ingest([{"role": "user", "content": "Lunch is at noon."}])
        answer = memory.query("How many trees grow in the garden?")
    assert "three apple trees" in str(answer)


def test_the_attached_example_takes_part_in_a_run_and_drains(
    programs: Path, daemon_address: str
) -> None:
    process = subprocess.Popen([programs / "attach", "-daemon", daemon_address])
    try:
        spec = {
            "systems": [{"attached": "first-words", "options": {"words": 5}}],
            "datasets": [{"name": "mini-qa", "max_examples": 5}],
        }
        with BenchClient(daemon_address) as client:
            wait_until_listed(client, "first-words")
            rows = [event.row for event in client.evaluate(spec) if event.HasField("row")]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(30)
    assert [row.HasField("failure") for row in rows] == [False] * 5


def wait_until_listed(client: BenchClient, name: str) -> None:
    deadline = time.monotonic() + 30
    while name not in {system.name for system in client.components().systems}:
        assert time.monotonic() < deadline, f"{name} has not attached itself"
        time.sleep(0.05)


def test_the_driving_example_starts_and_follows_a_run(programs: Path, daemon_address: str) -> None:
    printed = run(programs / "drive", "-daemon", daemon_address)
    assert "RUN_STATE_SUCCEEDED, 40 rows" in printed
    assert "truncate-tail: mean score 0." in printed


def test_an_error_of_the_daemon_is_one_line(programs: Path) -> None:
    done = subprocess.run(
        [programs / "drive", "-daemon", "127.0.0.1:1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("no daemon answers at 127.0.0.1:1")
    assert done.stderr.count("\n") == 1
