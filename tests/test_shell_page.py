"""docs/shell-and-http.md, followed as a newcomer would: its figures are those that are printed."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures import preloaded
from tests.fixtures.waiting import wait_until

PAGE = Path(__file__).resolve().parent.parent / "docs" / "shell-and-http.md"
TIMES = ("95% CI", "p50", "p95", "p50 alone", "p95 alone")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty home, and `cbench` on the path."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("CBENCH_")}
    path = f"{preloaded.CBENCH.parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "CBENCH_HOME": str(tmp_path / "home"), "PATH": path, "NO_COLOR": "1"}


@pytest.fixture
def background(
    tmp_path: Path, environment: dict[str, str]
) -> Iterator[list[subprocess.Popen[str]]]:
    """Programs that the page leaves running."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait()


def test_the_page_does_what_it_says(
    tmp_path: Path, environment: dict[str, str], background: list[subprocess.Popen[str]]
) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    folder = tmp_path / "empty"
    folder.mkdir()
    printed = ""
    for block in re.finditer(r"```(sh)?\n(.*?)```", PAGE.read_text(), re.S):
        is_command, text = block[1] == "sh", block[2].strip()
        if not is_command:
            assert _figures(text) == _figures(printed), printed
        elif "& sleep" in text:
            words = text.partition("&")[0].split()
            background.append(subprocess.Popen(words, cwd=folder, text=True))
            wait_until(lambda: (folder / "address").exists() and (folder / "address").read_text())
        else:
            done = subprocess.run(
                ["sh", "-c", text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=110,
            )
            assert done.returncode == 0, done.stderr
            printed = done.stdout


def _figures(table: str) -> list[list[str]]:
    """Return the cells of a table but those that differ from machine to machine."""
    lines = table.splitlines()
    header, ruler = lines[0], lines[1]
    spans = [match.span() for match in re.finditer(r"-+", ruler)]
    kept = [span for span in spans if header[slice(*span)].strip() not in TIMES]
    rows = [header, *(line for line in lines[2:4] if line.strip())]
    return [[row[slice(*span)].strip() for span in kept] for row in rows]
