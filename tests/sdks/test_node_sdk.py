"""The Node SDK: its own tests and linters, its page and README, its examples, and conformance."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient, RemoteEvaluator, RemoteMemorySystem
from tests.sdks.toolchain import ROOT, build_example, conformance, evaluate, fences, follow, run

NODE = ROOT / "clients" / "node"
EXAMPLES = NODE / "examples"
README = NODE / "README.md"

Start = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Install what the build needs, and build the package, unless that is done."""
    build_example("keyword-in-context", tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def tools() -> None:
    """Install the linter and the generator."""
    _install(NODE / "tools")


def _install(folder: Path) -> None:
    noted = folder / "node_modules" / ".package-lock.json"
    wanted = folder / "package-lock.json"
    if not noted.exists() or noted.stat().st_mtime < wanted.stat().st_mtime:
        run("npm", "ci", "--ignore-scripts", "--loglevel=error", cwd=folder)


def test_its_own_tests_pass() -> None:
    run("npm", "test", "--silent", cwd=NODE)


@pytest.mark.usefixtures("tools")
def test_it_is_linted_and_its_types_hold() -> None:
    run("npm", "run", "--silent", "lint", cwd=NODE)


@pytest.mark.usefixtures("tools")
def test_its_stubs_are_what_the_protos_give() -> None:
    run("npm", "run", "--silent", "check-generated", cwd=NODE)


def test_it_passes_every_conformance_case(tmp_path: Path) -> None:
    known_failing = NODE / "conformance" / "known-failing.txt"
    assert known_failing.read_text() == ""
    report = conformance(known_failing, "node", NODE / "conformance" / "program.js", home=tmp_path)
    assert report["sdk"] == "cbench-node/0.1.0"
    assert set(report["counts"]) == {"passed"}, report["counts"]


def test_the_page_leads_from_an_empty_folder_to_a_table(tmp_path: Path) -> None:
    page = ROOT / "docs" / "node.md"
    assert len(fences(page, "sh")) == 5
    # The page builds the SDK in the clone, which other tests use meanwhile.
    unbuilt = shutil.ignore_patterns("dist", "node_modules")
    shutil.copytree(NODE, tmp_path / "clone" / "clients" / "node", ignore=unbuilt)
    printed = follow(page, tmp_path / "empty", clone=tmp_path / "clone")
    lines = [line.split() for line in printed.splitlines()]
    header = next(line for line in lines if line[:1] == ["System"])
    rows = {line[0]: line for line in lines if line[:1] in (["mine"], ["truncate-tail"])}
    assert header[-1] == "Failed"
    assert [row[-1] for row in rows.values()] == ["0", "0"]


def test_hello_is_at_most_ten_lines_and_shown_in_the_readme() -> None:
    hello = (EXAMPLES / "hello-system.js").read_text()
    assert len(hello.splitlines()) <= 10
    assert fences(README, "js")[0] == hello


def test_every_program_of_the_readme_can_be_parsed(tmp_path: Path) -> None:
    for number, program in enumerate(fences(README, "js")):
        path = tmp_path / f"{number}.mjs"
        path.write_text(program)
        run("node", "--check", path)


def test_every_example_is_tested() -> None:
    tested = "attached follow-a-run hello-evaluator hello-memory hello-system keyword-in-context"
    assert {path.stem for path in EXAMPLES.iterdir()} == set(tested.split())


def test_hello_answers_every_question(tmp_path: Path) -> None:
    launch = f"node {EXAMPLES / 'hello-system.js'}"
    report = evaluate("--launch", launch, "--dataset", "mini-qa", home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == (["first-thousand"], 0)
    assert report["completed_rows"] == report["total_rows"] > 0


def test_the_extractor_keeps_the_answers_in_a_fifth_of_the_words(tmp_path: Path) -> None:
    report = evaluate(
        *("--launch", f"node {EXAMPLES / 'keyword-in-context.js'}"),
        *("--option", "ratio=0.2", "--dataset", "long-notes"),
        home=tmp_path,
    )
    summary = report["summary"]["keyword-in-context"]
    assert report["failed_rows"] == 0
    assert summary["mean_score"] > 0.9
    assert summary["context_compression"] > 0.75


def test_a_ratio_that_is_none_fails_every_row_by_name(tmp_path: Path) -> None:
    report = evaluate(
        *("--launch", f"node {EXAMPLES / 'keyword-in-context.js'}"),
        *("--option", "ratio=7", "--dataset", "long-notes", "-n", "2"),
        home=tmp_path,
    )
    messages = {row["failure"]["message"] for row in report["rows"]}
    assert messages == {"ratio is 7; it must be above 0 and at most 1"}


def test_the_evaluator_scores_a_pair_and_a_run(start: Start, tmp_path: Path) -> None:
    address = start("node", EXAMPLES / "hello-evaluator.js")
    with RemoteEvaluator(address) as evaluator:
        assert evaluator.score({"answer": "ab"}, {"response": "abcd"}) == {"brevity": 0.5}
        assert evaluator.score({}, {"response": "abcd"}) == {}
    report = evaluate(
        *("--builtin", "identity", "--dataset", "mini-qa", "-n", "3"),
        *("--evaluator", f"brevity@{address}"),
        home=tmp_path,
    )
    assert (report["completed_rows"], report["failed_rows"]) == (3, 0)


def test_the_memory_system_remembers(start: Start) -> None:
    with RemoteMemorySystem(start("node", EXAMPLES / "hello-memory.js")) as memory:
        memory.reset()
        memory.ingest([{"role": "user", "content": "My garden has three apple trees."}])
        memory.ingest([{"role": "user", "content": "Lunch is at noon."}])
        answer = memory.query("How many trees grow in the garden?")
    assert "three apple trees" in str(answer)


@pytest.fixture
def attached(daemon_address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start the attached example, and end it if it has not ended."""
    node = shutil.which("node") or "node"
    process = subprocess.Popen([node, EXAMPLES / "attached.js", daemon_address])
    yield process
    process.kill()
    process.wait(30)


def test_the_attached_example_takes_part_in_a_run_and_drains(
    attached: subprocess.Popen[bytes], daemon_address: str
) -> None:
    spec = {
        "systems": [{"attached": "both-ends"}],
        "datasets": [{"name": "mini-qa", "max_examples": 5}],
    }
    with BenchClient(daemon_address) as client:
        deadline = time.monotonic() + 30
        while "both-ends" not in {system.name for system in client.components().systems}:
            assert time.monotonic() < deadline, "it has not attached itself"
            time.sleep(0.05)
        rows = [event.row for event in client.evaluate(spec) if event.HasField("row")]
    assert [row.HasField("failure") for row in rows] == [False] * 5
    attached.send_signal(signal.SIGTERM)
    assert attached.wait(30) == 0


def test_the_driving_example_starts_and_follows_a_run(daemon_address: str) -> None:
    printed = run("node", EXAMPLES / "follow-a-run.js", daemon_address)
    assert printed.count("truncate-tail  mini-qa-") == 10
    assert "succeeded" in printed
    assert "answer-quality on its own: {" in printed


def test_a_daemon_that_is_not_there_is_said_in_a_sentence() -> None:
    node = shutil.which("node") or "node"
    command = [node, str(EXAMPLES / "follow-a-run.js"), "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nothing listens at 127.0.0.1:1. Is it running?" in done.stderr
