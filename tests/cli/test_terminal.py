"""On a real terminal: nothing wider than it, colour only where it is wanted."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cbench_server.texts.grid import width
from tests.fixtures import preloaded


def on_a_terminal(folder: Path, *words: str, **environment: str) -> str:
    """Return what a command prints on a terminal of its own, which `COLUMNS` makes so wide."""
    leader, follower = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "cbench_server", *words],
        stdout=follower,
        stderr=subprocess.DEVNULL,
        env={**kept, "CBENCH_HOME": str(folder), "TERM": "xterm", **environment},
    )
    os.close(follower)
    printed = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        printed += part
    os.close(leader)
    assert process.wait(timeout=100) == 0
    return printed.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    run = ["run", "--builtin", "truncate-head", "--dataset", "mini-qa", "--dataset", "mini-choice"]
    done = preloaded.run(
        [str(preloaded.CBENCH), *run, "-n", "4", "--label", "why=to see how wide a table becomes"],
        env={**os.environ, "CBENCH_HOME": str(folder)},
        capture_output=True,
    )
    assert done.returncode == 0
    return folder


@pytest.mark.timeout(300)  # each command imports everything anew, and a machine may be busy
@pytest.mark.parametrize(
    ("words", "columns"),
    [(("runs",), "80"), (("runs",), "120"), (("show", "last"), "80"), (("metrics",), "80")],
    ids=["runs", "runs wide", "show", "metrics"],
)
def test_no_table_is_wider_than_the_terminal(
    words: tuple[str, ...], columns: str, home: Path
) -> None:
    printed = on_a_terminal(home, *words, COLUMNS=columns, NO_COLOR="1")
    tables = [line for line in printed.splitlines() if "  " in line]
    assert tables
    assert max(map(width, tables)) <= int(columns)
    assert "\033" not in printed


@pytest.mark.timeout(300)
def test_a_terminal_gets_a_bold_head_unless_it_says_no(home: Path) -> None:
    assert "\033[1mRun" in on_a_terminal(home, "runs", COLUMNS="200")
    assert "\033" not in on_a_terminal(home, "runs", COLUMNS="200", NO_COLOR="1")
