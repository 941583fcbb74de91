"""The real `cbench conformance`, and the programs it is pointed at."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAM = ROOT / "clients" / "python" / "conformance" / "program.py"
LEAST = HERE / "least.py"
FAULTY = HERE / "faulty.py"

Finished = subprocess.CompletedProcess[str]
Conformance = Callable[..., Finished]


@pytest.fixture
def conformance(tmp_path: Path) -> Conformance:
    """Run `cbench conformance` to its end."""

    def run(*args: str | Path) -> Finished:
        return subprocess.run(
            [str(Path(sys.executable).parent / "cbench"), "conformance", *map(str, args)],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
            check=False,
        )

    return run
