"""What all tests share: programs started for one test, and a rule about skipping on CI."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from cbench_server.registry import registry
from tests.fixtures import preloaded
from tests.fixtures.costs import Costs
from tests.fixtures.hangs import Hangs
from tests.fixtures.postgres import postgres  # noqa: F401 - a fixture
from tests.fixtures.stores import place  # noqa: F401 - a fixture

# How long an example takes is the machine's affair, and machines are shared.
hypothesis.settings.register_profile(
    "shared-machine",
    deadline=None,
    # How long a draw takes on a machine with other work says nothing about the test.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("shared-machine")

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS = 30

# Nothing else may be skipped where CI=true: a test that never runs proves nothing.
_ALLOWED_SKIPS = (
    "../shared",  # data that is not part of the repository
    "may write everywhere",  # root reads and writes in spite of permissions
    "before Linux 6.3",  # nothing to show it with
    "tiktoken panics",  # nothing to compare with
    "no Python that another user may run",  # where root's Python is root's alone
)

# What takes longest comes first, so that no worker is left alone with it at the end. The tests of
# an SDK stay together: toolchains let one program at a time into a folder. What needs the
# SDKs of several languages comes when they are built.
_SLOWEST_FIRST = (
    "sdk-rust",
    "sdk-node",
    "sdk-go",
    "tests/conformance/",
    "sdk-python",
    "tests/faults/",
    "tests/e2e/",
    "tests/sandbox/test_tiers",
    "tests/test_demo",
    "tests/datasets/test_hub",
    "tests/evaluators/",
    "tests/test_readme",
    "tests/cli/",
    "tests/reports/",
    "tests/datasets/",
    "tests/tokens/",
)
_LANGUAGE = re.compile(r"[\[_](rust|node|go|python)[\]_]")

Start = Callable[..., str]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests on one worker, and the slowest files first."""

    def group(item: pytest.Item) -> str:
        path = item.nodeid.partition("::")[0]
        language = _LANGUAGE.search(item.nodeid.replace("[js]", "[node]"))
        return f"sdk-{language[1]}" if path.startswith("tests/sdks/") and language else path

    def position(item: pytest.Item) -> int:
        name = group(item)
        matches = (n for n, start in enumerate(_SLOWEST_FIRST) if name.startswith(start))
        return next(matches, len(_SLOWEST_FIRST))

    items.sort(key=position)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))


@pytest.fixture(autouse=True, scope="module")
def no_mirror_of_other_tests() -> Iterator[None]:
    """Forget the mirror that a daemon inside this process has left in the registry."""
    yield
    registry.data_dir = ""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a program that says where it listens, return its address, and stop it afterwards."""
    processes: list[subprocess.Popen[str]] = []

    def start_program(*command: str | Path, **environment: str) -> str:
        process = preloaded.Popen(
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
    return start(preloaded.CBENCH_SERVER, "--address", "127.0.0.1:0", "--log-level", "error")


def _forbidden_skips(config: pytest.Config) -> list[str]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return []
    reasons = {str(report.longrepr[2]) for report in reporter.stats.get("skipped", [])}
    return sorted(
        reason for reason in reasons if not any(allowed in reason for allowed in _ALLOWED_SKIPS)
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", action="store_true", help="end with what the tests cost")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--costs"):
        config.pluginmanager.register(Costs(config))
    config.pluginmanager.register(Hangs())


def pytest_sessionfinish(session: pytest.Session) -> None:
    preloaded.close()
    if _forbidden_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for reason in _forbidden_skips(config):
        terminalreporter.write_line(f"ERROR: may not be skipped on CI: {reason}", red=True)
