"""What the tests of the SDKs share: pages that are followed, runs, and the conformance suite."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fixtures.preloaded import CBENCH
from tests.fixtures.sdks import ROOT, Sdk, run

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def fences(page: Path, language: str) -> list[str]:
    """Return the blocks of code in one language that a page shows."""
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


def follow(page: Path, folder: Path, clone: Path = ROOT, **environment: str) -> str:
    """Type the shell commands of a page in an empty folder; return what they print."""
    folder.mkdir()
    script = "\n".join(["set -euo pipefail", *fences(page, "sh")])
    home = str(folder.parent / "home")
    return run("bash", "-c", script, cwd=folder, CBENCH=str(clone), CBENCH_HOME=home, **environment)


def table(printed: str) -> Iterator[list[str]]:
    """Return the lines of the table that a run of `mine` and `truncate-tail` prints."""
    lines = [line.split() for line in printed.splitlines()]
    return (line for line in lines if line[:1] in (["System"], ["mine"], ["truncate-tail"]))


def evaluate(*arguments: str | Path, home: Path, code: int = 0) -> dict[str, Any]:
    """Evaluate with `cbench run`, and return what it says of the run."""
    command = (CBENCH, "run", "--quiet", "--output", "json", *arguments)
    output = run(*command, code=code, CBENCH_HOME=str(home))
    report: dict[str, Any] = json.loads(output)
    return report


def conformance(sdk: Sdk, home: Path) -> dict[str, Any]:
    """Run the conformance suite against an SDK's program, and return its report."""
    known_failing = sdk.folder / "conformance" / "known-failing.txt"
    assert known_failing.read_text() == ""
    output = run(
        CBENCH,
        "conformance",
        "--known-failing",
        known_failing,
        "--output",
        "json",
        "--",
        *sdk.program,
        CBENCH_HOME=str(home),
    )
    report: dict[str, Any] = json.loads(output)
    return report
