"""What all tests share: programs started for one test, and a rule about skipping on CI."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS = 30

# Nothing else may be skipped where CI=true: a test that never runs proves nothing.
_ALLOWED_SKIPS = (
    "../shared",  # data that is not part of the repository
    "may write everywhere",  # root reads and writes in spite of permissions
    "tiktoken panics",  # nothing to compare with
    "no Python that another user may run",  # where root's Python is root's alone
)

# These build and run the SDKs in their own folders, so only one of them may at a time.
_BUILDS_SDKS = ("tests/sdks/", "tests/test_demo", "tests/e2e/test_polyglot", "tests/test_readme")

Start = Callable[..., str]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests on one worker, and the slowest files first."""

    def group(item: pytest.Item) -> str:
        path = item.nodeid.partition("::")[0]
        return "sdks" if path.startswith(_BUILDS_SDKS) else path

    items.sort(key=lambda item: group(item) != "sdks")
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a program that says where it listens, return its address, and stop it afterwards."""
    processes: list[subprocess.Popen[str]] = []

    def start_program(*command: str | Path, **environment: str) -> str:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "CBENCH_HOME": str(tmp_path / "home"), **environment},
        )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("cbench|1|tcp|"), f"no handshake but {line!r}"
        return line.split("|")[3]

    yield start_program
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(STOP_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def daemon_address(start: Start) -> str:
    """Start `cbench-server` on a free port, with a store of its own, and return its address."""
    server = Path(sys.executable).parent / "cbench-server"
    return start(server, "--address", "127.0.0.1:0", "--log-level", "error")


def _forbidden_skips(config: pytest.Config) -> list[str]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return []
    reasons = {str(report.longrepr[2]) for report in reporter.stats.get("skipped", [])}
    return sorted(
        reason for reason in reasons if not any(allowed in reason for allowed in _ALLOWED_SKIPS)
    )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _forbidden_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason in _forbidden_skips(config):
        terminalreporter.write_line(f"ERROR: may not be skipped on CI: {reason}", red=True)
