"""What a system says is text: no command writes its escapes to a terminal."""

import json
import os
import pty
import sys
import tomllib
from pathlib import Path

from cbench_client import BenchClient
from cbench_server.daemon.embedded import embedded
from tests.e2e.following import follow
from tests.e2e.processes import Process, examples
from tests.fixtures import preloaded

CBENCH = [sys.executable, "-m", "cbench_server"]
EVIL = "\x1b]0;PWN\x07\x1b[2J"
SYSTEM = f"""
from cbench_client import serve

class Evil:
    name = "evil"
    def process(self, example):
        raise ValueError({EVIL!r})

serve(Evil(), "127.0.0.1:0")
"""


def test_no_escape_of_a_system_reaches_the_terminal(tmp_path: Path) -> None:
    script = tmp_path / "evil.py"
    script.write_text(SYSTEM)
    with (
        Process([sys.executable, str(script)]) as system,
        embedded(home=str(tmp_path / "home")) as daemon,
        BenchClient(daemon) as client,
    ):
        digest, _ = client.upload(examples(1))
        spec = {
            "systems": [{"target": system.address}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = follow(client.evaluate(spec)).finished.run_id
        for command in (
            ["show", run_id, "--example", "e0"],
            ["show", run_id, "--failed"],
            ["show", run_id, "--rows", "5"],
            ["show", run_id],
            ["runs"],
        ):
            said = preloaded.run(
                [*CBENCH, *command, "--server", daemon],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert said.returncode in (0, 1), said.stderr
            assert "\x1b" not in said.stdout + said.stderr, command
            assert "\x07" not in said.stdout + said.stderr, command


def _on_a_terminal(command: list[str]) -> bytes:
    """Run a command whose stdout is a terminal, and return what that was sent."""
    ours, theirs = pty.openpty()
    process = preloaded.Popen(command, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        pass  # The other side is closed.
    os.close(ours)
    process.wait(60)
    return said


def test_an_export_to_a_terminal_shows_no_escapes(tmp_path: Path) -> None:
    script = tmp_path / "evil.py"
    script.write_text(SYSTEM)
    with (
        Process([sys.executable, str(script)]) as system,
        embedded(home=str(tmp_path / "home")) as daemon,
        BenchClient(daemon) as client,
    ):
        digest, _ = client.upload(examples(1))
        spec = {
            "systems": [{"target": system.address, "name": "größe"}],
            "datasets": [{"name": "given", "upload": digest}],
        }
        run_id = follow(client.evaluate(spec)).finished.run_id
        for form in ("csv", "json", "jsonl", "junit", "markdown"):
            command = [*CBENCH, "export", run_id, "--format", form, "--server", daemon]
            said = _on_a_terminal(command)
            assert "größe".encode() in said, form
            assert b"\x1b" not in said, form
            assert b"\x07" not in said, form


# What JSON and TOML may hold as it is, and terminals heed: CSI as one character, the right-to-left
# override, a line that editors hide.
RAW = "\x9b2J\u202evil\x7f\u2028"


def test_json_on_a_terminal_shows_no_escapes_and_means_the_same(tmp_path: Path) -> None:
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "mini-qa", "max_examples": 1}],
        "labels": {"said": f"größe {RAW}{EVIL}"},
    }
    with embedded(home=str(tmp_path / "home")) as daemon, BenchClient(daemon) as client:
        run_id = follow(client.evaluate(spec)).finished.run_id
        for command in (["runs"], ["show", run_id], ["config", "schema"], ["logs", run_id]):
            flags = ["--output", "json"] if command[0] in ("runs", "show") else []
            flags += ["--json"] if command[0] == "logs" else []
            flags += ["--server", daemon] if command[0] != "config" else []
            said = _on_a_terminal([*CBENCH, *command, *flags]).decode()
            assert all(sign.isprintable() for sign in said.replace("\r\n", "")), command
            if command[0] == "show":
                assert json.loads(said)["labels"] == spec["labels"]
                assert "größe" in said


def test_a_run_file_of_others_shows_no_escapes(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    escape = "\\u001b[2J\\u009b2J"
    file.write_text(f'"k{escape}" = 1\n[[systems]]\nlaunch = "x"\nname = "{escape}"\n')
    for command in (["check", str(file)], ["check", f"{tmp_path}/\x1b[2J"]):
        said = _on_a_terminal([*CBENCH, "config", *command]).decode()
        assert "cannot read" in said or "not a key" in said
        assert all(sign.isprintable() for sign in said.replace("\r\n", "")), command


def test_what_a_run_file_says_is_written_in_signs_that_can_be_seen() -> None:
    from cbench_server.cli.run_files.writing import to_toml

    document = {"systems": [{"launch": f"x {RAW}{EVIL}\U000e0041"}]}
    text = to_toml(document)
    assert all(sign.isprintable() for sign in text.replace("\n", ""))
    assert tomllib.loads(text) == document


def test_the_sdk_of_a_checked_process_is_shown_without_its_escapes(tmp_path: Path) -> None:
    script = tmp_path / "evil.py"
    script.write_text(f"from cbench_client.host import host\nhost.SDK = {EVIL!r}\n{SYSTEM}")
    with Process([sys.executable, str(script)]) as process:
        flags = ["--system", process.address, "--only", "system/describe"]
        said = _on_a_terminal([*CBENCH, "conformance", *flags]).decode()
    assert "with \ufffd]0;PWN" in said
    assert "\x07" not in said
    assert "\x1b[2J" not in said
