"""Versions that meet: frozen SDKs with this daemon, these SDKs with a frozen daemon.

docs/compatibility.md says what is tried. Python is tried by `make test`, the others, which have to
be built, by `make skew`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused, Unreachable, row_to_dict
from tests.fixtures import preloaded
from tests.fixtures.sdks import LONG_SECONDS
from tests.fixtures.waiting import wait_until_listed
from tests.skew.freeze import FOLDER, ROOT
from tests.skew.languages import LANGUAGES, Language, Tree, frozen

PAGE = ROOT / "docs" / "compatibility.md"
VERSIONS = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.tar.xz"))
PROGRAM = "import sys; from cbench_server.daemon import main; sys.exit(main())"
DATASETS = [{"name": "mini-qa", "max_examples": 3}]
THIS = Tree(ROOT)
HERE = next(language for language in LANGUAGES if language.name == "python")


@contextmanager
def started(command: list[str], tree: Tree) -> Iterator[str]:
    """Start a program of a version, and yield the address that it prints."""
    process = tree.start(command, CBENCH_HANDSHAKE="1")
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        assert line.startswith("cbench|1|tcp|"), f"{command} said {line!r}"
        yield line.rpartition("|")[2]
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


@dataclass(frozen=True)
class Meeting:
    """A daemon of one version, and the version that the SDKs have."""

    version: str
    daemon: str
    sdks: Tree

    def rows(self, **spec: Any) -> list[dict[str, Any]]:
        """Evaluate, and return the rows."""
        with BenchClient(self.daemon) as client:
            events = list(client.evaluate({"datasets": DATASETS, **spec}))
        return [row_to_dict(event.row) for event in events if event.HasField("row")]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    return {version: frozen(version, tmp_path_factory.mktemp("frozen")) for version in VERSIONS}


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["old-sdk", "old-daemon"])
def meeting(
    request: pytest.FixtureRequest,
    version: str,
    trees: dict[str, Tree],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Meeting]:
    old = trees[version]
    daemon, sdks = (THIS, old) if request.param == "old-sdk" else (old, THIS)
    home = str(tmp_path_factory.mktemp("home"))
    command = [sys.executable, "-c", PROGRAM, "--address", "127.0.0.1:0", "--home", home]
    with started(command, daemon) as address:
        yield Meeting(version, address, sdks)


@pytest.fixture
def language(request: pytest.FixtureRequest, meeting: Meeting) -> Language:
    """Build an SDK, in the version that meets the daemon."""
    wanted: Language = request.param
    meeting.sdks.build(wanted)
    return wanted


def _serves(meeting: Meeting, language: Language) -> None:
    command = meeting.sdks.command(language, language.system)
    with started(command, meeting.sdks) as address:
        rows = meeting.rows(systems=[{"target": address}])
    assert [row["failure"] for row in rows] == [None] * 3


def _remembers(meeting: Meeting, language: Language) -> None:
    command = meeting.sdks.command(language, language.memory)
    memory = [{"name": "mini-memory", "max_examples": 1}]
    with started(command, meeting.sdks) as address:
        rows = meeting.rows(kind="memory", systems=[{"target": address}], datasets=memory)
    assert rows
    assert {row["failure"] for row in rows} == {None}


def _scores(meeting: Meeting, language: Language) -> None:
    hello = THIS.command(HERE, HERE.system)
    command = meeting.sdks.command(language, language.evaluator)
    with started(hello, THIS) as system, started(command, meeting.sdks) as address:
        judges = [{"name": language.judge, "target": address}]
        rows = meeting.rows(systems=[{"target": system}], evaluators=judges)
    assert [row["failure"] for row in rows] == [None] * 3
    assert all(language.score in row["scores"] for row in rows)


def _attaches(meeting: Meeting, language: Language) -> None:
    program, *flags = language.attach
    command = meeting.sdks.command(language, program, *flags, meeting.daemon)
    process = meeting.sdks.start(command)
    try:
        with BenchClient(meeting.daemon) as client:
            wait_until_listed(client, language.attached)
        rows = meeting.rows(systems=[{"attached": language.attached}])
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(30)
    assert [row["failure"] for row in rows] == [None] * 3


def _drives(meeting: Meeting, language: Language) -> None:
    program, *flags = language.drive
    command = meeting.sdks.command(language, program, *flags, meeting.daemon)
    process = meeting.sdks.start(command)
    printed, _ = process.communicate(timeout=LONG_SECONDS)
    assert (process.returncode, language.driven in printed) == (0, True)


TRIED: dict[str, Callable[[Meeting, Language], None]] = {
    "serve a system": _serves,
    "serve a memory system": _remembers,
    "serve an evaluator": _scores,
    "attach": _attaches,
    "drive a run": _drives,
}


def _each(language: Language) -> Any:
    # Without the time that building takes, which is a fixture's.
    marks = [pytest.mark.timeout(LONG_SECONDS, func_only=True)]
    # It has to be built, in both versions.
    marks += [pytest.mark.faults] if language.sdk is not None else []
    return pytest.param(language, id=language.name, marks=marks)


@pytest.mark.parametrize("what", TRIED)
@pytest.mark.parametrize("language", [_each(each) for each in LANGUAGES], indirect=True)
def test_versions_that_meet_work_together(meeting: Meeting, language: Language, what: str) -> None:
    TRIED[what](meeting, language)


@pytest.fixture(scope="module")
def old_daemon(
    version: str, trees: dict[str, Tree], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    home = str(tmp_path_factory.mktemp("home"))
    command = [sys.executable, "-c", PROGRAM, "--address", "127.0.0.1:0", "--home", home]
    with started(command, trees[version]) as address:
        yield address


def _run_here(daemon: str, home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "CBENCH_HOME": str(home), "CBENCH_SERVER": daemon}
    command = [str(preloaded.CBENCH), *words]
    return preloaded.run(command, cwd=home, env=environment, capture_output=True, text=True)


def test_a_setting_that_an_older_daemon_would_ignore_is_refused(
    old_daemon: str, tmp_path: Path
) -> None:
    run = ["run", "--builtin", "truncate-tail", "--dataset", "mini-qa", "-n", "2"]
    done = _run_here(old_daemon, tmp_path, *run, "--option", "ratio=0.3")
    assert (done.returncode, done.stderr) == (
        2,
        f"cbench: the daemon at {old_daemon} is older than this client and does not know "
        "spec.options, so it would not do what was asked. Update the daemon, or leave that out.\n",
    )
    with BenchClient(old_daemon) as client:
        assert list(client.list()) == []
        with pytest.raises(Refused) as refused:
            list(client.list(mine=True))
    told = refused.value
    assert (told.code, told.reason, told.field) == ("INVALID_ARGUMENT", "UNKNOWN_FIELD", "mine")


def test_what_an_older_daemon_need_not_know_is_left_out(old_daemon: str, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(
        "from cbench_client import serve\n\ndef echo(example):\n    return example\n\nserve(echo)\n"
    )
    launch = ["--launch", f"{sys.executable} echo.py", "--dataset", "mini-qa", "-n", "2"]
    done = _run_here(old_daemon, tmp_path, "run", *launch)
    assert done.returncode == 0, done.stderr


def test_a_method_that_an_older_daemon_lacks_is_named(old_daemon: str, tmp_path: Path) -> None:
    told = f"the daemon at {old_daemon} is older than this client and has no PinRun. "
    with (
        BenchClient(old_daemon) as client,
        pytest.raises(Unreachable, match=re.escape(f"{told}Update the daemon.")),
    ):
        client.pin("last")


def test_what_is_frozen_is_what_runs(version: str, trees: dict[str, Tree]) -> None:
    imports = "import cbench_server as server, cbench_client as client"
    tree = trees[version]
    process = tree.start(
        [sys.executable, "-c", f"{imports}; print(server.__file__, client.__file__)"]
    )
    printed, _ = process.communicate(timeout=60)
    assert [path.startswith(f"{tree.root}/") for path in printed.split()] == [True, True]


def test_the_page_says_what_is_tried_and_nothing_else() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.M)
    assert rows == [
        (version, language.name.capitalize(), ", ".join(TRIED), ", ".join(TRIED))
        for version in VERSIONS
        for language in LANGUAGES
    ]
