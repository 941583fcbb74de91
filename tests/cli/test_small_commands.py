"""`score`, `datasets`, `evaluators`, `metrics`, `systems` and `doctor`."""

import json
import platform
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, Serve, complaint, strict
from tests.conftest import Start

_ORIGINAL = {"id": 1, "context": "Paris is big.", "question": "Which?", "answer": "Paris"}


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "original.json"
    path.write_text(json.dumps(_ORIGINAL))
    return path


def test_a_pair_is_scored_from_a_file_and_stdin(cbench: Cbench, original: Path) -> None:
    processed = json.dumps({**_ORIGINAL, "response": "Paris"})
    command = ("score", "--evaluator", "answer-quality", original, "-")
    finished = cbench(*command, stdin=processed)
    assert finished.returncode == 0, finished.stderr
    assert strict(finished.stdout)["f1"] == 1.0
    detailed = strict(cbench(*command, "--details", stdin=processed).stdout)
    assert detailed["scores"]["f1"] == 1.0
    assert isinstance(detailed["details"], dict)


@pytest.mark.parametrize(
    ("evaluator", "processed", "expected"),
    [
        ("answer-qualty", "{}", 'did you mean "answer-quality"'),
        ("answer-quality", '{"a": 1,\n}', "stdin, line 2, column 1: not JSON"),
        ("answer-quality", "[1]", "stdin is not a JSON object"),
    ],
    ids=["evaluator", "json", "list"],
)
def test_a_pair_that_cannot_be_scored_is_bad_input(
    cbench: Cbench, original: Path, evaluator: str, processed: str, expected: str
) -> None:
    finished = cbench("score", "--evaluator", evaluator, original, "-", stdin=processed)
    assert finished.returncode == 2
    assert expected in complaint(finished)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("datasets", "mini-qa"),
        ("evaluators", "answer-quality"),
        ("metrics", "mean-score"),
        ("systems", "truncate-head"),
    ],
)
def test_components_are_listed(cbench: Cbench, command: str, name: str) -> None:
    lines = cbench(command).stdout.splitlines()
    assert name in {line.split(" ")[0] for line in lines}
    assert max(map(len, lines)) <= 180
    document = strict(cbench(command, "--output", "json").stdout)
    [entry] = [entry for entry in document if entry["name"] == name]
    assert entry["description"]


def test_a_dataset_shows_what_a_system_will_and_will_not_see(cbench: Cbench) -> None:
    seen, _, withheld = cbench("datasets", "show", "mini-qa").stdout.partition("does not see:")
    assert "question: Where did the owner" in seen
    assert "on a ferry\n" not in seen
    assert "answer: on a ferry" in withheld
    document = strict(cbench("datasets", "show", "mini_qa", "--output", "json").stdout)
    assert document["size"] == 48
    assert document["example"]["id"] == "mini-qa-001"
    assert 'did you mean "mini-qa"' in complaint(cbench("datasets", "show", "mini-ga"))


def test_a_process_is_asked_what_it_serves(cbench: Cbench, serve: Serve) -> None:
    target = serve("both")
    table = cbench("systems", "--system", target).stdout
    assert "Answers for tests." in table
    [entry] = strict(cbench("systems", "--system", f"{target}/failing", "--output", "json").stdout)
    assert (entry["name"], entry["version"], entry["location"]) == ("failing", "1", target)


def test_a_process_with_a_token_is_asked_with_a_credential(
    cbench: Cbench, start: Start, tmp_path: Path
) -> None:
    program = tmp_path / "locked.py"
    program.write_text(
        "from cbench_client import serve\n"
        "def echo(example): return example\n"
        'serve(echo, token="secret")\n'
    )
    target = start(sys.executable, program)
    listing = ("systems", "--system", target)
    assert "Pass --credential NAME." in complaint(cbench(*listing))
    config = tmp_path / "cbench.toml"
    config.write_text(f'[credentials.mine]\nenv = "MINE"\nprefix = "{target}"\n')
    there = {"CBENCH_CONFIG": str(config), "MINE": "secret"}
    assert "echo" in cbench(*listing, "--credential", "mine", **there).stdout
    assert 'no credential "yours"' in complaint(cbench(*listing, "--credential", "yours", **there))
    assert "needs --system" in complaint(cbench("systems", "--credential", "mine", **there))


def test_a_daemon_lists_its_components_too(cbench: Cbench, daemon_address: str) -> None:
    assert "mini-qa" in cbench("datasets", "--server", daemon_address).stdout


def test_the_doctor_finds_a_sound_set_up(cbench: Cbench) -> None:
    assert cbench("run", "--builtin", "identity", "--dataset", "mini-qa").returncode == 0
    finished = cbench("doctor", "--output", "json", CBENCH_ADDRESS="127.0.0.1:0")
    assert finished.returncode == 0, finished.stdout
    findings = {finding["subject"]: finding for finding in strict(finished.stdout)}
    assert platform.python_version() in findings["python"]["message"]
    assert "newest 1 runs" in findings["store"]["message"]
    assert {"packages", "data directory", "disk", "tokenizer", "sandbox", "port"} < findings.keys()
    assert all(finding["status"] != "fail" for finding in findings.values())


def test_the_doctor_says_how_to_start_a_node_once_programs_are_held(cbench: Cbench) -> None:
    finished = cbench("doctor", "--node", "--output", "json")
    findings = {finding["subject"]: finding for finding in strict(finished.stdout)}
    assert findings["sandbox"]["status"] == "ok", findings
    assert "cbench_sandbox" in findings["start it with"]["message"]
    # Whether Ray is here decides nothing about the sandbox.
    assert finished.returncode == (findings["ray"]["status"] == "fail")


def test_the_doctor_recognises_a_daemon(cbench: Cbench, daemon_address: str) -> None:
    finished = cbench("doctor", CBENCH_ADDRESS=daemon_address)
    assert f"answers at {daemon_address}" in finished.stdout


def test_the_doctor_reports_settings_that_cannot_be_meant(cbench: Cbench) -> None:
    finished = cbench("doctor", CBENCH_MAX_RUNS="many")
    assert finished.returncode == 1
    assert "fail  settings:" in finished.stdout


def test_the_doctor_checks_a_daemon_elsewhere(
    cbench: Cbench, tmp_path: Path, environment: dict[str, str]
) -> None:
    from tests.e2e.processes import DaemonProcess

    tokens = tmp_path / "tokens"
    tokens.write_text("a-long-and-secret-token\n")
    tokens.chmod(0o600)
    with DaemonProcess(tmp_path / "there", "--token-file", str(tokens)) as daemon:
        where = ("doctor", "--server", daemon.address)
        sound = cbench(*where, "--output", "json", CBENCH_TOKEN="a-long-and-secret-token")
        assert sound.returncode == 0, sound.stdout
        found = {each["subject"]: each for each in json.loads(sound.stdout)}
        assert {"address", "version", "answers", "health", "components", "token"} == set(found)
        assert {each["status"] for each in found.values()} == {"ok"}
        refused = cbench(*where)
        assert refused.returncode == 1
        assert "CBENCH_TOKEN" in refused.stdout
        assert "token=" not in refused.stdout
        assert "a-long-and-secret-token" not in refused.stdout + sound.stdout
        assert "run it where the daemon is" in cbench(*where, "--deep").stderr
    gone = cbench(*where)
    assert gone.returncode == 1
    assert "nobody takes connections" in gone.stdout
    assert not (environment["CBENCH_HOME"] and Path(environment["CBENCH_HOME"]).exists())
