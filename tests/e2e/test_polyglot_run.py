"""A run over three languages survives the death of everything that takes part in it."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cbench_client import BenchClient
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.sdks import LONG_SECONDS, SDKS, built

from .following import Followed
from .processes import DaemonProcess, Process, wait_until

EXAMPLES = 300
ROWS_BETWEEN_KILLS = 40
EVERYTHING = ("daemon", "system", "evaluator", "attached")


Program = list[str]


class Cast(NamedTuple):
    """Which language plays which part."""

    system: str
    attached: str
    evaluator: str


@pytest.fixture
def programs() -> dict[str, Program]:
    """Build each SDK, and return how to start their conformance programs."""
    return {sdk.name: list(built(sdk).program) for sdk in SDKS}


class Attached:
    """A program that dials the daemon, and so says nothing about where it listens."""

    def __init__(self, program: Program, daemon: str) -> None:
        self._process = preloaded.Popen([*program, "--attach", daemon], stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Stage:
    """A daemon, a served system, an attached one and a served evaluator, each at its own place."""

    def __init__(self, programs: dict[str, Program], cast: Cast, home: Path) -> None:
        self.ports = {part: held_port() for part in ("daemon", "system", "evaluator")}
        self._start: dict[str, Callable[[], Process | Attached]] = {
            "daemon": lambda: DaemonProcess(home, port=self.ports["daemon"]),
            "system": lambda: self._serve(programs[cast.system], "system"),
            "evaluator": lambda: self._serve(programs[cast.evaluator], "evaluator"),
            "attached": lambda: Attached(programs[cast.attached], self.address("daemon")),
        }
        self._running: dict[str, Process | Attached] = {}

    def address(self, part: str) -> str:
        return f"127.0.0.1:{self.ports[part]}"

    def start(self, *parts: str) -> None:
        for part in parts:
            self._running[part] = self._start[part]()

    def crash(self, *parts: str) -> None:
        """Kill parts, all before any is started again."""
        for part in parts:
            self._running[part].kill()
        self.start(*parts)

    def _serve(self, program: Program, part: str) -> Process:
        return Process([*program, "--address", self.address(part)], {"CBENCH_HANDSHAKE": "1"})

    def end(self) -> None:
        for process in self._running.values():
            process.kill()


@contextmanager
def stage(programs: dict[str, Program], cast: Cast, home: Path) -> Iterator[Stage]:
    made = Stage(programs, cast, home)
    try:
        made.start(*EVERYTHING)
        yield made
    finally:
        made.end()


@pytest.mark.slow
@pytest.mark.timeout(LONG_SECONDS)
@pytest.mark.parametrize(
    "cast",
    [
        Cast(system="go", attached="rust", evaluator="node"),
        Cast(system="node", attached="python", evaluator="rust"),
    ],
    ids="-".join,
)
def test_a_run_over_three_languages_completes_exactly_though_all_are_killed(
    cast: Cast, programs: dict[str, Program], tmp_path: Path
) -> None:
    examples = [
        {"id": number, "context": "", "question": "", "answer": "elapsed"}
        | {"key": f"key-{number}", "milliseconds": 20}
        for number in range(EXAMPLES)
    ]
    with (
        stage(programs, cast, tmp_path / "home") as parts,
        BenchClient(parts.address("daemon")) as bench,
    ):
        wait_until(
            lambda: "conformance-limited" in {each.name for each in bench.components().systems}
        )
        digest, _ = bench.upload(examples)
        spec = {
            "systems": [
                {"target": parts.address("system"), "served_name": "conformance-hold"},
                {"attached": "conformance-limited"},
            ],
            "datasets": [{"name": "given", "upload": digest}],
            "evaluators": [{"name": "conformance-score", "target": parts.address("evaluator")}],
            "replace_evaluators": True,
            "score_field": "exact",
            "max_concurrency": 4,
        }
        seen = Followed()
        events = bench.evaluate(spec)
        watcher = threading.Thread(target=lambda: [seen.take(event) for event in events])
        watcher.start()
        for killed in (*((part,) for part in EVERYTHING), EVERYTHING):
            goal = len(seen.rows) + ROWS_BETWEEN_KILLS
            wait_until(lambda goal=goal: len(seen.rows) >= goal, timeout=60)
            assert seen.finished is None
            parts.crash(*killed)
        watcher.join(120)
        assert not watcher.is_alive()
        stored = [(row.system, row.ordinal) for row in bench.rows(seen.finished.run_id)]
    expected = [
        (name, ordinal)
        for name in ("conformance-hold", "conformance-limited")
        for ordinal in range(EXAMPLES)
    ]
    assert seen.state == "SUCCEEDED", seen.finished.failure
    assert seen.failures == {}
    assert sorted(stored) == expected
    assert sorted((name, ordinal) for name, ordinal, _ in seen.keys) == expected
    assert [dict(row.scores) for row in seen.rows] == [{"exact": 1.0}] * len(expected)
