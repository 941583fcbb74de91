"""The real `cbench conformance`, and the programs it is pointed at."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cbench_server.cli import main
from tests.fixtures import preloaded

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
        return preloaded.run(
            [str(preloaded.CBENCH), "conformance", *map(str, args)],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
        )

    return run


@pytest.fixture
def conformance_here(capsys: pytest.CaptureFixture[str]) -> Iterator[Conformance]:
    """Run it in this process, where starting the programs costs little."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*args: str | Path) -> Finished:
        command = ["conformance", *map(str, args)]
        with preloaded.in_asyncio():
            code = main(command)
        return subprocess.CompletedProcess(command, code, *capsys.readouterr())

    yield run
    signal.signal(signal.SIGTERM, handler)
