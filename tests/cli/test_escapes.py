"""What a system says is text: no command writes its escapes to a terminal."""

import os
import pty
import sys
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
