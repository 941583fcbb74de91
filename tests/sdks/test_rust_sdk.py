"""The Rust SDK: its own tests and linters, its page and README, its examples, and conformance."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient, RemoteEvaluator, RemoteMemorySystem
from tests.sdks.toolchain import ROOT, conformance, evaluate, fences, follow, needs, run

RUST = ROOT / "clients" / "rust"
EXAMPLES = RUST / "examples"
README = RUST / "README.md"

# Crates elsewhere that use the SDK find its dependencies compiled.
SHARED = {"CARGO_BUILD_BUILD_DIR": str(RUST / "target"), "CARGO_PROFILE_DEV_DEBUG": "0"}

Start = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def programs() -> Path:
    """Build the examples and the conformance program, and return where they are."""
    needs("cargo")
    run("cargo", "build", "--locked", "--examples", cwd=RUST)
    return RUST / "target" / "debug" / "examples"


def test_its_own_tests_pass() -> None:
    run("cargo", "test", "--locked", "--quiet", cwd=RUST)


def test_it_is_formatted_and_linted_and_documented() -> None:
    run("cargo", "fmt", "--all", "--check", cwd=RUST)
    run(
        *("cargo", "clippy", "--locked", "--workspace", "--all-targets", "--quiet"),
        *("--", "-D", "warnings"),
        cwd=RUST,
    )
    run("cargo", "doc", "--locked", "--no-deps", "--quiet", cwd=RUST, RUSTDOCFLAGS="-D warnings")


def test_its_stubs_are_what_the_protos_give() -> None:
    run("cargo", "xtask", "protos", "--check", cwd=RUST)


def test_it_passes_every_conformance_case(programs: Path, tmp_path: Path) -> None:
    known_failing = RUST / "conformance" / "known-failing.txt"
    assert known_failing.read_text() == ""
    report = conformance(known_failing, programs / "conformance", home=tmp_path)
    assert report["sdk"] == "cbench-rust/0.1.0"
    assert set(report["counts"]) == {"passed"}, report["counts"]


def test_the_page_leads_from_an_empty_folder_to_a_table(tmp_path: Path) -> None:
    page = ROOT / "docs" / "rust.md"
    assert len(fences(page, "sh")) == 5
    printed = follow(page, tmp_path / "empty", **SHARED)
    lines = [line.split() for line in printed.splitlines()]
    header = next(line for line in lines if line[:1] == ["System"])
    rows = {line[0]: line for line in lines if line[:1] in (["mine"], ["truncate-tail"])}
    assert header[-1] == "Failed"
    assert [row[-1] for row in rows.values()] == ["0", "0"]


def test_hello_is_at_most_ten_lines_and_shown_in_the_readme() -> None:
    hello = (EXAMPLES / "hello.rs").read_text()
    assert len(hello.splitlines()) <= 10
    assert fences(README, "rust")[0] == hello


def test_every_program_of_the_readme_compiles(tmp_path: Path) -> None:
    for number, program in enumerate(fences(README, "rust")):
        path = tmp_path / "src" / "bin" / f"readme{number}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program if "fn main" in program else f"{program}\nfn main() {{}}\n")
    run("cargo", "init", "--lib", "--vcs", "none", "--name", "readme", cwd=tmp_path)
    run("cargo", "add", "cbench-client", "--path", RUST, cwd=tmp_path)
    run("cargo", "add", "tokio", "--features", "macros,rt-multi-thread", cwd=tmp_path)
    for name in ("Cargo.lock", "rustfmt.toml"):
        shutil.copy(RUST / name, tmp_path)
    run("cargo", "build", "--quiet", cwd=tmp_path, **SHARED)
    run("cargo", "fmt", "--check", cwd=tmp_path)


def test_every_example_is_tested() -> None:
    tested = {"attach", "dedup", "drive", "hello", "hello_evaluator", "hello_memory"}
    assert {path.stem for path in EXAMPLES.iterdir()} == tested


def test_hello_answers_every_question(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "hello", "--dataset", "mini-qa")
    report = evaluate(*launch, home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == (["hello"], 0)
    assert report["completed_rows"] == report["total_rows"] > 0


def test_the_compressor_keeps_the_answers_within_its_budget(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "dedup", "--option", "ratio=0.3", "--dataset", "long-notes")
    report = evaluate(*launch, home=tmp_path)
    summary = report["summary"]["rust-dedup"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.6


def test_the_compressor_gives_the_same_twice(programs: Path, tmp_path: Path) -> None:
    launch = ("--launch", programs / "dedup", "--dataset", "long-notes", "-n", "10")
    first, second = (evaluate(*launch, home=tmp_path)["summary"]["rust-dedup"] for _ in range(2))
    assert first["mean_output_tokens"] == second["mean_output_tokens"]
    assert first["mean_score"] == second["mean_score"]


def test_the_evaluator_scores_a_pair_and_a_run(
    programs: Path, start: Start, tmp_path: Path
) -> None:
    address = start(programs / "hello_evaluator")
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
    address = start(programs / "hello_memory")
    with RemoteMemorySystem(address) as memory:
        memory.reset()
        memory.ingest([{"role": "user", "content": "My garden has three apple trees."}])
        memory.ingest([{"role": "user", "content": "Lunch is at noon."}])
        answer = memory.query("How many trees grow in the garden?")
    assert "three apple trees" in str(answer)


def test_the_attached_example_takes_part_in_a_run_and_drains(
    programs: Path, daemon_address: str
) -> None:
    process = subprocess.Popen([programs / "attach", daemon_address])
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
    printed = run(programs / "drive", daemon_address)
    assert "RUN_STATE_SUCCEEDED, 40 rows" in printed
    assert "truncate-tail: mean score 0." in printed


def test_an_error_of_the_daemon_is_one_line(programs: Path) -> None:
    done = subprocess.run(
        [programs / "drive", "127.0.0.1:1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: nothing listens at 127.0.0.1:1.")
    assert done.stderr.count("\n") == 1
