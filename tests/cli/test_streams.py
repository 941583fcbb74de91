"""Results on stdout, everything else on stderr, whatever they are connected to."""

import io
import os
import pty
import subprocess
import threading
from pathlib import Path

import pytest

from cbench_server.runs.progress import open_progress
from tests.cli.conftest import CBENCH, strict
from tests.fixtures import preloaded

_RUN = [str(CBENCH), "run", "--builtin", "identity", "--dataset", "mini-qa"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_on_a_terminal_leave_json_alone(environment: dict[str, str]) -> None:
    terminal, stderr = pty.openpty()
    seen = bytearray()
    reader = threading.Thread(target=_read_to_end, args=(terminal, seen))
    reader.start()
    with subprocess.Popen(
        [*_RUN, "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**environment, "TERM": "xterm", "COLUMNS": "100", "CI": ""},
    ) as process:
        os.close(stderr)
        stdout, _ = process.communicate(timeout=60)
    reader.join()
    os.close(terminal)
    assert len(strict(stdout.decode())["rows"]) == 48
    assert b"48/48" in seen
    assert b"rows/s" in seen


def test_a_table_on_a_terminal_says_the_same(environment: dict[str, str]) -> None:
    terminal, stdout = pty.openpty()
    seen = bytearray()
    reader = threading.Thread(target=_read_to_end, args=(terminal, seen))
    reader.start()
    with preloaded.Popen(
        [*_RUN, "--quiet"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**environment, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(stdout)
        _, stderr = process.communicate(timeout=60)
    reader.join()
    os.close(terminal)
    assert stderr == b""
    assert b"identity" in seen
    assert b"cbench show 2" in seen


def test_a_reader_that_has_seen_enough_is_no_error(environment: dict[str, str]) -> None:
    with preloaded.Popen(
        [*_RUN, "--dataset", "long-notes", "--repeats", "50", "--output", "jsonl", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert strict(process.stdout.readline().decode())["system"] == "identity"
        process.stdout.close()
        _, stderr = process.communicate(timeout=60)
    assert stderr == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_output_that_finds_no_room_is_no_bug(environment: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        finished = preloaded.run(
            [str(CBENCH), "datasets"], stdout=full, stderr=subprocess.PIPE, env=environment
        )
    assert finished.returncode == 1
    told = finished.stderr.decode()
    assert told == "cbench: what is printed cannot be written: No space left on device.\n"


def test_plain_lines_tell_failures_and_the_end() -> None:
    stream = io.StringIO()
    with open_progress(True, {"a": 4}, stream) as display:
        display.note("run 1")
        display.set("a", 2, 0, 4)
        display.set("a", 4, 1, 4)
    assert stream.getvalue() == "run 1\na 4/4 (1 failed)\n"


def test_bars_show_names_as_they_are() -> None:
    stream = _Terminal()
    with open_progress(True, {}, stream) as display:
        display.set("[red]go[/red]", 1, 1, None)
    assert "[red]go[/red]" in stream.getvalue()
    assert "1 failed" in stream.getvalue()


def test_progress_that_is_not_wanted_is_not_shown() -> None:
    stream = _Terminal()
    with open_progress(False, {"a": 1}, stream) as display:
        display.set("a", 1, 0, 1)
        display.note("x")
    assert stream.getvalue() == ""


def _read_to_end(terminal: int, seen: bytearray) -> None:
    try:
        while part := os.read(terminal, 65536):
            seen += part
    except OSError:
        # What Linux says once nobody holds the other end.
        pass
