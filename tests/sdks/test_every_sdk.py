"""What holds for every SDK: its own tests and linters, its page and README, its examples.

What differs is in the table of tests/fixtures/sdks.py. The tests of the Python SDK are in
clients/python/tests, its linters in `make lint`, its run of the conformance suite in
tests/conformance, and its programs that attach and drive in tests/test_examples.py.
"""

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_client import BenchClient, RemoteEvaluator, RemoteMemorySystem
from cbench_server.rpc.grants import digest_of
from tests.e2e.processes import DaemonProcess
from tests.fixtures.sdks import (
    CLIENTS,
    COMPILED,
    GO,
    NODE,
    PYTHON_SDK,
    SDKS,
    Sdk,
    built,
    complains,
    needs,
    public_names,
    run,
    with_node_tools,
)
from tests.fixtures.waiting import wait_until_listed
from tests.sdks.toolchain import conformance, evaluate, fences, follow, table

Start = Callable[..., str]

each = pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.name)
each_compiled = pytest.mark.parametrize("sdk", COMPILED, ids=lambda sdk: sdk.name)


def headings(page: Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if line.startswith("## ")]


@each_compiled
def test_its_readme_has_the_same_sections(sdk: Sdk) -> None:
    assert headings(sdk.readme) == headings(PYTHON_SDK.readme)


@pytest.mark.parametrize(
    ("folder", "client", "method"),
    [
        ("python", "## BenchClient\n", r"^- `(\w+)\("),
        ("node", "## BenchClient\n", r"^    (\w+)\("),
        ("go", "type Client struct", r"^func \(c \*Client\) (\w+)\("),
        ("rust", "## Bench\n", r"^pub async fn (\w+)"),
    ],
    ids=lambda value: value if value.isalpha() else "",
)
def test_its_readme_names_every_request_to_a_daemon(folder: str, client: str, method: str) -> None:
    api = (CLIENTS / folder / "API.md").read_text().partition(client)[2]
    names = set(re.findall(method, re.split(r"^## ", api, maxsplit=1, flags=re.M)[0], re.M))
    readme = (CLIENTS / folder / "README.md").read_text()
    beside = {"connect", "constructor", "close"}  # Making a client and ending it.
    missing = {name for name in names - beside if not re.search(rf"[`.]{name}\b", readme)}
    assert (len(names) > 20, missing) == (True, set())


@each_compiled
def test_its_own_tests_pass(sdk: Sdk) -> None:
    built(sdk)
    for command in sdk.tests:
        run(*command, cwd=sdk.folder, **sdk.environment)


@each_compiled
def test_it_is_formatted_and_linted(sdk: Sdk) -> None:
    built(sdk)
    if sdk is NODE:
        with_node_tools()
    for command in sdk.lint:
        printed = run(*command, cwd=sdk.folder, **sdk.environment)
        assert command[0] != "gofmt" or printed == ""


@each_compiled
def test_its_stubs_are_what_the_protos_give(sdk: Sdk) -> None:
    needs("npm")
    if sdk is NODE:
        with_node_tools()
    for command in sdk.stubs:
        run(*command, cwd=sdk.folder, **sdk.environment)


@each_compiled
def test_it_passes_every_conformance_case(sdk: Sdk, tmp_path: Path) -> None:
    report = conformance(built(sdk), home=tmp_path)
    assert report["sdk"] == f"cbench-{sdk.name}/0.1.0"
    assert set(report["counts"]) == {"passed"}, report["counts"]


@pytest.mark.parametrize("sdk", [NODE, GO, PYTHON_SDK], ids=lambda sdk: sdk.name)
def test_its_page_of_public_names_is_current(sdk: Sdk) -> None:
    """Rust's is in test_rust_sdk.py, with what rustdoc has to say."""
    built(sdk)
    assert (sdk.folder / "API.md").read_text() == public_names(sdk), "run: make sdk-docs"


@each
def test_the_page_leads_from_an_empty_folder_to_a_table(sdk: Sdk, tmp_path: Path) -> None:
    assert sdk.page.read_text().startswith("# From an empty folder to a scored run, in ")
    assert len(fences(sdk.page, "sh")) == (4 if sdk is PYTHON_SDK else 5)
    clone = built(sdk).folder.parent.parent
    if sdk is NODE:
        # The page installs and builds the SDK in the clone, which other tests use meanwhile.
        clone = tmp_path / "clone"
        unbuilt = shutil.ignore_patterns("dist", "node_modules")
        shutil.copytree(sdk.folder, clone / "clients" / "node", ignore=unbuilt)
    header, *rows = table(follow(sdk.page, tmp_path / "empty", clone, **sdk.outside))
    assert (header[0], header[-1]) == ("System", "Failed")
    assert {row[0]: row[-1] for row in rows} == {"mine": "0", "truncate-tail": "0"}
    shown, *promised = table(sdk.page.read_text())
    assert shown == header
    # All but the times, to the digit: name, score, interval, passed, context and tokens.
    assert [row[:8] for row in rows] == [row[:8] for row in promised]


@each
def test_hello_is_at_most_ten_lines_and_shown_in_the_readme(sdk: Sdk) -> None:
    hello = sdk.source(sdk.hello).read_text()
    assert len(hello.splitlines()) <= 10
    assert fences(sdk.readme, sdk.fence)[0] == hello


@each
def test_hello_answers_every_question(sdk: Sdk, tmp_path: Path) -> None:
    launch = shlex.join(built(sdk).command(sdk.hello))
    report = evaluate("--launch", launch, "--dataset", "mini-qa", home=tmp_path)
    assert (report["systems"], report["failed_rows"]) == ([sdk.serves], 0)
    assert report["completed_rows"] == report["total_rows"] > 0


@each
def test_the_evaluator_scores_a_pair_and_a_run(sdk: Sdk, start: Start, tmp_path: Path) -> None:
    address = start(*built(sdk).command(sdk.hello_evaluator))
    answer, response, expected = sdk.scored
    with RemoteEvaluator(address) as evaluator:
        assert evaluator.score({"answer": answer}, {"response": response}) == {sdk.score: expected}
        assert evaluator.score({}, {"response": response}) == {}
    report = evaluate(
        "--launch",
        shlex.join(sdk.command(sdk.hello)),
        "--dataset",
        "mini-qa",
        "-n",
        "3",
        "--evaluator",
        f"{sdk.score.replace('_', '-')}@{address}",
        home=tmp_path,
    )
    assert (report["completed_rows"], report["failed_rows"]) == (3, 0)
    scored = [sorted(row["scores"]).count(sdk.score) for row in report["rows"]]
    assert scored == [int(sdk.scores_hello)] * 3


@each
def test_the_memory_system_remembers(sdk: Sdk, start: Start) -> None:
    with RemoteMemorySystem(start(*built(sdk).command(sdk.hello_memory))) as memory:
        memory.reset()
        memory.ingest([{"role": "user", "content": "My garden has three apple trees."}])
        memory.ingest([{"role": "user", "content": "Lunch is at noon."}])
        answer = memory.query("How many trees grow in the garden?")
    assert "three apple trees" in str(answer)


@each_compiled
def test_the_attached_example_takes_part_in_a_run_and_drains(sdk: Sdk, daemon_address: str) -> None:
    example, *flags = sdk.attach
    options = {} if sdk is NODE else {"options": {"words": 5}}
    process = subprocess.Popen(built(sdk).command(example, *flags, daemon_address))
    try:
        spec = {
            "systems": [{"attached": sdk.attached, **options}],
            "datasets": [{"name": "mini-qa", "max_examples": 5}],
        }
        with BenchClient(daemon_address) as client:
            wait_until_listed(client, sdk.attached)
            rows = [event.row for event in client.evaluate(spec) if event.HasField("row")]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(30)
    assert [row.HasField("failure") for row in rows] == [False] * 5


@each
def test_it_attaches_with_a_token_and_is_refused_by_a_role(sdk: Sdk, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"lab attach {digest_of('lab')} names=conformance-echo\nsecret\n")
    program = built(sdk).program
    with DaemonProcess(tmp_path / "home", f"--token-file={tokens}") as daemon:
        attach = [*program, "--attach", daemon.address, "--token"]
        refused = subprocess.run([*attach, "lab"], capture_output=True, text=True, timeout=60)
        assert refused.returncode > 0
        assert 'token of "lab" may attach conformance-echo' in refused.stderr
        process = subprocess.Popen([*attach, "secret"], stderr=subprocess.DEVNULL)
        try:
            with BenchClient(daemon.address, token="secret") as client:
                wait_until_listed(client, "conformance-echo")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait(30)


@each_compiled
def test_the_driving_example_starts_and_follows_a_run(sdk: Sdk, daemon_address: str) -> None:
    example, *flags = sdk.drive
    printed = run(*built(sdk).command(example, *flags, daemon_address))
    for text, times in sdk.driven.items():
        assert text in printed
        assert times in (0, printed.count(text))


@each_compiled
def test_a_daemon_that_is_not_there_is_said_in_a_sentence(sdk: Sdk) -> None:
    example, *flags = sdk.drive
    assert complains(built(sdk).command(example, *flags, "127.0.0.1:1"), sdk.complaint)
