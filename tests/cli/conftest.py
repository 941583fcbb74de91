"""The real `cbench`, run as a person would, on a store of the test's own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH as CBENCH

PROGRAMS = Path(__file__).parent / "programs"
SYSTEM = PROGRAMS / "system.py"

Finished = subprocess.CompletedProcess[str]
Cbench = Callable[..., Finished]
Serve = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the store is; the same as for `start`."""
    return tmp_path / "home"


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """Ours without anybody's settings."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("CBENCH_")}
    return {**inherited, "CBENCH_HOME": str(home), "NO_COLOR": "1"}


@pytest.fixture
def cbench(environment: dict[str, str], tmp_path: Path) -> Cbench:
    """Run `cbench` to its end; test_streams.py and others start the console script itself."""

    def run(*args: object, stdin: str = "", **variables: str) -> Finished:
        return preloaded.run(
            [str(CBENCH), *map(str, args)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            cwd=tmp_path,
            env={**environment, **variables},
            check=False,
        )

    return run


@pytest.fixture
def serve(start: Callable[..., str]) -> Serve:
    """Serve one of the systems in programs/system.py, and return where it is."""
    return lambda *args: start(sys.executable, SYSTEM, *args)


def complaint(finished: Finished) -> str:
    """Return the one line under our name that a command left on stderr."""
    lines = [line for line in finished.stderr.splitlines() if line.startswith("cbench: ")]
    assert len(lines) == 1, finished.stderr
    assert "Traceback" not in finished.stderr
    return lines[0].removeprefix("cbench: ")


def strict(text: str) -> Any:
    """Parse JSON and refuse NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
